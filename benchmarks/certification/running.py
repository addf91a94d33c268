"""Traces through the whole road: a reply as text, read, judged and committed by a guard."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from certification.cases import Case, answer, pairs_text, values_of
from certification.right_replies import RIGHT_REPLIES
from certification.right_ways import REFUSED_WAYS, RIGHT_WAYS
from certification.tallies import Tally
from certification.traces import STEP_KINDS, Trace, make_trace
from certification.truth import Truth
from certification.wrong_entries import WRONG_ENTRIES
from certification.wrong_replies import WRONG_REPLIES
from stepguard import Guard, Result
from stepguard.backends import Completion, Request
from stepguard.language.evaluation import evaluate
from stepguard.language.values import Value, to_exact
from stepguard.repair.rewriting import rewrite
from stepguard.repair.splitting import SplitWay, split
from stepguard.replies.formats import EquationFormat
from stepguard.testing import SimulatedModel, Slips

__all__ = ["ladder_runs", "refused_ways", "right_steps", "stand_ins", "stubborn_runs", "wrong_steps"]

_Separator = Literal[".", ","]
_SEPARATOR = re.compile(r"(?<=[0-9])[.,](?=[0-9])")
_TRIES = 200


@dataclass(frozen=True, slots=True)
class _Parrot:
    completion: Completion

    def complete(self, request: Request) -> Completion:
        return self.completion


def _run(
    trace: Trace,
    completion: Completion,
    *,
    segment: int | None = None,
    again: int | None = 0,
    decimal: _Separator = ".",
) -> Result:
    """One run of a trace on a model that always replies the same; all steps are asked at once if not told otherwise.

    `again` is how often it is asked again, None for the whole ladder.
    """
    guard = Guard(
        _Parrot(completion),
        segment=segment or len(trace.steps),
        repair=again,
        reply_format=EquationFormat(decimal=decimal),
        seed=0,
    )
    return guard.run(trace.procedure, trace.inputs)


def _with_commas(entry: object, numeric: bool) -> object:
    """An entry as a model writes it that writes decimals with a comma; a number of JSON's own keeps its point."""
    if isinstance(entry, str):
        return _SEPARATOR.sub(lambda found: ",."[found[0] == ","], entry) if numeric else entry
    if isinstance(entry, dict) and isinstance(entry.get("value"), str):
        return {**entry, "value": _with_commas(entry["value"], numeric)}
    return entry


def _true(value: Value | None, truth: Truth, case: Case) -> bool:
    if isinstance(truth, bool | str) or isinstance(value, bool | str) or value is None:
        return type(value) is type(truth) and value == truth
    return not case.spec.wrong(Fraction(to_exact(value)), case.made.exact)


def _untrue(trace: Trace, result: Result, chance: random.Random) -> list[str]:
    """The steps that were committed with a value that is not theirs."""
    found: list[str] = []
    places = {made.id: at for at, made in enumerate(trace.steps)}
    for record in result.steps:  # what does not rest on a refused step is committed without it
        case = Case(chance, trace, places[record.occurrence.step])
        committed = record.support != "unverified" and _true(record.value, case.made.truth, case)
        if not committed:
            found.append(case.made.id)
    return found


def _committed(result: Result, id: str) -> bool:
    return any(record.occurrence.step == id for record in result.steps)


def wrong_steps(seed: int, each: int, kind: str) -> tuple[Tally, dict[str, int]]:
    """Wrong steps of one kind planted in right traces; how many of them were accepted, and in which kinds of steps."""
    chance = random.Random(f"wrong:{seed}:{kind}")
    tally, seen = Tally(), dict.fromkeys(STEP_KINDS, 0)
    for trace, completion, at, said, decimal in _planted(chance, each, kind):
        again, segment = chance.choice([0, 0, 0, 0, 2]), chance.choice([None, None, 1, 2])
        result = _run(trace, completion, again=again, segment=segment, decimal=decimal)
        made = trace.steps[at]
        untrue = _untrue(trace, result, chance)
        accepted = _committed(result, made.id) or result.verified or bool(untrue)
        seen[made.kind] += 1
        tally.add(accepted, f"{made.spec.text} {made.step.formula or made.step.instruction}: {said} ({untrue})")
    return tally, {name: count for name, count in seen.items() if count}


_Planted = tuple[Trace, Completion, int, str, _Separator]


def _planted(chance: random.Random, each: int, kind: str) -> Iterator[_Planted]:
    kinds = list(STEP_KINDS)
    useful = dict.fromkeys(kinds, 1)  # kinds of steps at which this cannot be planted are tried less and less
    for _ in range(each):
        for _ in range(_TRIES):
            focus = chance.choices(kinds, [useful[name] for name in kinds])[0]
            trace = make_trace(chance, focus=focus)
            places = [at for at, made in enumerate(trace.steps) if made.kind == focus]
            at = chance.choice(places)
            if kind in WRONG_REPLIES:
                reply = WRONG_REPLIES[kind](trace, chance, at)
                if reply is not None:
                    yield trace, reply.completion, reply.at, (reply.completion.text or "")[:300], "."
                    break
            else:
                wrong = WRONG_ENTRIES[kind](Case(chance, trace, at))
                if wrong is not None:
                    useful[focus] = min(useful[focus] + 4, 40)
                    pairs = answer(trace, chance)
                    pairs[at] = pairs[at][0], wrong.entry
                    decimal: _Separator = "," if chance.random() < 0.15 else "."
                    if decimal == ",":
                        pairs = _commas(trace, pairs)
                    yield trace, Completion(pairs_text(pairs)), at, str(pairs[at][1])[:300], decimal
                    break


def _commas(trace: Trace, pairs: list[tuple[str, object]]) -> list[tuple[str, object]]:
    return [
        (name, _with_commas(entry, made.spec.numeric or made.spec.kind == "boolean"))
        for (name, entry), made in zip(pairs, trace.steps, strict=True)
    ]


def right_steps(seed: int, each: int, way: str) -> Tally:
    """Right steps written in one way, and how many of them were refused; the other steps are written in any way."""
    chance = random.Random(f"right:{seed}:{way}")
    tally = Tally()
    ways, wraps = list(RIGHT_WAYS), list(RIGHT_REPLIES)
    tries = 0
    while tally.n < each and tries < _TRIES * each:
        tries += 1
        trace = make_trace(chance, focus=chance.choice(list(STEP_KINDS)))
        pairs: list[tuple[str, object]] = []
        used: list[bool] = []
        for at, made in enumerate(trace.steps):
            case = Case(chance, trace, at)
            entry = RIGHT_WAYS[way](case)
            used.append(entry is not None)
            while entry is None:
                entry = RIGHT_WAYS[chance.choice(ways)](case)
            pairs.append((made.id, entry))
        if not any(used):
            continue
        wrap = chance.choice(wraps)
        decimal: _Separator = "," if chance.random() < 0.15 else "."
        if decimal == ",":
            pairs = _commas(trace, pairs)
        result = _run(trace, RIGHT_REPLIES[wrap](pairs, chance), decimal=decimal)
        untrue = _untrue(trace, result, chance)
        stopped = None if result.problem is None else result.problem.occurrence.step
        for at, made in enumerate(trace.steps):
            taken = _committed(result, made.id)
            if used[at] and (taken or made.id == stopped):  # what rests on a refused step was not judged
                refused = not taken or made.id in untrue
                problem = result.problem.deviation if result.problem is not None else None
                tally.add(refused, f"{made.spec.text} {made.step.formula}: {pairs[at][1]!r} in {wrap}: {problem}")
    return tally


def refused_ways(seed: int, each: int, way: str) -> Tally:
    """Steps written in a way that is refused; how many of them passed all the same."""
    chance = random.Random(f"refused:{seed}:{way}")
    tally = Tally()
    for _ in range(_TRIES * each):
        if tally.n >= each:
            break
        trace = make_trace(chance)
        pairs = answer(trace, chance)
        for at, (name, _) in enumerate(pairs):
            entry = REFUSED_WAYS[way](Case(chance, trace, at))
            if entry is not None:
                pairs[at] = name, entry
                result = _run(trace, Completion(pairs_text(pairs)))
                tally.add(_committed(result, name), f"{entry!r}")
                break
    return tally


def ladder_runs(seed: int, runs: int) -> dict[str, int]:
    """Whole runs up the whole ladder, on a model that slips in every known way; what was committed is compared.

    The model works its answers out with the package's own arithmetic; the truth that they are compared with does not.
    """
    chance = random.Random(f"ladder:{seed}")
    found = dict.fromkeys(
        ("runs", "verified", "attempts", "replies_with_deviations", "steps_committed", "untrue_steps"), 0
    )
    for number in range(runs):
        trace = make_trace(chance, length=8)
        answers = {made.id: _object(made.truth) for made in trace.steps if made.tree is None}
        slips = Slips.all(chance.choice([0.01, 0.03, 0.06]), systematic=chance.choice([0.1, 0.9]))
        model = SimulatedModel(slips=slips, seed=number, answers=answers)
        result = Guard(model, seed=number).run(trace.procedure, trace.inputs)
        found["runs"] += 1
        found["verified"] += result.status in ("verified", "checked")
        found["attempts"] += len(result.attempts)
        found["replies_with_deviations"] += sum(bool(attempt.deviations) for attempt in result.attempts)
        found["steps_committed"] += len(result.steps)
        found["untrue_steps"] += len(_untrue(trace, result, chance))
    return found


def stubborn_runs(seed: int, each: int) -> dict[str, int]:
    """Wrong replies of every kind, said again on every rung of the ladder; what was committed is compared.

    A step may be committed here: where a rung asks for it without its signs, a reply that had lost them is right.
    """
    found = {"runs": 0, "untrue_steps": 0}
    for kind in (*WRONG_ENTRIES, *WRONG_REPLIES):
        chance = random.Random(f"stubborn:{seed}:{kind}")
        for trace, completion, _, _, decimal in _planted(chance, each, kind):
            result = _run(trace, completion, again=None, decimal=decimal)
            found["runs"] += 1
            found["untrue_steps"] += len(_untrue(trace, result, chance))
    return found


def stand_ins(seed: int, traces: int) -> dict[str, int]:
    """What the ladder asks in the place of a step: rewritten or split, it must come to the value of the step."""
    chance = random.Random(f"stand-ins:{seed}")
    found = {"stand_ins": 0, "untrue": 0}
    for _ in range(traces):
        trace = make_trace(chance)
        for at, made in enumerate(trace.steps):
            if made.tree is None:
                continue
            values = values_of(trace, at)
            rewritten = [rewrite(made.step, values, turned=turned) for turned in (False, True)]
            for stand_in in (*rewritten, *(split(made.step, values, way=way) for way in get_args(SplitWay))):
                if stand_in is None:
                    continue
                reached = dict(values)
                while unknown := stand_in.behind(reached):
                    for step in unknown:
                        assert step.expression is not None
                        reached[step.id] = step.type.convert(evaluate(step.expression, reached))
                value = stand_in.restore(reached)
                found["stand_ins"] += 1
                found["untrue"] += not _true(value, made.truth, Case(chance, trace, at))
    return found


def _object(truth: Truth) -> object:
    return truth.numerator if isinstance(truth, Fraction) else truth
