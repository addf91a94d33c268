"""The rules of PlanBench's worlds as facts: what an action needs, makes true and makes false.

The checks are made from them; what `planbench` says is right comes from the words of an action alone, and the final
state from the benchmark's file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Final

Facts = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ActionRule:
    """One kind of action over places ``x``, ``y``, ``z``, ``c``.

    Attributes:
        pattern: its words; groups are the objects in the order of `places`.
        places: the names of its objects.
        needs, adds, deletes: facts over these names, one text each (``"on x y"``).
        prefixes: how the names of some of its objects begin, where facts do not say what an object is.
    """

    pattern: str
    places: str
    needs: tuple[str, ...]
    adds: tuple[str, ...]
    deletes: tuple[str, ...]
    prefixes: tuple[str, ...] = ()

    def facts(self, which: Iterable[str], objects: tuple[str, ...]) -> Facts:
        """Facts over the objects of an action."""
        named = dict(zip(self.places, objects, strict=True))
        return frozenset(tuple(named.get(word, word) for word in fact.split()) for fact in which)


@dataclass(frozen=True, slots=True)
class PlanAction:
    """An action: its kind and its objects."""

    kind: str
    objects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """One world.

    Attributes:
        rules: by kind of action.
        statements: how facts are put into words: pattern, the fact's name.
        objects: how a published fact names an object: what is replaced there, by what.
        ignored: published facts that only say what kind of thing an object is.
    """

    rules: Mapping[str, ActionRule]
    statements: tuple[tuple[str, str], ...]
    objects: tuple[tuple[str, str], ...]
    ignored: frozenset[str] = frozenset()

    def action(self, text: str) -> PlanAction | None:
        """An action from its words, None where they are no action."""
        for kind, rule in self.rules.items():
            match = re.fullmatch(rule.pattern, text.strip())
            if match is not None:
                return PlanAction(kind, match.groups())
        return None

    def legal(self, action: PlanAction, state: Facts) -> bool:
        """Whether all that the action needs is true."""
        rule = self.rules[action.kind]
        return rule.facts(rule.needs, action.objects) <= state

    def after(self, action: PlanAction, state: Facts) -> Facts:
        rule = self.rules[action.kind]
        return (state - rule.facts(rule.deletes, action.objects)) | rule.facts(rule.adds, action.objects)

    def legal_actions(self, state: Facts) -> Iterator[PlanAction]:
        """Every action that is legal in a state."""
        objects = sorted({name for fact in state for name in fact[1:]})
        for kind, rule in self.rules.items():
            for chosen in _bindings(rule.needs, state, objects, rule.places):
                if all(name.startswith(prefix) for name, prefix in zip(chosen, rule.prefixes, strict=False)):
                    yield PlanAction(kind, chosen)

    def read(self, text: str) -> tuple[Facts, list[str]]:
        """The facts of a state in words, and the pieces that state none; what is said not to be is no fact."""
        facts: set[tuple[str, ...]] = set()
        left: list[str] = []
        for piece in re.split(r",|\band\b|\n", text):
            words = piece.strip().strip(".").lower()
            if not words or " not " in words:
                continue
            matches = ((name, re.search(pattern, words)) for pattern, name in self.statements)
            fact = next(((name, *match.groups()) for name, match in matches if match is not None), None)
            if fact is None:
                left.append(words)
            else:
                facts.add(fact)
        return frozenset(facts), left

    def published(self, facts: Iterable[str]) -> Facts:
        """Facts as the file writes them, such as ``on_a_b``."""
        split = (fact.split("_") for fact in facts)
        return frozenset((name, *map(self._object, objects)) for name, *objects in split if name not in self.ignored)

    def _object(self, name: str) -> str:
        for pattern, written in self.objects:
            if re.fullmatch(pattern, name):
                return re.sub(pattern, written, name)
        return name


def _bindings(needs: tuple[str, ...], state: Facts, objects: list[str], places: str) -> Iterator[tuple[str, ...]]:
    """The objects for the places of a rule with which all that it needs is true."""
    by_name: dict[str, list[tuple[str, ...]]] = {}
    for fact in state:
        by_name.setdefault(fact[0], []).append(fact[1:])
    partial: list[dict[str, str]] = [{}]
    for need in needs:
        name, *over = need.split()
        grown: list[dict[str, str]] = []
        for bound in partial:
            for values in by_name.get(name, []):
                pairs = dict(zip(over, values, strict=True))
                if all(bound.get(place, value) == value for place, value in pairs.items()):
                    grown.append({**bound, **pairs})
        partial = grown
    for bound in partial:
        free = [place for place in places if place not in bound]
        for chosen in permutations(objects, len(free)):
            whole = {**bound, **dict(zip(free, chosen, strict=True))}
            yield tuple(whole[place] for place in places)


def _stacking(kinds: Mapping[str, str], names: tuple[str, str, str, str, str]) -> dict[str, ActionRule]:
    """The four actions of a world of stacks, under any words: pick up, put down, stack, unstack, each with objects."""
    clear, table, empty, holding, on = names
    lifted = (f"{clear} x", f"{table} x", empty)
    apart = (f"{on} x y", f"{clear} x", empty)
    held, over = (f"{holding} x",), (f"{holding} x", f"{clear} y")
    effects = (
        ("x", lifted, held, lifted),
        ("x", held, lifted, held),
        ("xy", over, apart, over),
        ("xy", apart, over, apart),
    )
    return {
        kind: ActionRule(f"{kind} {objects}", *effect)
        for (kind, objects), effect in zip(kinds.items(), effects, strict=True)
    }


_COLOURS: Final = (
    *("red", "blue", "orange", "yellow", "white", "magenta"),
    *("black", "cyan", "green", "violet", "silver", "gold"),
)
_BLOCK: Final = r"the (\w+) block"
_OBJECT: Final = r"object (\w+)"
_PLACE: Final = r"(location_\w+)"


def _logistics() -> dict[str, ActionRule]:
    rules: dict[str, ActionRule] = {}
    for carrier in ("truck", "airplane"):
        vehicle = rf"({carrier}_\w+)"
        rules[f"load {carrier}"] = ActionRule(
            rf"load (package_\w+) into {vehicle} at {_PLACE}", "xyz", ("at y z", "at x z"), ("in x y",), ("at x z",),
            ("package_", f"{carrier}_"),
        )  # fmt: skip
        rules[f"unload {carrier}"] = ActionRule(
            rf"unload (package_\w+) from {vehicle} at {_PLACE}", "xyz", ("in x y", "at y z"), ("at x z",), ("in x y",),
            ("package_", f"{carrier}_"),
        )  # fmt: skip
    rules["drive"] = ActionRule(
        rf"drive (truck_\w+) from {_PLACE} to {_PLACE} in (city_\w+)",
        "xyzc",
        ("at x y", "in-city y c", "in-city z c"),
        ("at x z",),
        ("at x y",),
        ("truck_",),
    )
    rules["fly"] = ActionRule(
        rf"fly (airplane_\w+) from {_PLACE} to {_PLACE}", "xyz", ("airport y", "airport z", "at x y"), ("at x z",),
        ("at x y",), ("airplane_",),
    )  # fmt: skip
    return rules


DOMAINS: Final[Mapping[str, Domain]] = {
    "blocksworld": Domain(
        rules=_stacking(
            {
                "pick up": _BLOCK,
                "put down": _BLOCK,
                "stack": f"{_BLOCK} on top of {_BLOCK}",
                "unstack": f"{_BLOCK} from on top of {_BLOCK}",
            },
            ("clear", "ontable", "handempty", "holding", "on"),
        ),
        statements=(
            (r"(\w+) block is clear", "clear"),
            (r"hand is empty", "handempty"),
            (r"hand is (?:currently )?holding (?:the )?(\w+)", "holding"),
            (r"(\w+) block is on top of the (\w+) block", "on"),
            (r"(\w+) block is on the table", "ontable"),
        ),
        objects=tuple(zip("abcdefghijkl", _COLOURS, strict=True)),
    ),
    "logistics": Domain(
        rules=_logistics(),
        statements=(
            (r"(\w+) is an airport", "airport"),
            (r"(\w+) is at (\w+)", "at"),
            (r"(\w+) is in the city (\w+)", "in-city"),
            (r"(\w+) is in (\w+)", "in"),
        ),
        objects=(
            (r"l(\d+)-(\d+)", r"location_\1_\2"),
            (r"p(\d+)", r"package_\1"),
            (r"t(\d+)", r"truck_\1"),
            (r"a(\d+)", r"airplane_\1"),
            (r"c(\d+)", r"city_\1"),
        ),
        ignored=frozenset({"city", "location", "obj", "truck", "airplane"}),
    ),
    "mystery_blocksworld": Domain(
        rules=_stacking(
            {
                "attack": _OBJECT,
                "succumb": _OBJECT,
                "overcome": f"{_OBJECT} from {_OBJECT}",
                "feast": f"{_OBJECT} from {_OBJECT}",
            },
            ("province", "planet", "harmony", "pain", "craves"),
        ),
        statements=(
            (r"object (\w+) craves object (\w+)", "craves"),
            (r"planet object (\w+)", "planet"),
            (r"province object (\w+)", "province"),
            (r"pain object (\w+)", "pain"),
            (r"harmony", "harmony"),
        ),
        objects=(),
    ),
}
"""The worlds by their names in the file."""
