"""Amounts in two currencies are not mixed, in formulas and in checks."""

from __future__ import annotations

import pytest

from stepguard import Guard, Procedure, Step
from stepguard.checks import Holds, Requires
from stepguard.errors import ProcedureError
from stepguard.procedure.steps import Input
from stepguard.testing import SimulatedModel, Slips

EUR_AND_USD = [Input("e", "money(EUR)"), Input("u", "money(USD)"), Input("rate")]


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("u + e", None),
        ("u - e", "money(USD)"),
        ("e", "money(USD)"),
        ("u > e", None),
        ("max(u, 3, e)", None),
        ("round(-e)", "money(USD)"),
        ("(u + e) * rate", None),
        ("1 + (u - 5) / (e + u)", None),
        ("rate * abs(u - e) > 3", None),
    ],
)
def test_currencies_are_not_mixed(expression: str, type: str | None) -> None:
    """A sum or comparison of amounts in two currencies, or an amount taken for one in another, is no procedure."""
    with pytest.raises(ProcedureError, match=r"step 't' mixes currencies: .* in (USD|EUR)\. Convert one by"):
        Procedure([Step("t", expression, type=type)], inputs=EUR_AND_USD)
    with pytest.raises(ProcedureError, match="mixes currencies"):
        Procedure.lazy(lambda at: Step("t", expression, type=type), 1, look_back=1, inputs=EUR_AND_USD)


@pytest.mark.parametrize("check", [Holds("t == e"), Holds("t >= 0", "t - e <= 5"), Requires("u > e")])
def test_relations_of_a_check_do_not_mix_currencies(check: Holds | Requires) -> None:
    """An amount in one currency proves none in another; where a product converts it, it may."""

    def made(check: Holds | Requires) -> Procedure:
        step = Step("t", instruction="The total.", type="money(USD)", reads=["e", "u", "rate"], checks=[check])
        return Procedure([step], inputs=EUR_AND_USD)

    with pytest.raises(ProcedureError, match=r"step 't' mixes currencies: .* is in EUR\. Convert one by"):
        made(check)
    for fitting in (Holds("t == e * rate"), Holds("t >= u", "t > 5"), Requires("u > e * rate")):
        assert made(fitting).steps[0].checks == (fitting,)


@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("u * rate", "money(EUR)"),
        ("u * rate + e", "money(EUR)"),
        ("u / rate", "money(EUR)"),
        ("u / e", "percent(1)"),
        ("u + u / e", "money(USD)"),
        ("u + 5", "money(USD)"),
        ("u", "number"),
        ("u > 5", None),
        ("e + 1", None),
        ("5 * rate", "money(JPY)"),
    ],
)
def test_a_product_converts_an_amount(expression: str, type: str | None) -> None:
    """What is multiplied or divided is in no currency until a type says so, nor is a number without one."""
    made = Procedure([Step("t", expression, type=type)], inputs=EUR_AND_USD)
    given = {"e": "1", "u": "20", "rate": "0.5"}
    assert Guard(SimulatedModel(slips=Slips.none())).run(made, given).verified
