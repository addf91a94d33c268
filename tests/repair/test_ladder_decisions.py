"""What the ladder names next, as a function of how a step has failed: one row for each reason to go on, up or away."""

from __future__ import annotations

from typing import Any

import pytest
from ladder_harness import Stubborn, never
from tables import all_rows

from stepguard import Ladder, Procedure
from stepguard.language.values import Value
from stepguard.repair.policy import Failures
from stepguard.repair.rungs import (
    FIRST,
    Code,
    Draft,
    Eliminate,
    Isolate,
    Question,
    Resample,
    Rewrite,
    Rung,
    Split,
    Vote,
    another_model,
    person,
)

pytestmark = pytest.mark.once

STEPS = {
    name: Procedure.parse(f"inputs: x, y, letter: text\nt: {text}").steps[0]
    for name, text in {
        "sum": "number = x - y",
        "share": "percent = x / y",
        "order": "boolean = x > y",
        "yes": 'boolean = "Is it?" (reads letter)',
        "pick": 'one_of(a, b, c, d, e) = "Which?"',
        "size": 'one_of(s, m, l) = "Which?"',
    }.items()
}
VALUES: dict[str, Value] = {"x": -96, "y": -106, "letter": "short"}
LETTER: dict[str, Value] = {**VALUES, "letter": "I am Anna, from Rome. " * 12}
MODEL, ANNA = another_model(Stubborn(never)), person(lambda step, values: None)
UNREAD = Failures(STEPS["sum"], VALUES, ["malformed"], [FIRST], advanced=[False], unread=True)
SEGMENT = Ladder([Resample()]).next(UNREAD)
assert SEGMENT is not None
ALWAYS: dict[str, Rung] = {"ask": FIRST, "segment": SEGMENT, "longer": Rung("longer")}


def failures(rungs: list[Rung], failed: str, **state: Any) -> Failures:
    """How a step has failed: ``RUNG:KIND`` each, ``RUNG=VALUE`` for a wrong value, + where it got further."""
    named = {**ALWAYS, **{rung.name: rung for rung in rungs}}
    made = Failures(STEPS[state.pop("step", "sum")], state.pop("values", VALUES), **state)
    for each in failed.split():
        name, sign, said = each.rstrip("+").replace("=", " = ").replace(":", " : ").split()
        made.rungs.append(named[name])
        made.kinds.append("wrong_value" if sign == "=" else said)  # type: ignore[arg-type]
        made.advanced.append(each.endswith("+"))
        made.last_wrong = said if sign == "=" else None
        if sign == "=":
            made.wrong.append(said)
            made.refused.append(said)
    return made


DECISIONS: list[tuple[list[Rung], str, dict[str, Any], str | None]] = [
    # What was cut off is asked again as it was, with a higher cap, until three were.
    ([Resample(), Question()], "ask:truncated", {}, "longer"),
    ([Resample(), Question()], "ask:truncated longer:truncated", {}, "longer"),
    ([Resample(), Question()], "ask:truncated longer:truncated longer:truncated", {}, "resample"),
    ([Resample(), Question()], "ask:truncated", {"runaways": 1}, "resample"),
    ([Resample(), Question()], "ask:malformed segment:truncated", {}, "longer"),
    ([Resample(), Question(), Draft()], "ask=9 question:truncated", {}, "question"),
    ([Resample(), Question()], "ask:truncated longer=9", {}, "resample"),
    # What got further goes on, whatever stands before it, and what stands still is used up.
    ([Rewrite(), Split()], "ask=9 split=8+", {}, "split"),
    ([Split(), Resample()], "ask=9 split=8+ split=7", {}, "resample"),
    # Where nothing could be read the whole segment is asked again, once.
    ([Resample(), Question()], "ask:malformed", {"unread": True}, "segment"),
    ([Resample(), Question()], "ask:malformed", {}, "resample"),
    ([Resample(), Question()], "ask:malformed segment:malformed", {"unread": True}, "question"),
    ([Question(), Resample()], "ask:malformed segment:malformed", {"unread": True}, "question"),
    ([Question(), Resample()], "ask:malformed segment=9", {}, "question"),
    ([Resample(), Question()], "ask:refused", {"unread": True}, None),
    # A vote is cast where no check decides, as often as it says, and again where its form was wrong.
    ([Resample(), Vote(times=2)], "ask:undecided", {}, "vote"),
    ([Resample(), Vote(times=2)], "ask:undecided vote:undecided", {}, "vote"),
    ([Resample(), Vote(times=2)], "ask:undecided vote:undecided vote:undecided", {}, None),
    ([Resample(), MODEL, Vote(times=2)], "ask:undecided vote:undecided vote:undecided", {}, "another_model"),
    ([Resample(), Vote(times=2)], "ask:undecided vote:malformed", {}, "vote"),
    ([Resample(), Vote(times=2)], "ask:undecided vote=9", {}, "resample"),
    ([Resample(), Vote()], "ask:malformed", {}, "resample"),
    ([Resample()], "ask:undecided", {}, "resample"),
    # A model that declines, or says the same again and again, is not asked; others are.
    ([Resample(), MODEL], "ask:refused", {}, "another_model"),
    ([Resample(), MODEL], "ask=9 resample:empty", {}, "another_model"),
    ([Resample(times=2), MODEL], "ask=9 resample:empty", {}, "resample"),
    ([Resample(times=2), MODEL], "ask:empty resample:empty", {}, "another_model"),
    ([MODEL, Resample()], "ask=9 another_model:refused", {}, "resample"),
    ([MODEL, ANNA, Resample()], "ask:empty another_model:empty person:empty", {}, "resample"),
    ([Draft(), MODEL], "ask:malformed ask:malformed ask:malformed", {"echoes": 3}, "another_model"),
    ([Draft(), Split(), Question(), MODEL], "ask=9", {"runaways": 1}, "split"),
    ([Draft(), Split(), Question(), MODEL], "ask=9", {"runaways": 1, "ran_on": True}, "question"),
    ([Resample(), MODEL], "ask=9", {"hopeless": True}, None),
    ([], "ask=9", {}, None),
    # A guess is not asked for; what asks something else is, and others until they err.
    ([Resample(), MODEL], "ask=true", {"step": "yes"}, "another_model"),
    ([Resample(), MODEL], "ask=true another_model=true", {"step": "yes"}, None),
    ([Resample(), MODEL, ANNA], "ask=true another_model=true", {"step": "yes"}, "person"),
    ([Resample(), another_model(Stubborn(never), times=2)], "ask=9 another_model=8", {}, "resample"),
    ([Resample()], "ask:malformed", {"step": "yes"}, "resample"),
    ([Resample(), Split()], "ask=true", {"step": "order"}, "split"),
    ([Resample()], "ask=a", {"step": "pick"}, "resample"),
    ([Resample(times=2)], "ask=a resample=b", {"step": "pick"}, None),
    ([Resample(times=3)], "ask=a resample=a", {"step": "pick"}, None),
    ([Resample(), Eliminate()], "ask=s", {"step": "size"}, "eliminate"),
    ([Eliminate(times=9)], "ask=s eliminate=m eliminate=l eliminate=xs", {"step": "size"}, "eliminate"),
    ([Eliminate(times=9)], "ask=s eliminate=m eliminate=l eliminate=xs eliminate=xl", {"step": "size"}, None),
    # A step that reads a document leads its segment once more before it is asked by itself.
    ([Resample(), Question()], "ask=9", {"values": LETTER}, "segment"),
    ([Resample(), Question()], "ask=9", {"values": LETTER, "isolated": True}, "resample"),
    ([Resample(times=2), Question()], "ask=9 segment=8", {"values": LETTER}, "resample"),
    ([Resample(temperature=1.0), Question()], "ask=9", {"values": LETTER}, "resample"),
    ([Rung("warm", temperature=0.8), Question()], "ask=9", {"values": LETTER}, "warm"),
    ([Isolate(), Resample()], "ask=9", {"values": LETTER, "isolated": True}, "resample"),
    ([Question(), Resample()], "ask=9 question=8", {"values": LETTER}, "resample"),
    ([Isolate(), Question()], "ask=9", {"isolated": True}, "question"),
    # A rung is left when it was used as often as it says, or brought the same wrong value again.
    ([Resample(times=3), Question()], "ask=9 resample=8", {}, "resample"),
    ([Resample(times=3), Question()], "ask=9 resample=9", {}, "question"),
    ([Resample(times=3), Question()], "ask=9 resample=9 resample:malformed", {}, "resample"),
    ([Resample(times=2), Question()], "ask=9 resample=8 resample=7", {}, "question"),
    ([Resample(times=2), Question()], "ask=9 resample=8 resample:truncated", {"runaways": 1}, "resample"),
    ([Resample(times=3), Question(times=2), Draft()], "ask=9 resample=8 question=7", {}, "question"),
    ([Resample(times=3), Question()], "ask=9 resample=8 ask=7", {}, "resample"),
    ([Resample()], "ask=9 resample=8", {}, None),
    # What seldom cured such steps comes last, but for what goes on; nobody else comes earlier for it.
    ([Resample(), Question()], "ask=9", {"useless": frozenset({"resample"})}, "question"),
    ([Resample(), Question()], "ask=9 question=8", {"useless": frozenset({"resample"})}, "resample"),
    ([Resample(times=2), Question()], "ask=9 resample=8", {"useless": frozenset({"resample"})}, "resample"),
    ([Resample(), MODEL, Question()], "ask=9", {"useless": frozenset({"resample"})}, "resample"),
    ([MODEL, ANNA], "ask=9", {"useless": frozenset({"another_model"})}, "another_model"),
    # What is hard as it stands is asked in other words first, once that was seen.
    ([Resample(), Rewrite()], "ask=9", {"step": "share"}, "rewrite"),
    ([Resample(), Rewrite()], "ask:malformed", {"step": "share"}, "resample"),
    ([Resample(times=2), Rewrite()], "ask:malformed resample=9", {"step": "share"}, "resample"),
    ([Resample(), Rewrite()], "ask=9", {}, "resample"),
]  # fmt: skip


@all_rows("rungs, failed, state, following", DECISIONS)
def test_what_is_asked_next_follows_from_how_a_step_has_failed(
    rungs: list[Rung], failed: str, state: dict[str, Any], following: str | None
) -> None:
    """Of each reason to ask in another way, in the same way again, or nobody, and of what looks like it and is not."""
    found = Ladder(rungs).next(failures(rungs, failed, **state))
    assert ("segment" if found is SEGMENT else found and found.name) == following


RETRIES = [
    *((3, "ask=9", "resample"), (3, "ask=9 resample=9", "resample"), (3, "ask=9 resample=9 resample=9", None)),
    *((2, "ask=9 resample=8", "resample"), (2, "ask=9 resample=8 resample=7", None), (0, "ask=9", None)),
]


@all_rows("retries, failed, following", RETRIES)
def test_a_number_is_so_many_resamples_until_three_values_are_equal(
    retries: int, failed: str, following: str | None
) -> None:
    """``Ladder.of`` asks again as often as it says, and no more where the same value is claimed a third time."""
    ladder = Ladder.of(retries)
    found = ladder.next(failures(list(ladder.rungs), failed))
    assert (found and found.name) == following


@all_rows(
    "rungs, failed, state, said",
    [
        ([Resample()], "ask=true", {"step": "yes"}, ": 1 value is left, so that"),
        ([Resample()], "ask=true ask=false ask=maybe", {"step": "yes"}, ": no value is left, so that"),
        ([Resample()], "ask=a ask=b ask=a", {"step": "pick"}, ": 3 values are left, so that"),
        ([Resample()], "ask=a", {"step": "pick"}, None),
        ([], "ask=true", {"step": "yes"}, None),
        ([Resample()], "ask:malformed", {"step": "yes"}, None),
        ([Resample()], "ask:refused", {}, "the model declines; have somebody else answer it"),
        ([Resample()], "ask:empty", {}, None),
        ([Code()], "ask=9", {}, None),
    ],
)
def test_why_a_step_was_not_asked_again(
    rungs: list[Rung], failed: str, state: dict[str, Any], said: str | None
) -> None:
    """Few values left, or a model that declines; where rungs ran out nothing is said."""
    found = Ladder(rungs).explain(failures(rungs, failed, **state))
    assert (found is None) if said is None else (found is not None and said in found)
