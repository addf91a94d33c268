"""Steps: what is refused when they are made, and the values that they compute with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from tables import all_rows

from stepguard import Procedure, Step
from stepguard.checks import Holds, Range, Requires
from stepguard.errors import ConfigError, ExpressionError, ProcedureError
from stepguard.language.expression_parsing import parse_expression
from stepguard.procedure.inputs import Input


@all_rows(
    "arguments",
    [
        {"id": "max", "expression": "1"},
        {"id": "2t", "expression": "1"},
        {"id": "é", "expression": "1"},
        {"id": "t" * 65, "expression": "1"},
        {"id": "t"},
        {"id": "t", "instruction": "  "},
        {"id": "t", "instruction": "Read.", "performer": "code"},
        {"id": "t", "instruction": "Read.", "show_work": True},
        {"id": "t", "instruction": "Read.", "reads": ["2x"]},
        {"id": "t", "expression": "x", "reads": ["y"]},
        {"id": "t", "expression": "x", "performer": "someone"},
        {"id": "t", "expression": "1 < 2", "type": "number"},
        {"id": "t", "instruction": "Read.", "reads": "letter"},
        {"id": "t", "expression": "x", "reads": "x"},
        {"id": "t", "instruction": "Read.", "checks": Range(1, 2)},
        {"id": "t", "instruction": "Read.", "checks": [Range]},
    ],
)
def test_a_step_that_cannot_be_right_is_refused(arguments: dict[str, object]) -> None:
    """A step is checked when it is made."""
    with pytest.raises(ProcedureError):
        Step(**arguments)  # type: ignore[arg-type]


@all_rows(
    "expression",
    ["1 + (x > 2)", "-(x > 2)", "min(x > 2, 3)", "max((x > 2))", "(x > 2) == (x > 3)", "(x > 2)^2", "2^(x > 2)"],
)
def test_an_expression_that_computes_with_a_comparison_is_refused(expression: str) -> None:
    """A truth value is no number, so that no reply could ever be right; a comparison in brackets is one."""
    with pytest.raises(ProcedureError, match=r"'x > [23]', a truth value, which is no number: join those"):
        Procedure.parse(f"inputs: x\nt = {expression}")
    assert Step("t", "((x > 2))").type.kind == "boolean"


@pytest.mark.parametrize("check", [lambda claim: None, lambda: None, lambda step, values, claim, more: None])
def test_a_check_that_cannot_be_called_is_refused(check: Callable[..., Any]) -> None:
    """Its parameters are compared with what it will be given, before any model is asked."""
    with pytest.raises(ProcedureError, match=r"cannot be called as check\(step, values, claim\)"):
        Step("t", instruction="Name it.", checks=[check])
    for fitting in (lambda *given: None, lambda step, values, claim, more=1: None):
        Step("t", instruction="Name it.", checks=[fitting])


def test_a_decorated_check_is_called_as_its_decorator_wants() -> None:
    """What the decorator hands on to the function that it wraps is its own affair."""

    def known(stock: set[str], step: Step, values: object, claim: object) -> bool:
        return True

    @wraps(known)
    def check(step: Step, values: object, claim: object) -> bool:
        return known({"bolt"}, step, values, claim)

    assert Step("t", instruction="Name it.", checks=[check]).checks == (check,)


def test_a_step_of_wrong_type_or_expression_is_refused() -> None:
    """An unknown type is a configuration error, text outside the language an expression error."""
    with pytest.raises(ConfigError):
        Step("t", "1", type="money")
    with pytest.raises(ConfigError, match="written as text"):
        Step("t", "1", type=3)  # type: ignore[arg-type]
    with pytest.raises(ExpressionError):
        Step("t", "2x")


def test_what_a_step_reads_follows_from_its_expression() -> None:
    """A step reads the variables of its expression, in order, and may be given as a parsed expression."""
    step = Step("t", parse_expression("b * a + b"))
    assert step.reads == ("b", "a")
    assert step.formula == "b * a + b"


WORDED = Step("a", instruction="Read it.")


@all_rows(
    "source, step, message",
    [
        (WORDED, Step("t", "a * 2"), 'declare `a: number = "..."`'),
        (WORDED, Step("t", "a"), "`t: text` where it is not"),
        (WORDED, Step("t", "a == 3"), "compares numbers only"),
        (Step("a", "1 > 2"), Step("t", "a + 1"), "which is boolean"),
        (Step("a", "1 > 2"), Step("t", "a"), "declare `t: boolean`"),
        (Input("a", "one_of(low, high)"), Step("t", "-a"), "which is one_of(low, high)"),
        (Input("a", "one_of(low, high)"), Step("t", "a", type="one_of(x, y)"), "which is one_of(low, high)"),
        (Input("a", "text"), Step("t", "max(a, 1)", performer="code"), "declare `a: number`"),
        (Input("a", "text"), Step("t", "a != a"), "which is text"),
        (Input("a"), Step("t", "a", type="text"), "declare `t: number`"),
        (Input("a"), Step("t", "a", type="boolean"), "declare `t: number`"),
    ],
)
def test_a_step_that_could_never_have_a_value_is_refused(source: Input | Step, step: Step, message: str) -> None:
    """An expression over values that it cannot compute with is refused when a procedure, or a lazy step, is made."""
    steps = [source if isinstance(source, Step) else Step("b", "1"), step, Step("c", "3")]
    inputs = [] if isinstance(source, Step) else [source]
    with pytest.raises(ProcedureError) as refused:
        Procedure(steps, inputs=inputs)
    assert refused.value.step == "t"
    assert message in refused.value.message
    lazy = Procedure.lazy(steps.__getitem__, 3, look_back=1, inputs=inputs)
    assert lazy.steps[0] == steps[0]
    with pytest.raises(ProcedureError) as refused:
        list(lazy.steps)
    assert message in refused.value.message


@all_rows(
    "source, target",
    [("number", "decimal(2)"), ("percent", "integer"), ("text", "one_of(a, b)"), ("one_of(a, b)", "text"),
     ("one_of(a, b)", "one_of(b, c)"), ("boolean", "boolean")],
)  # fmt: skip
def test_a_copy_may_have_another_type_that_can_hold_it(source: str, target: str) -> None:
    """Whether a copied value fits is only known from the value, as long as any could."""
    procedure = Procedure([Step("t", "a", type=target)], inputs=[Input("a", source)])
    assert Procedure.parse(str(procedure)) == procedure


def test_the_line_of_a_step_over_words_is_named() -> None:
    """The error names the line that computes with the words, not the last one."""
    with pytest.raises(ProcedureError) as refused:
        Procedure.parse('step1 = "Read the price."\ntotal = step1 * 2\nt3 = 4')
    assert refused.value.line == 2


@pytest.mark.parametrize("check", [Holds("t >= note"), Requires("note > 0"), Requires("ok == 1"), Holds("t > -score")])
def test_a_relation_over_what_is_no_number_is_refused(check: Holds | Requires) -> None:
    """No claim could ever pass it, so that nothing is asked; the message says how to declare a number."""
    inputs = [Input("note", "text"), Input("ok", "boolean")]
    words = [Step("score", instruction="Rate it from 1 to 10.")]
    reads = ["note", "ok", "score"]
    with pytest.raises(
        ProcedureError, match=r"compares numbers only, and reads '(note|ok|score)'.*: declare `(\1): number"
    ):
        Procedure([*words, Step("t", instruction="Count.", type="number", reads=reads, checks=[check])], inputs=inputs)


def test_a_step_can_be_changed_by_dataclasses_replace() -> None:
    """What is made of a step that way is a step of its own, alike but for what was changed."""
    step = Step("t", "x + 1", checks=[Range(least=0)])
    changed = dataclasses.replace(step, id="u", show_work=False)
    assert (changed.id, changed.show_work, changed.origin) == ("u", False, None)
    assert (changed.expression, changed.reads, changed.checks) == (step.expression, step.reads, step.checks)
