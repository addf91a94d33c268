"""Procedures as people write them: words that change what is carried out, and words that only describe it.

What changes it (a condition, a repetition, a ban, an exception ...) is put in front of a formula, behind its
description, in brackets, above it and into a field of its own; no reading of it may make the formula a step that is
carried out always. A plain description of the same formulas has to stay one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from certification.tallies import Tally
from stepguard import Procedure, Step
from stepguard.errors import ProcedureError
from stepguard.procedure.importing import import_procedure
from stepguard.procedure.yaml_format import parse_yaml

__all__ = ["certify_procedures"]

_INPUTS: Final = "price", "fee", "hours", "rate", "age"
_FORMULAS: Final = (
    ("total", "price + fee"), ("wages", "hours * rate"), ("net", "price - fee"), ("reduced", "price * 0.9"),
    ("share", "price / 4"), ("raised", "rate * 1.05"),
)  # fmt: skip
_CHANGES: Final[Mapping[str, tuple[str, ...]]] = {
    "a condition": (
        "if {c}", "when {c}", "unless {c}", "whenever {c}", "as long as {c}", "provided that {c}", "in case {c}",
        "only if {c}", "if and only if {c}", "assuming {c}", "whether or not {c}", "on condition that {c}",
        "in the event that {c}", "where {c}", "depending on whether {c}", "except when {c}", "once {c}",
    ),
    "a branch": (
        "otherwise", "else", "or else", "alternatively", "if not", "in all other cases except these", "instead",
        "either way or not", "failing that", "in that case", "unless otherwise stated",
    ),
    "a repetition": (
        "repeat {n} times", "{n} times", "for each {g}", "for every {g}", "until {c}", "while {c}", "again",
        "every day", "each month", "twice", "once more", "in a loop", "repeatedly", "over and over again",
    ),
    "a ban": (
        "do not do this", "don't do this", "never", "not for {g}", "no longer", "skip this", "ignore this", "omit",
        "do not apply", "cancelled", "void", "not applicable", "obsolete", "deprecated",
    ),
    "a choice": (
        "optional", "optionally", "maybe", "perhaps", "if needed", "as needed", "where applicable", "if you like",
        "either", "sometimes", "usually", "at your discretion", "conditionally", "possibly", "may be skipped",
    ),
    "a group": (
        "only for {g}", "for {g} only", "except for {g}", "{g} excepted except on Sundays", "not {g}", "any {g}",
    ),
    "another language": (
        "wenn {c}", "falls {c}", "sonst", "nur am Wochenende", "nicht", "wiederhole", "si {c}", "sinon", "chaque jour",
        "jamais", "cuando {c}", "mientras {c}", "nunca", "cada d\u00eda", "solo para {g}",
    ),
}  # fmt: skip
_CONDITIONS: Final = ("age is under 18", "the price exceeds 100", "it rains", "she has paid", "the fee is zero")
_GROUPS: Final = ("members", "children", "item", "new customers", "VIPs")
_BEGIN: Final = ("Work out the {0}", "Compute the {0}", "The {0}", "Calculate the {0}", "Find the {0}")
_RIGHT: Final[Mapping[str, tuple[str, ...]]] = {
    "a verb": (*_BEGIN, "Determine the {0}", "Now work out the {0}", "Then compute the {0}", "Next, find the {0}"),
    "a noun": ("{0}", "The {0}", "New {0}", "The final {0}", "Resulting {0}", "The {0} of the order"),
    "a change": ("Take {0} from the {1}", "{2} the {1}", "Now {2} the {1}", "Apply the {1}", "Combine {0} and {1}"),
    "a sentence": ("Work out the {0}.", "What is the {0}", "This is the {0}", "To get the {0}, use the {1}"),
    "an end": ("Work out the {0} in euros", "Compute the {0} with the {1}", "Find the {0} after the {1}"),
}


_VERBS: Final = {"+": "add", "-": "subtract", "*": "multiply by", "/": "divide"}


def _in_front(words: str, name: str, formula: str, chance: random.Random) -> str:
    return f"{_sentence(words)}, {chance.choice(_BEGIN).format(name).lower()}: {name} = {formula}"


def _alone(words: str, name: str, formula: str, chance: random.Random) -> str:
    return f"{chance.choice(['', '1. ', '**Step 1:** '])}{_sentence(words)}: {name} = {formula}"


def _behind(words: str, name: str, formula: str, chance: random.Random) -> str:
    joint = chance.choice([" {}", ", {}", " ({})", " - {}"]).format(words)
    return f"1. {chance.choice(_BEGIN).format(name)}{joint}: {name} = {formula}"


def _comment(words: str, name: str, formula: str, _: random.Random) -> str:
    return f"{name} = {formula}  # {words}"


def _above(words: str, name: str, formula: str, chance: random.Random) -> str:
    mark = chance.choice(["## {}", "# {}:", "1. {}:", "{}:"])
    return f"{mark.format(_sentence(words))}\n   2. {name} = {formula}"


def _quoted(words: str, name: str, formula: str, _: random.Random) -> str:
    return f"{json.dumps(_sentence(words))}: {name} = {formula}"


_PLACES: Final[Mapping[str, Callable[[str, str, str, random.Random], str]]] = {
    "in front": _in_front,
    "alone": _alone,
    "behind": _behind,
    "a comment": _comment,
    "above": _above,
    "in quotes": _quoted,
}


def certify_procedures(seed: int, each: int) -> dict[str, Any]:
    """What became of both kinds, `each` of every kind in every place."""
    return {"wrong": _wrong(seed, each), "right": _right(seed, each)}


def _wrong(seed: int, each: int) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {}
    for kind, changes in _CHANGES.items():
        for place in (*_PLACES, "a field"):
            chance, tally = random.Random(f"{seed}:{kind}:{place}"), Tally()
            for number in range(each):
                words = changes[number % len(changes)].format(
                    c=chance.choice(_CONDITIONS), g=chance.choice(_GROUPS), n=chance.randint(2, 9)
                )
                name, formula = chance.choice(_FORMULAS)
                if place == "a field":
                    accepted, text = _accepted_as_field(_sentence(words), name, formula, number), words
                else:
                    text = _PLACES[place](words, name, formula, chance)
                    # A comment of the language is one, whatever it says; import heeds what free forms say in it.
                    accepted = _imported(text) or (place != "a comment" and _parsed(text))
                tally.add(accepted, text)
            kinds[f"{kind}: {place}"] = tally.to_dict()
    return kinds


def _right(seed: int, each: int) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {}
    for kind, descriptions in _RIGHT.items():
        chance, tally = random.Random(f"{seed}:{kind}"), Tally()
        for number in range(each):
            name, formula = chance.choice(_FORMULAS)
            first, sign, second = formula.split()
            operand = second if second.isalpha() else first
            words = _sentence(descriptions[number % len(descriptions)].format(name, operand, _VERBS[sign]))
            text = f"{chance.choice(['', '1. ', 'Step 1: '])}{words}: {name} = {formula}"
            tally.add(not (_imported(text) and _accepted_as_field(words, name, formula, number)), text)
        kinds[kind] = tally.to_dict()
    return kinds


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _parsed(text: str) -> bool:
    """Whether the language reads a formula in it that is carried out always."""
    try:
        return _always(Procedure.parse(f"inputs: {', '.join(_INPUTS)}\n{text}"))
    except ProcedureError:
        return False


def _imported(text: str) -> bool:
    """Whether import takes it without a note, with a formula that is carried out always."""
    imported = import_procedure(f"inputs: {', '.join(_INPUTS)}\n{text}")
    return imported.procedure is not None and imported.complete and _always(imported.procedure)


def _always(procedure: Procedure) -> bool:
    return any(isinstance(statement, Step) and statement.expression is not None for statement in procedure.body)


def _accepted_as_field(words: str, name: str, formula: str, number: int) -> bool:
    step = {"id": name, "instruction": words, "expression": formula}
    try:
        if number % 2:
            return bool(parse_yaml(json.dumps({"inputs": list(_INPUTS), "steps": [step]})).steps)
        return bool(Step(name, formula, instruction=words).expression)
    except ProcedureError:
        return False
