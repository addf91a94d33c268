"""Chains of arithmetic and tracked states that models wrote, judged twice: by the package, and independently.

The second opinion on a link is the parser of Python with exact values of the benchmark's own; on a state, the swaps of
the question. Every disagreement gets a reason that is checked, or is listed as unexplained. Only ids, positions,
counts and reasons leave these functions.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from audit_real import ARITHMETIC, SCHOOL, TRACKING
from certification.python_reading import value_of
from certification.truth import number_text
from outside_states import accepted_states

from stepguard import Guard, Procedure, Step
from stepguard.auditing import Link, check_links
from stepguard.backends import Completion
from stepguard.errors import ExpressionError, ProcedureError

__all__ = ["chains", "notes", "tracking"]

_NOTE = re.compile(r"<<([^<>\n]*)>>")
_PLACES = re.compile(r"-?[0-9]*\.?([0-9]*)\Z")
_RUN = re.compile(r"[0-9.+\-*/() ]*\Z")
_SENTENCE_END = re.compile(r"\.\s.*\Z|\.\Z|, where.*\Z| and .*\Z")
_AGREE = {("equal", "true"), ("rounded", "rounded"), ("different", "false")}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _second(left: str, right: str) -> str:
    """A second opinion: equal, rounded (to the places that are written), floating, different or unreadable."""
    one, two = value_of(left), value_of(right)
    if one is None or two is None:
        return "unreadable"
    if one == two:
        return "equal"
    written = _PLACES.match(right.strip())
    places = len(written[1]) if written is not None else 0
    if written is not None and one.denominator != 1 and abs(one - two) < Fraction(1, 10**places):
        return "rounded"
    return "floating" if places >= 10 and abs(one - two) <= abs(one) / 10**9 else "different"


def _reason(left: str, right: str, opinion: str, verdict: str) -> str | None:
    """Why the package says something else than the second opinion; None where that is not explained."""
    both = f"{left}={right}"
    if opinion == "floating" and verdict == "rounded":
        return "the digits that floating point makes of an exact value are called rounded"
    if opinion != "unreadable":
        return None
    if verdict == "unread":
        if re.search(r"[A-Za-z]", both):
            return "a side holds a name: neither reads it"
        loose = any(each.count("(") != each.count(")") or not each.strip() for each in (left, right))
        return "a bracket is not closed, or the text ends there: neither reads it" if loose else None
    plain = [re.sub(r"([0-9.]+)%", r"(\1/100)", each.replace(",", "")) for each in (left, right)]
    again = _second(*plain)
    if (again, verdict) in _AGREE and "," in both:
        return "digits are grouped by commas, which Python does not read; without them both agree"
    if (again, verdict) in _AGREE and "%" in both:
        return "a percent sign, which Python does not read; as a hundredth both agree"
    if verdict in ("true", "false") and left.count("(") > left.count(")"):
        once = left.strip().removeprefix("(")
        if (_second(once, right), verdict) in _AGREE:
            return "a bracket is opened once too often; without it both agree"
    return None


class _Compared:
    def __init__(self) -> None:
        self.table: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.unexplained: list[str] = []
        self.false: dict[str, list[list[int]]] = {}

    def add(self, where: str, place: Sequence[int], left: str, right: str, verdict: str) -> None:
        opinion = _second(left, right)
        self.table[f"{verdict}, independently {opinion}"] += 1
        if verdict == "false":
            self.false.setdefault(where, []).append(list(place))
        if (opinion, verdict) not in _AGREE:
            reason = _reason(left, right, opinion, verdict)
            if reason is None:
                self.unexplained.append(f"{where} at {list(place)}: {verdict}, independently {opinion}")
            else:
                self.reasons[reason] += 1

    def to_dict(self) -> dict[str, Any]:
        return {
            "links": sum(self.table.values()),
            "verdicts": dict(sorted(self.table.items())),
            "disagreements_explained": dict(self.reasons),
            "disagreements_unexplained": self.unexplained,
            "false_links": self.false,
        }


def notes(folder: Path) -> dict[str, Any]:
    """Every ``<<expression=value>>`` of the school-maths solutions: as a link of a text, and as a step of a guard.

    Places are the line and the number of the annotation in the solution.
    """
    compared, counts = _Compared(), Counter[str]()
    steps: Counter[str] = Counter()
    unexplained: list[str] = []
    for row in _rows(folder / SCHOOL):
        texts = {"reference": row["reference"], **{name: each["text"] for name, each in row["solutions"].items()}}
        for name, text in texts.items():
            counts["solutions"] += 1
            links = check_links(text)
            for number, note in enumerate(_NOTE.finditer(text), 1):
                counts["annotations"] += 1
                where, place = f"{row['id']}/{name}", (text.count("\n", 0, note.start()) + 1, number)
                sides = note[1].split("=")
                inside = [link for link in links if note.start() <= link.place.start and link.place.end <= note.end()]
                if len(inside) != len(sides) - 1:
                    compared.unexplained.append(f"{where} at {list(place)}: {len(inside)} links of {len(sides)} sides")
                    continue
                counts["without_an_equation"] += len(sides) == 1
                for left, right, link in zip(sides, sides[1:], inside, strict=False):
                    compared.add(where, place, left, right, link.verdict)
                if len(sides) == 2:
                    kind, agreed = _as_step(sides[0], sides[1])
                    steps[kind] += 1
                    if not agreed:
                        unexplained.append(f"{where} at {list(place)}: {kind}")
    as_steps = {"outcomes": dict(sorted(steps.items())), "disagreements_unexplained": unexplained}
    return {**counts, **compared.to_dict(), "as_steps": as_steps}


def _as_step(left: str, right: str) -> tuple[str, bool]:
    """What a guard says of an annotation whose left side is the formula of a step, and whether that is so."""
    # A procedure has its numbers plain; what the model writes goes through as it stands.
    formula = re.sub(r"([0-9.]+)%", lambda rate: number_text(Fraction(rate[1]) / 100), left.replace(",", ""))
    try:
        procedure = Procedure([Step("t", formula)])
    except (ExpressionError, ProcedureError):
        return "no formula", value_of(formula) is None
    reply = Completion(json.dumps({"t": f"{left} = {right}"}))
    result = Guard(_Says(reply), repair=0, seed=0).run(procedure)
    opinion = _second(formula, right.replace(",", ""))
    if result.verified:
        return "accepted", opinion == "equal"
    return f"refused, independently {opinion}", opinion in ("different", "rounded", "floating")


class _Says:
    def __init__(self, reply: Completion) -> None:
        self._reply = reply

    def complete(self, request: object) -> Completion:
        return self._reply


def chains(folder: Path) -> dict[str, Any]:
    """Every link of the chains of arithmetic; places are the line and the number of the equals sign in it."""
    compared = _Compared()
    count = 0
    for row in _rows(folder / ARITHMETIC):
        count += 1
        text = row["transcript"]
        links = {_position(text, link): link for link in check_links(text)}
        for number, line in enumerate(text.split("\n"), 1):
            parts = line.split("=")
            for at, (before, after) in enumerate(pairwise(parts), 1):
                link = links.pop((number, at), None)
                if link is None:
                    compared.unexplained.append(f"{row['id']} at {[number, at]}: the package sees no link")
                else:
                    left, right = _left(before), _SENTENCE_END.sub("", after)
                    compared.add(str(row["id"]), (number, at), left, right, link.verdict)
        compared.unexplained += [f"{row['id']} at {list(place)}: no sign is there" for place in links]
    return {"transcripts": count, **compared.to_dict()}


def _position(text: str, link: Link) -> tuple[int, int]:
    return link.place.line, text.count("=", text.rfind("\n", 0, link.place.start) + 1, link.place.end)


def _left(before: str) -> str:
    """The arithmetic that a part ends with; all of it where a name belongs to it."""
    run = _RUN.search(before)
    assert run is not None
    side = run[0].strip()
    return before if not side or (side[0] in "+-*/" and before[: run.start()].strip()) else side


_STATE = re.compile(r"^\((\d+)\) (?:At the start|(\w+) and (\w+) [^:\n]*): (.*)\.$", re.MULTILINE)
_HELD = re.compile(r"(\w+): ([^,]+)")
_SWAP = re.compile(r"(?:First|Then|Finally), (\w+) and (\w+) ")


def tracking(folder: Path) -> dict[str, Any]:
    """Every state of the object tracking, from the one that is told before it and the swap that the question names."""
    counts: Counter[str] = Counter()
    wrong: dict[str, list[int]] = {}
    disagreements: list[str] = []
    for row in _rows(folder / TRACKING):
        counts["transcripts"] += 1
        swaps = _SWAP.findall(row["question"])
        told = [
            (int(number), one, other, dict(_HELD.findall(held)))
            for number, one, other, held in _STATE.findall(row["transcript"])
        ]
        if [each[0] for each in told] != list(range(len(swaps) + 1)):
            # The states that are there must still follow from one another, by the swaps that are told with them.
            counts["transcripts_that_leave_swaps_out"] += 1
            swaps = [(one, other) for _, one, other, _ in told[1:]]
        for at, (number, one, other, held) in enumerate(told[1:]):
            counts["states"] += 1
            before, (first, second) = told[at][3], swaps[at]
            right = held == {**before, first: before.get(second), second: before.get(first)}
            (accepted,) = accepted_states(_written(before), [_written(held)], [_Swap(first, second)])
            counts["swaps_told_wrongly"] += {one, other} != {first, second}
            if not right:
                counts["wrong_states"] += 1
                wrong.setdefault(str(row["id"]), []).append(number)
            if right != accepted:
                disagreements.append(f"{row['id']} state {number}: guard {accepted}, independently {right}")
    return {**counts, "false_states": wrong, "disagreements_unexplained": disagreements}


def _written(held: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {held[name]}" for name in sorted(held))


class _Swap:
    def __init__(self, one: str, other: str) -> None:
        self._names = one, other

    def __call__(self, state: str) -> str | None:
        held = dict(_HELD.findall(state))
        one, other = self._names
        if one not in held or other not in held:
            return None
        return _written({**held, one: held[other], other: held[one]})
