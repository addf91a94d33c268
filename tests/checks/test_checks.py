"""Checks of the user's own, and which verdict decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, cast

import pytest
from tables import all_rows

from stepguard.checks import Check, Judgement, judge_claims
from stepguard.core.verdicts import Claim, Deviation, Outcome, Verdict, shorten
from stepguard.errors import ConfigError, ProcedureError
from stepguard.language.values import Value
from stepguard.procedure.steps import Step

VALUES: dict[str, Value] = {"x": 12, "y": 7, "secret": "unread"}
RIGHT = Claim("t", ("12 + 7",), "19", "12 + 7 = 19")
WRONG = Claim("t", ("12 + 7",), "18", "12 + 7 = 18")


def judge(*checks: object, claim: Claim = RIGHT, step: Step | None = None) -> Judgement:
    found = cast("tuple[Check, ...]", checks)
    steps = [step or Step("t", "x + y", checks=found)]
    (judgement,) = judge_claims(steps, [claim], VALUES)
    return judgement


def words(*checks: object, type_: str = "text", value: str = "Lyon") -> Judgement:
    step = Step("t", instruction="Name it.", reads=["x"], type=type_, checks=cast("tuple[Check, ...]", checks))
    return judge(step=step, claim=Claim("t", (), value, value))


def raising(error: BaseException) -> Callable[..., bool]:
    def check(*_: object) -> bool:
        raise error

    return check


def giving(found: object) -> Callable[..., object]:
    def check(*_: object) -> object:
        return found

    return check


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text either")


@all_rows(
    "check, outcome",
    [
        *((giving(True), "pass"), (giving(False), "fail"), (giving(Verdict("pass", "mine")), "pass")),
        (giving(Verdict("fail", "mine", "wrong_operand")), "fail"),
        *((giving(Verdict("undecided", "mine")), "undecided"), (giving(1), "undecided"), (giving(0), "undecided")),
        *((giving("yes"), "undecided"), (giving(Decimal(1)), "undecided"), (giving([]), "undecided")),
        *((giving(NotImplemented), "undecided"), (raising(ValueError("odd")), "undecided")),
        *((raising(AssertionError()), "undecided"), (raising(RecursionError()), "undecided")),
        *((raising(KeyError("x")), "undecided"), (raising(StopIteration()), "undecided")),
        (raising(UnspeakableError()), "undecided"),
        *((raising(ExceptionGroup("many", [ValueError("odd")])), "undecided"), (partial(giving(True)), "pass")),
    ],
)
def test_a_check_passes_only_by_saying_so(check: object, outcome: str) -> None:
    """Only True and a passing verdict pass; whatever else a check returns or raises, it did not decide."""
    verdict = words(check).verdict
    assert verdict is not None
    assert verdict.outcome == outcome


@pytest.mark.parametrize("check", [raising(ValueError("odd")), giving("yes"), giving(1)])
def test_a_check_that_did_not_decide_says_so(check: object) -> None:
    """Where a check raises, or returns no verdict, the kind of the deviation is that nothing was decided."""
    verdict = words(check).verdict
    assert verdict is not None
    assert (verdict.kind, verdict.retry) == ("undecided", True)


def test_a_check_that_cannot_be_called_is_refused() -> None:
    """Where the step is made, not when it is reached."""
    with pytest.raises(ProcedureError, match="no check"):
        words("not callable")


def test_a_check_that_lacks_a_variable_is_refused() -> None:
    """A check that says what it reads is only given to steps that read it, or set it."""

    class Needing:
        reads = ("x", "t")

        def __call__(self, *_: object) -> bool:
            return True

    assert words(Needing()).value == "Lyon"
    with pytest.raises(ProcedureError, match="needs 'x', which the step does not read"):
        Step("t", instruction="Name it.", reads=["y"], checks=[Needing()])


def test_a_check_that_does_not_fit_is_refused() -> None:
    """A check that says that it cannot judge such a step is refused where the step is made."""

    class Numeric:
        def misfit(self, step: Step) -> str | None:
            return None if step.type.numeric else f"{step.type} is no number"

        def __call__(self, *_: object) -> bool:
            return True

    assert words(Numeric(), type_="integer", value="3").value == 3
    with pytest.raises(ProcedureError, match="step 't': text is no number"):
        words(Numeric())


def test_none_is_not_applicable() -> None:
    """A check that returns None does not apply, and a step to which none applies has no verdict."""
    judgement = words(giving(None))
    assert [verdict.outcome for verdict in judgement.verdicts] == ["not_applicable"]
    assert judgement.verdict is None


def test_an_error_text_is_no_pass() -> None:
    """A text without a check is never passed, whatever it says."""
    judgement = words(value="Error: tool not available")
    assert (judgement.value, judgement.verdicts, judgement.verdict) == ("Error: tool not available", (), None)


def test_an_interruption_is_not_a_verdict() -> None:
    """An interrupt leaves a check as it would leave any code."""
    with pytest.raises(KeyboardInterrupt):
        words(raising(KeyboardInterrupt()))


@pytest.mark.parametrize("error", [SystemExit(1), asyncio.CancelledError()])
def test_a_check_that_exits_did_not_decide(error: BaseException) -> None:
    """A check that ends the program, or is cancelled by itself, is undecided as one that raises."""
    verdict = words(raising(error)).verdict
    assert verdict is not None
    assert verdict.outcome == "undecided"


def test_a_reason_can_be_written_anywhere() -> None:
    """The text of an error is cut, and holds nothing that cannot be printed."""
    verdict = words(raising(ValueError("\ud800\x1b[2J" + "x" * 9_000))).verdict
    assert verdict is not None
    assert "ValueError: \\ud800\\x1b[2Jxxx" in verdict.reason
    assert len(verdict.reason.encode()) == 500


def test_a_check_sees_only_what_the_step_reads() -> None:
    """A check gets the step, the values it reads, the value it would get, and the claim, and nothing more."""
    seen: list[tuple[str, dict[str, Value], Claim]] = []

    def check(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        seen.append((step.id, dict(values), claim))
        return True

    judge(check)
    assert seen == [("t", {"x": 12, "y": 7, "t": 19}, RIGHT)]


def test_a_check_cannot_change_what_it_sees() -> None:
    """A check that writes to the values fails to decide, and the values stay as they were."""

    def check(step: Step, values: Any, claim: Claim) -> bool:
        values["x"] = 0
        return True

    before = dict(VALUES)
    verdict = words(check).verdict
    assert verdict is not None
    assert verdict.outcome == "undecided"
    assert before == VALUES


def test_a_check_sees_the_values_of_the_segment() -> None:
    """A check sees the value that the step before it claimed."""
    seen: list[Value] = []

    def check(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        seen.append(values["t"])
        return True

    steps = [Step("t", "x + y"), Step("u", instruction="Say it.", reads=["t"], checks=[check])]
    judged = judge_claims(steps, [RIGHT, Claim("u", (), "nineteen", "nineteen")], VALUES)
    assert [judgement.value for judgement in judged] == [19, "nineteen"]
    assert seen == [19]


@all_rows(
    "first, beyond, judged",
    [
        (RIGHT, False, [19, 38]),
        (RIGHT, True, [19, 38]),
        (WRONG, False, [18]),
        (WRONG, True, [18, 38]),
        (Claim("t", (), "nineteen", "nineteen"), False, [None]),
        (Claim("t", (), "nineteen", "nineteen"), True, [None]),
    ],
)
def test_judging_ends_at_what_is_not_accepted(first: Claim, beyond: bool, judged: list[Value | None]) -> None:
    """Claims behind a wrong one are judged only for observing; behind one that cannot be read, never."""
    steps = [Step("t", "x + y"), Step("u", "t * 2")]
    claims = [first, Claim("u", ("19 * 2",), "38", "19 * 2 = 38")]
    found = judge_claims(steps, claims, VALUES, beyond_failure=beyond)
    assert [each.value for each in found] == judged
    if found[0].value is None:
        assert found[0].verdicts[0].kind == "malformed"


def test_a_value_of_no_weight_does_not_end_judging() -> None:
    """False, zero and an empty text are values like any other."""
    steps = [Step("a", "x < y"), Step("b", "x - 12"), Step("c", instruction="Say nothing."), Step("d", "b + 1")]
    claims = [Claim("a", ("12 < 7",), "false", ""), Claim("b", ("12 - 12",), "0", ""), Claim("c", (), "", "")]
    found = judge_claims(steps, [*claims, Claim("d", ("0 + 1",), "1", "")], VALUES)
    assert [each.value for each in found] == [False, 0, "", 1]


PASS, FAIL = Verdict("pass", "p"), Verdict("fail", "f", "wrong_value")
LOST, SKIP = Verdict("undecided", "u"), Verdict("not_applicable", "n")


@pytest.mark.parametrize(
    ("verdicts", "decides"),
    [
        *(((), None), ((SKIP,), None), ((SKIP, PASS), PASS), ((PASS, LOST), LOST), ((LOST, PASS), LOST)),
        *(((PASS, LOST, FAIL), FAIL), ((FAIL, LOST, PASS), FAIL), ((FAIL, Verdict("fail", "g")), FAIL)),
        *(((LOST, Verdict("undecided", "v"), PASS), LOST), ((PASS, Verdict("pass", "q")), PASS)),
    ],
)
def test_the_worst_verdict_decides(verdicts: tuple[Verdict, ...], decides: Verdict | None) -> None:
    """A failure goes before an undecided verdict, that before a pass, and the first of a kind before the others."""
    assert Judgement(RIGHT, 19, verdicts).verdict == decides
    if verdicts and decides is not None:
        assert words(*(giving(verdict) for verdict in verdicts)).verdict == decides


def test_no_check_overrules_the_arithmetic() -> None:
    """A wrong value fails although the user's check passes, and a right one although it is right."""
    wrong, refused = judge(giving(True), claim=WRONG).verdict, judge(giving(False)).verdict
    assert wrong is not None
    assert refused is not None
    assert (wrong.outcome, wrong.check) == ("fail", "arithmetic")
    assert (refused.outcome, refused.kind) == ("fail", "wrong_value")


def test_an_unreadable_value_reaches_no_check() -> None:
    """A value that is none of the step's type fails before any check is called."""
    judgement = words(raising(AssertionError("called")), type_="integer", value="many")
    assert judgement.value is None
    assert [(verdict.outcome, verdict.check) for verdict in judgement.verdicts] == [("fail", "type")]


class Named:
    def __init__(self, name: object) -> None:
        self.__name__ = name

    def __call__(self, *_: object) -> bool:
        return True


@pytest.mark.parametrize(
    ("check", "name"),
    [(giving(True), "check"), (Named("mine"), "mine"), (Named(3), "Named"), (partial(giving(1)), "partial")],
)
def test_a_verdict_names_its_check(check: object, name: str) -> None:
    """A verdict carries the name of the callable, or of its class where it has none."""
    assert words(check).verdicts[0].check == name


@all_rows(
    "outcome, fields",
    [
        ("passed", {}),
        (True, {}),
        (None, {}),
        ("fail", {"kind": "wrong"}),
        ("fail", {"reason": ValueError("x")}),
        ("fail", {"check": None}),
    ],
)
def test_a_verdict_uses_the_closed_lists(outcome: object, fields: dict[str, object]) -> None:
    """A verdict with an unknown outcome or kind, or a reason that is no text, cannot be made, and so never passes."""
    arguments: dict[str, Any] = {"check": "mine", **fields}
    with pytest.raises(ConfigError):
        Verdict(cast(Outcome, outcome), **arguments)
    verdict = words(lambda *_: Verdict(cast(Outcome, outcome), **arguments)).verdict
    assert verdict is not None
    assert verdict.outcome == "undecided"


def test_reasons_can_be_encoded() -> None:
    """Lone surrogates and control characters in a reason are escaped, line breaks and other scripts kept."""
    text = "\ud800 \x1b[31m \x00 é ✓\nnext"
    for reason in (Deviation("malformed", None, text).reason, Verdict("pass", "mine", reason=text).reason):
        assert reason == "\\ud800 \\x1b[31m \\x00 é ✓\nnext"
        reason.encode()


@pytest.mark.parametrize(
    ("text", "length", "short"),
    [
        *(("abc", 3, "abc"), ("abcdef", 5, "ab..."), ("a\nb", 9, "a\\nb")),
        ("\ud800" * 9, 9, "\\ud800..."),
        *(("", 5, ""), ("é✓", 5, "é✓")),
    ],
)
def test_shortens_foreign_text(text: str, length: int, short: str) -> None:
    """Foreign text is cut to a length and stands on one printable line."""
    assert shorten(text, length) == short
