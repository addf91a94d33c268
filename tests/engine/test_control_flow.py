"""Procedures that branch, repeat, go through lists and call others end as they are written, whatever a model does."""

from __future__ import annotations

import json
import pickle
from datetime import date
from typing import Any

import pytest
from control_flow_harness import RIGHT, guard, make_program
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator
from tables import all_rows

from stepguard import Guard
from stepguard.language.expressions import Compare, Name, Number
from stepguard.language.terms.operands import Aggregate, Item, ListTerm, RecordTerm
from stepguard.procedure import ForEach, If, Input, Procedure, ProcedureCall, Repeat, Step
from stepguard.testing import SimulatedModel


@pytest.mark.parametrize(
    "start", [0, pytest.param(20, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.slow)]
)
def test_no_wrong_step_is_committed_on_any_way(start: int) -> None:
    """Every committed step has the value that an independent interpreter gives it there, and so has the answer."""
    for seed in range(start, start + 20):
        check_against_the_interpreter(seed)


@pytest.mark.slow
@given(st.integers(min_value=1000, max_value=10**9))
def test_no_wrong_step_is_committed_in_generated_procedures(seed: int) -> None:
    """The same of procedures that nobody has seen."""
    check_against_the_interpreter(seed)


def check_against_the_interpreter(seed: int) -> None:
    program = make_program(seed)
    options: dict[str, Any] = {"parallel": 1 + seed % 3, "segment": [None, 1, 5][seed % 3], "repair": 12}
    result = Guard(SimulatedModel(seed), seed=seed, **options).run(program.procedure, program.inputs)
    for record in result.steps:
        assert record.value == program.truth[str(record.occurrence)], (seed, str(record.occurrence))
    if result.status == "verified":
        assert result.answer == program.answer
        assert {str(record.occurrence) for record in result.steps} == set(program.truth)
    elif result.status == "exhausted":
        assert program.answer is None
    else:
        assert result.status == "abstained"


def test_nothing_of_a_branch_not_taken_stands_in_a_prompt() -> None:
    """The model sees the steps at hand: neither the condition, nor what it excludes, nor what comes later."""
    seen: list[str] = []
    model = SimulatedModel(slips=RIGHT)

    class Watched:
        def complete(self, request: Any) -> Any:
            seen.append("\n".join(message.content for message in request.messages))
            return model.complete(request)

    procedure = Procedure(
        [
            Step("total", "x + y"),
            If([("total > 100", [Step("secret_fee", "total * 7")])], [Step("secret_fee", "total * 3")]),
            Step("end", "secret_fee + 1"),
        ],
        inputs=["x", "y"],
    )
    result = Guard(Watched()).run(procedure, {"x": 60, "y": 50})
    assert result.answer == 771
    assert "secret" not in seen[0]
    assert "* 3" not in "".join(seen[1:]).split("Steps:")[-1]


def test_a_list_outside_of_a_loop_has_a_value_for_each_round() -> None:
    """What a body sets is a list behind it, in the order of the items, and rounds are asked together."""
    procedure = Procedure(
        [
            ForEach("n", ListTerm((Number(3), Name("x"), Number(5))), [Step("double", "n * 2")]),
            Step("total", Aggregate("sum", Name("double"))),
        ],
        inputs=["x"],
    )
    result = guard().run(procedure, {"x": 4})
    assert result.values == {"x": 4, "double": (6, 8, 10), "total": 24}
    assert [str(record.occurrence) for record in result.steps] == ["n[0].double", "n[1].double", "n[2].double", "total"]
    assert len(result.attempts) < 4


def test_a_list_of_nothing_has_no_rounds() -> None:
    """The body is not carried out, and the sum of nothing is nothing."""
    procedure = Procedure(
        [ForEach("n", "xs", [Step("double", "n * 2")]), Step("total", Aggregate("sum", Name("double")))],
        inputs=[Input("xs", "list of number")],
    )
    assert guard().run(procedure, {"xs": []}).answer == 0


def test_a_bound_that_is_reached_is_an_end_of_its_own() -> None:
    """It names the loop, and what was verified by then is kept."""
    body = [Step("balance", "balance - 10")]
    procedure = Procedure([Repeat(3, body, until="balance <= 0")], inputs=["balance"])
    result = guard().run(procedure, {"balance": 100})
    assert result.status == "exhausted"
    assert result.problem is not None
    assert "`repeat at most 3 times` is at its bound" in result.problem.reason
    assert str(result.problem.occurrence) == "repeat[2]"
    assert result.values["balance"] == 70
    assert guard().run(procedure, {"balance": 25}).answer == -5


def test_another_procedure_has_names_of_its_own() -> None:
    """Its variables are not those of the caller, and only its answer is seen outside."""
    fee = Procedure([Step("total", "amount * 2"), Step("fee", "total + 1")], inputs=["amount"], name="fee")
    procedure = Procedure(
        [Step("total", "x + 1"), ProcedureCall("cost", fee, {"amount": "total"}), Step("end", "cost + total")],
        inputs=["x"],
    )
    result = guard().run(procedure, {"x": 9})
    assert result.answer == 31
    assert result.values == {"x": 9, "total": 10, "cost": 21, "end": 31}
    assert "cost.total" in [str(record.occurrence) for record in result.steps]


def test_a_condition_on_an_unverified_value_makes_what_hangs_on_it_unverified() -> None:
    """A branch that is taken because of a guess is no better than the guess."""
    procedure = Procedure(
        [
            Step("late", instruction="Is it late?", type="boolean"),
            If([("late", [Step("fee", "x * 2")])], [Step("fee", "x * 3")]),
        ],
        inputs=["x"],
    )
    result = Guard(SimulatedModel(slips=RIGHT, answers={"late": True})).run(procedure, {"x": 4})
    assert result.status == "unverified"
    assert result.answer == 8
    assert dict(result.weak) == {"late": "unverified", "fee": "unverified"}


def test_a_default_stands_in_for_an_input_that_is_not_given() -> None:
    """The caller may still give another value."""
    procedure = Procedure([Step("t", "x + limit")], inputs=["x", Input("limit", "decimal(2)", default="5.50")])
    assert guard().run(procedure, {"x": 1}).answer == pytest.approx(6.5)
    assert guard().run(procedure, {"x": 1, "limit": 2}).answer == 3


def test_a_result_tells_the_way_that_was_taken() -> None:
    """Each step names its statement, and branches and loops say how often they were entered, also where nothing was
    done in them."""
    inner = [
        If([("n > 3", [Step("fee", "n * 2")])], [Step("fee", "n * 3")]),
        If([("fee > 9", [Step("extra", "fee + 1")])]),
    ]
    procedure = Procedure(
        [Step("start", "x + 1"), ForEach("n", ListTerm((Number(3), Name("x"), Number(5))), inner)],
        inputs=["x"],
        answer=Aggregate("sum", Name("fee")),
    )
    result = guard().run(procedure, {"x": 4})
    assert {str(record.occurrence): record.occurrence.site for record in result.steps} == {
        "start": "0",
        "n[0].fee": "1.0.1.0",
        "n[1].fee": "1.0.0.0",
        "n[2].fee": "1.0.0.0",
        "n[2].extra": "1.1.0.0",
    }
    assert result.ways == {"1": 3, "1.0.1": 1, "1.0.0": 2, "1.1.1": 2, "1.1.0": 1}
    data = json.loads(result.to_json())
    assert (data["steps"][2]["path"], data["steps"][2]["site"]) == ("n[1].fee", "1.0.0.0")
    assert data["ways"] == dict(result.ways)
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_condition_that_cannot_be_decided_is_named_with_its_place() -> None:
    """The problem is in the round and at the statement where it came up."""
    body = [If([(Compare(">", Item(Name("known"), (Name("n"),)), Number(1)), [Step("fee", "n * 2")])])]
    procedure = Procedure(
        [ForEach("n", ListTerm((Number(0), Number(7))), body), Step("end", "x + 1")],
        inputs=["x", Input("known", "list of number")],
    )
    result = guard().run(procedure, {"x": 4, "known": [5]})
    assert result.status == "failed"
    assert result.problem is not None
    assert (str(result.problem.occurrence), result.problem.occurrence.site) == ("n[1].if", "0.0")


def test_a_segment_holds_steps_that_are_answered_alike() -> None:
    """Equations and objects are not mixed in a reply, and each is asked behind a demonstration of its own kind."""
    requests: list[Any] = []
    model = SimulatedModel(slips=RIGHT)

    class Watched:
        def complete(self, request: Any) -> Any:
            requests.append(request)
            return model.complete(request)

    text = """
inputs: days: list of date, start: date, fee
for each day in days:
  since: duration = day - start
  cost = fee * 2
  late: boolean = since > 3 days
  more = cost + 1
total = sum of more
"""
    days = [date(2026, 1, number) for number in (2, 9, 20)]
    inputs = {"days": days, "start": date(2026, 1, 1), "fee": 5}
    result = Guard(Watched(), segment=6).run(Procedure.parse(text), inputs)
    assert (result.status, result.answer) == ("verified", 33)
    for request in requests:
        assert len({step.expression is None for step in request.steps}) == 1
        assert ('"work"' in request.messages[2].content) == (request.steps[0].expression is None)
    assert max(len(request.steps) for request in requests) == 6


class Bill(BaseModel):
    """What a caller wants back."""

    total: int
    parts: list[int]

    @field_validator("total")
    @classmethod
    def not_too_much(cls, total: int) -> int:
        """Refuse what is over a hundred."""
        if total > 100:
            raise ValueError("over a hundred")
        return total


def test_the_answer_is_handed_on_as_an_instance() -> None:
    """A class of the caller's is the output, and its validators judge the answer."""
    procedure = Procedure(
        [
            ForEach("n", ListTerm((Number(3), Name("x"))), [Step("double", "n * 2", type="integer")]),
            Step("total", Aggregate("sum", Name("double")), type="integer"),
        ],
        inputs=[Input("x", "integer")],
        answer=RecordTerm((("total", Name("total")), ("parts", Name("double")))),
        output=Bill,
    )
    assert guard().run(procedure, {"x": 4}).output == Bill(total=14, parts=[6, 8])
    refused = guard().run(procedure, {"x": 90})
    assert refused.status == "failed"
    assert "over a hundred" in str(refused.problem)


@pytest.mark.slow
def test_many_rounds_take_no_more_room_than_one() -> None:
    """A value that was carried over is given up when the next round has it."""
    body = [Step("left", "left - 1")]
    procedure = Procedure(
        [Repeat(3000, body, until=Compare("<=", Name("left"), Number(0)))], inputs=["left"], answer="left"
    )
    run = guard(history=10).start(procedure, {"left": 600})
    most = 0
    while not run.done:
        for action in run.actions():
            request = getattr(action, "request", None)
            if request is None:
                run.send(run.perform(action))
                continue
            from stepguard.engine.actions import Replied

            run.send(Replied(action.id, SimulatedModel(slips=RIGHT).complete(request)))
        most = max(most, len(run._engine._schedule.values))
    assert run.result().answer == 0
    assert most < 100


@all_rows(
    "text, inputs, answer",
    [
        (
            "inputs: n\nk = by code n\nrepeat at most 5 times until k >= 1:\n  k = by code k + 1\n"
            "repeat at most 5 times until k >= 2:\n  k = by code k + 1\n",
            {"n": 0},
            2,
        ),
        (
            "inputs: n\nk = n\nrepeat at most 9 times until k >= 2:\n  k = k + 1\n"
            "repeat at most 9 times until k >= 4:\n  k = k + 1\nz = k * 10\n",
            {"n": 0},
            40,
        ),
        (
            "inputs: n, m\nrepeat at most 1 times until true:\n  c: boolean = by code n > 0\n"
            "repeat at most 1 times until true:\n  c: boolean = by code m > 0\n"
            "  if c:\n    k = 111\n  else:\n    k = 222\n",
            {"n": 1, "m": 0},
            222,
        ),
        (
            "procedure f:\n  inputs: v\n  if v > 3:\n    w = v * 1\n  else:\n    w = v - 3\n  answer: w\n"
            "repeat at most 1 times until true:\n  k = call f(v=5)\n"
            "repeat at most 1 times until true:\n  k = call f(v=1)\nanswer: k\n",
            {},
            -2,
        ),
    ],
)
def test_a_loop_sees_nothing_of_the_loop_before_it(text: str, inputs: dict[str, int], answer: int) -> None:
    """Two loops may carry the same variable: a round reads what is set in it, never what another loop has left."""
    result = guard().run(Procedure.parse(text), inputs)
    assert (result.status, result.answer) == ("verified", answer)
    paths = [str(record.occurrence) for record in result.steps]
    assert len({*paths}) == len(paths)


WEAK = 'inputs: ns: list of number\nc: boolean = "Is it so?"\n'


@all_rows(
    "text",
    [
        f"{WEAK}b = 5\nrepeat at most 1 times until true:\n  if c:\n    b = by code 7\nz = by code b * 3\n",
        "procedure keep:\n  inputs: v\n  u = by code v + 0\n  answer: v\n"
        f"{WEAK}if c:\n  x = call keep(v=1)\nelse:\n  x = call keep(v=2)\nz = by code x * 2\n",
        f"{WEAK}repeat at most 1 times until c or not c:\n  for each n in ns:\n    y = by code n * 2\n"
        "z = by code sum of y\n",
        f"{WEAK}if c:\n  xs: list of number = by code ns\nelse:\n  xs: list of number = by code ns\n"
        "z = by code count of xs\n",
        f"{WEAK}if c:\n  for each n in ns:\n    y = by code n * 2\n  z = by code count of y\nelse:\n  z = by code 0\n",
    ],
)
def test_what_hangs_on_a_weak_condition_is_weak(text: str) -> None:
    """Also what a branch that was not taken would have set, what a call hands on, and a list that has no items."""
    for ns in ([], [1, 2]):
        for said in (True, False):
            model = SimulatedModel(slips=RIGHT, answers={"c": said})
            result = Guard(model).run(Procedure.parse(text), {"ns": ns})
            assert result.answer is not None, result.problem
            (record,) = [record for record in result.steps if record.occurrence.step == "z"]
            assert record.support == "unverified"


@all_rows(
    "text, inputs, answer",
    [
        (
            "procedure f:\n  inputs: p: percent\n  y = by code p * 100\ninputs: p: percent\nr = call f(p=p)\n",
            {"p": "5%"},
            5,
        ),
        (
            "procedure f:\n  inputs: v\n  y = by code v + 1\ninputs: xs: list of number\n"
            "for each x in xs:\n  r = call f(v=x)\nanswer: sum of r\n",
            {"xs": [1, 2]},
            5,
        ),
        (
            "inputs: age: integer\ntable fees: age: integer -> number\n  up to 18: 5\n  over 18: 9\n"
            "fee = by code fees[age]\n",
            {"age": 18},
            5,
        ),
    ],
)
def test_arguments_bodies_of_calls_and_ranges_are_read(text: str, inputs: dict[str, object], answer: int) -> None:
    """A percentage is passed on as it is, a body may hold nothing but calls, and `up to` begins a range."""
    assert guard().run(Procedure.parse(text), inputs).answer == answer


def test_an_argument_is_never_rounded() -> None:
    """A number with more places than the input has ends the run, and says what to do."""
    text = "procedure f:\n  inputs: v: decimal(1)\n  y = by code v + 1\ninputs: v\nr = call f(v=v)\n"
    result = guard().run(Procedure.parse(text), {"v": "2.55"})
    assert result.status == "failed"
    assert "2.55 is no decimal(1" in str(result.problem)
