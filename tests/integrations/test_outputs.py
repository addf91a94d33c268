"""One checker for the outputs of agents and of tools: what is claimed is right, all of it, or it is rejected."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any

import pytest
from pydantic import BaseModel, Field, RootModel, computed_field
from tables import all_rows

from stepguard import Input, Procedure, Step
from stepguard.core.verdicts import Verdict
from stepguard.errors import ConfigError, InputError
from stepguard.integrations.outputs import OutputCheck, OutputChecker
from stepguard.language.strict_json import decode

pytestmark = pytest.mark.once

SUMS = Procedure.parse("name: sums\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3")
SHARE = Procedure.parse("inputs: x, rate: percent\nshare: percent = rate / 2\nfee: decimal(2) = share * x")
WORDS = Procedure(
    [
        Step("n", instruction="Count the words.", reads=["s"], type="integer"),
        Step("twice", "n * 2"),
        Step("m", "twice + 1", checks=[lambda step, values, claim: values["twice"] < 100]),
    ],
    inputs=[Input("s", "text")],
)


def checked(output: object, procedure: Procedure | Step = SUMS, given: Any = None, **options: Any) -> OutputCheck:
    checker = OutputChecker(procedure, **options)
    values = checker.accept({"x": 12, "y": 7} if given is None else given)
    return asyncio.run(checker.check(output, values))


class Coin(Enum):
    """Values that a class wraps."""

    RIGHT = 57
    WRONG = 58


class Aliased(BaseModel):
    model_config = {"populate_by_name": True}
    subtotal: int = Field(alias="t2")
    t1: int | None = Field(alias="theTotal")


@dataclass
class Worked:
    work: str | None
    value: object


class Computed(BaseModel):
    t2: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def t1(self) -> int:
        """Worked out by the class."""
        return self.t2 * 3 + 1


@pytest.mark.parametrize(
    "output",
    [
        *(57, 57.0, Decimal("57.00"), Fraction(57), Coin.RIGHT, "57", "19 * 3 = 57", RootModel[int](57)),
        *(RootModel[dict[str, int]]({"t1": 57}), {"t1": "t2 * 3 = 19 * 3 = 57", "t2": 19, "x": "12"}),
        *({"t1": {"work": "19 * 3", "value": 57}}, {"t1": Worked("19 * 3", "57"), "answer": Worked(None, 57)}),
        *('{"answer": "19 * 3 = 57"}', Aliased.model_validate({"subtotal": 19, "t1": 57})),
    ],
    ids=str,
)
def test_an_output_that_is_right_is_verified(output: object) -> None:
    """Of Python or JSON, with its working or without, alone or in fields: what it says is what counts."""
    check = checked(output)
    assert (check.verified, check.step, check.kind, check.strength) == (True, None, None, "proved")
    assert (check.values["t2"], check.values["t1"]) == (19, 57)


@all_rows(
    "output, step, kind",
    [
        *((Coin.WRONG, "t1", "wrong_value"), ("20 * 3 = 57", "t1", "wrong_operand")),
        ({"t1": {"work": "20 * 3", "value": 57}}, "t1", "wrong_operand"),
        *(({"t1": Worked("20 * 3", 57)}, "t1", "wrong_operand"), ({"t1": 57, "answer": 58}, "t1", "wrong_value")),
        *(({"t1": 57, "answer": "20 * 3 = 57"}, "t1", "wrong_operand"), ({"t1": 57, "x": 13}, "x", "wrong_operand")),
        *(({"t1": 57, "x": None}, "x", "wrong_operand"), ({"t1": 57, "x": True}, "x", "wrong_operand")),
        *(({"t1": 57, "t2": None}, "t2", "malformed"), ({"t1": 57, 1: 2}, None, "extra_step")),
        ('{"t1": 57, "t1": 57}', "t1", "duplicate_step"),
        ('{"t1": 57, "John Doe": 1, "John Doe": 1}', None, "duplicate_step"),
        (decode('{"t1": {"work": "19 * 3", "value": 58, "value": 57}}'), "t1", "malformed"),
        *(({"t1": {"work": 3, "value": 57}}, "t1", "malformed"), ({"t1": {"value": 57}}, "t1", "malformed")),
        *(({"t1": "wait, 57"}, "t1", "self_correction"), ({"t1": date(2026, 1, 1)}, "t1", "malformed")),
        ({"t2": 19}, "t1", "missing_step"),
        (Aliased.model_validate({"t2": 19, "theTotal": None}), "t1", "missing_step"),
        *((Computed(t2=19), "t1", "wrong_value"), (RootModel[list[int]]([57]), "t1", "malformed")),
    ],
)
def test_an_output_that_is_not_right_is_rejected(output: object, step: str | None, kind: str) -> None:
    """Wrong anywhere, in working, repetitions or computed fields; what is told of it holds no value."""
    check = checked(output)
    assert (check.verified, check.step, check.kind) == (False, step, kind)
    assert "57" not in check.summary()
    assert "John Doe" not in check.summary()
    assert pickle.loads(pickle.dumps(check)) == check


@pytest.mark.parametrize(("share", "verified"), [("5%", True), ("10% / 2 = 5%", True), (5, False), ("5", False)])
def test_a_percentage_has_its_sign(share: object, verified: bool) -> None:
    """A bare number could be meant either way, so it is refused, as it is everywhere."""
    output = {"share": share, "fee": "10.00"}
    assert checked(output, SHARE, {"x": 200, "rate": "10%"}).verified is verified


def test_an_input_with_a_default_may_be_left_out_behind_an_output() -> None:
    """The output is judged with what the procedure says of it, unless another value is given."""
    fee = Procedure.parse("inputs: x, rate: percent = 10%\nfee = x * rate")
    assert checked({"fee": 5}, fee, {"x": 50}).verified
    assert not checked({"fee": 5}, fee, {"x": 50, "rate": "20%"}).verified


def test_working_is_judged_where_a_step_does_not_ask_for_it() -> None:
    """A right value with a wrong working is refused, whether or not the step has to show any."""
    step = Step("t", "a + b", show_work=False)
    assert checked("3", step, {"a": 1, "b": 2}).verified
    assert checked("2 + 2 = 3", step, {"a": 1, "b": 2}).kind == "wrong_operand"


def test_what_rests_on_an_unverified_step_is_not_verified() -> None:
    """A right sum of a value that nobody vouches for is named, computed steps between included."""
    output = {"n": 3, "m": 7}
    check = checked(output, WORDS, {"s": "a b c"})
    assert (check.verified, check.kind, check.retry) == (False, "unverified", False)
    assert check.summary() == "nothing vouches for n"
    allowed = checked(output, WORDS, {"s": "a b c"}, at_least="unverified")
    assert (allowed.verified, list(allowed.weak)) == (True, ["n", "twice", "m"])
    assert checked({"n": 3, "m": 8}, WORDS, {"s": "a b c"}, at_least="unverified").kind == "wrong_value"


@pytest.mark.parametrize(("strength", "kind"), [("agreed", "unverified"), ("grounded", "unverified"), ("proved", None)])
def test_a_step_needs_the_strength_that_is_asked(strength: Any, kind: str | None) -> None:
    """What is weaker is refused."""
    step = Step("c", instruction="Name it.", checks=[lambda *_: Verdict("pass", "mine", strength=strength)])
    check = checked("Lyon", step, {}, at_least="proved")
    assert (check.kind, check.weak) == (kind, {} if strength == "proved" else {"c": strength})


def test_a_step_that_code_computes_is_judged_by_its_checks() -> None:
    """A check of the user's counts for a step that the output leaves out, and no other output could mend it."""
    bounded = Procedure(
        [Step("a", "x + y", checks=[lambda step, values, claim: values["a"] < 10]), Step("b", "a * 3")],
        inputs=["x", "y"],
    )
    check = checked(57, bounded)
    assert (check.verified, check.step, check.kind, check.retry) == (False, "a", "wrong_value", False)
    assert checked(9, bounded, {"x": 1, "y": 2}).verified


def test_steps_behind_the_answer_need_not_be_worked_out() -> None:
    """A step without a value that the output does not rest on does not matter, one that it holds does."""
    after = Procedure([Step("a", "x + y"), Step("b", "1 / (x - x)")], inputs=["x", "y"], answer="a")
    assert checked(19, after).verified
    assert checked({"a": 19, "b": 0}, after).kind == "undecided"


@pytest.mark.parametrize("given", [{"x": 12}, {"x": 12, "y": "?"}, {"x": 12, "y": 7, "z": 1}, {"x": 12, "y": None}])
def test_inputs_that_do_not_fit_are_an_error(given: dict[str, object]) -> None:
    """Missing, unreadable or unknown: it is the caller's to mend, and the name is told."""
    with pytest.raises(InputError) as caught:
        checked(57, given=given)
    assert caught.value.name in ("y", "z")


def test_an_input_that_is_fixed_cannot_be_given_again() -> None:
    """Of two values of one input nobody can tell which is meant."""
    assert checked(57, given={"y": 7}, inputs={"x": 12}).verified
    with pytest.raises(InputError, match="twice"):
        checked(57, inputs={"x": 12})


@all_rows(
    "procedure, options, words",
    [
        (WORDS, {"steps": ["m"]}, "'n' has no expression"),
        (WORDS, {"steps": ["n", "m"]}, "step 'n' can be unverified at most"),
        (SUMS, {"ignore": ["x"]}, "'x' belongs to sums"),
        (SUMS, {"inputs": 3}, "mapping"),
        (SUMS, {"check_timeout": float("inf")}, "check_timeout"),
        (SUMS, {"check_timeout": True}, "check_timeout"),
    ],
)
def test_an_option_that_cannot_work_is_told_at_once(procedure: Procedure, options: dict[str, Any], words: str) -> None:
    """Nothing is checked to find out."""
    with pytest.raises(ConfigError, match=words):
        OutputChecker(procedure, **options)
