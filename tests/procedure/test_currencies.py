"""Amounts in two currencies are not mixed, in formulas and in checks."""

from __future__ import annotations

import pytest
from tables import all_rows

from stepguard import Guard, Procedure, Step
from stepguard.checks import Holds, Requires
from stepguard.errors import ProcedureError
from stepguard.procedure.inputs import Input
from stepguard.procedure.statements import ProcedureCall
from stepguard.testing import SimulatedModel, Slips

EUR_AND_USD = [Input("e", "money(EUR)"), Input("u", "money(USD)"), Input("rate")]


@all_rows(
    "expression, type",
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
        ("u % e", None),
        ("u * 2 // e", None),
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


@all_rows(
    "expression, type",
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
    """What a rate multiplies or divides is in no currency until a type says so, nor is a number without one."""
    made = Procedure([Step("t", expression, type=type)], inputs=EUR_AND_USD)
    given = {"e": "1", "u": "20", "rate": "0.5"}
    assert Guard(SimulatedModel(slips=Slips.none())).run(made, given).verified


@all_rows(
    "expression, type",
    [
        *(("e * e", None), ("e * e", "money(EUR)"), ("e^2", None), ("e * (1 + e)", None), ("(e - 1) * e / u", None)),
        *(("sqrt(e)", "money(EUR)"), ("e * e > 4", None), ("max(e * e, 3)", None), ("1 / e / e", None)),
    ],
)
def test_a_product_of_two_amounts_is_no_amount(expression: str, type: str | None) -> None:
    """Euros times euros are none, in lists, choices and with amounts in the text, too; the message says what to do."""
    says = r"(multiplies amounts|takes a root of an amount) of money, .* `amount / 1 EUR`"
    with pytest.raises(ProcedureError, match=says):
        Procedure([Step("t", expression, type=type)], inputs=EUR_AND_USD)
    declared = f": {type}" if type else ""
    for written in (expression.replace("e", "10 EUR") if "m" not in expression else "10 EUR * 2 EUR", expression):
        with pytest.raises(ProcedureError, match=says):
            Procedure.parse(f"inputs:\n    e: money(EUR)\n    u: money(USD)\nt{declared} = {written} if u > 1 else 0")


@all_rows(
    "expression, type",
    [
        *(("e * e / e", "money(EUR)"), ("e * (e / (e + 1))", "money(EUR)"), ("sqrt(e * e)", "money(EUR)")),
        *(("e / e", None), ("e * u", None), ("1 / e", None), ("(e / 2)^1", None)),
    ],
)
def test_a_share_of_an_amount_and_a_mean_are_amounts(expression: str, type: str | None) -> None:
    """The other side: what is multiplied and divided again is in the currency, or a number."""
    made = Procedure([Step("t", expression, type=type)], inputs=EUR_AND_USD)
    assert Guard(SimulatedModel(slips=Slips.none())).run(made, {"e": "4", "u": "20", "rate": "0.5"}).verified


@all_rows(
    "expression, says",
    [
        *(("e ^ n", "a power that is not known"), ("(e + e) ^ n", "a power that is not known")),
        *(("n ^ e", "for an exponent"), ("2 ^ (e + e)", "for an exponent"), ("e ^ (1 / 2)", "takes a root")),
        ("n * e ^ (3 - 1)", "multiplies amounts"),
    ],
)
def test_a_power_of_money_or_to_money_is_no_amount(expression: str, says: str) -> None:
    """Of which dimension a power is has to be known, and an exponent has none."""
    for type in ("money(EUR)", "number"):
        with pytest.raises(ProcedureError, match=says):
            Procedure.parse(f"inputs:\n    e: money(EUR)\n    n: integer\nt: {type} = {expression}")


@all_rows("expression", ["e * (1 + r) ^ n", "e ^ 1", "e * 2 ^ (e / e)", "e ^ (2 - 1)", "r ^ n * e"])
def test_an_amount_times_a_power_of_numbers_is_one(expression: str) -> None:
    """Compound interest is an amount, and a ratio of amounts a number."""
    made = Procedure.parse(f"inputs:\n    e: money(EUR)\n    r: number\n    n: integer\nt: money(EUR) = {expression}")
    assert Guard(SimulatedModel(slips=Slips.none())).run(made, {"e": "4", "r": "0.5", "n": 2}).verified


@all_rows(
    "measure, expression",
    [("quantity(kg)", "e * m"), ("quantity(kg)", "m * e"), ("quantity(kg)", "e / m"), ("duration", "e * m")],
)
def test_money_times_a_measure_has_no_type(measure: str, expression: str) -> None:
    """Three euros times two kilograms are no six kilograms; the message says how to give the measure as a number."""
    pytest.importorskip("pint")
    text = f"inputs:\n    e: money(EUR)\n    m: {measure}\nt: {{}} = {expression}"
    for type in (measure, "money(EUR)", "number"):
        with pytest.raises(ProcedureError, match="give the measure as a number, such as"):
            Procedure.parse(text.format(type))
    with pytest.raises(ProcedureError, match="percent"):
        Procedure.parse("inputs:\n    e: money(EUR)\n    p: percent\nt: percent = e * p")


DECLARED = """
inputs:
    u: money(USD)
    e: money(EUR)
    rate: number
    n: integer
    p: percent
    flag: boolean
    us: list of money(USD)
"""
IN_DOLLARS = (
    *(
        "u*1",
        "1 * u",
        "u/1",
        "u // 2",
        "u % 7",
        "u*n",
        "u*p",
        "u * 50%",
        "u * (1 + p)",
        "-u",
        "abs(u)",
        "round(u * 1.5)",
    ),
    *("u", "u + 0", "(u + 1) * 2", "min(u, u*2)", "u if flag else 0", "u*2 if flag else u", "sum of us", "us[0]"),
    *("max of us", "sum of (a*2) for a in us", "u*rate + u"),
)


@all_rows("expression", IN_DOLLARS)
@all_rows("type", ["", ": decimal(2)"])
def test_a_variable_without_a_currency_is_in_that_of_its_amounts(expression: str, type: str) -> None:
    """An amount that is copied, added up or only scaled stays in its currency, whatever the type of the step says."""
    start = f"{DECLARED}x{type} = {expression}\n"
    for mixing in ("y = x + e", "y: money(EUR) = x", "z = x\ny = max(z, e)", "if x > e:\n    y = 1\nelse:\n    y = 2"):
        with pytest.raises(ProcedureError, match=r"USD.*EUR|EUR.*USD"):
            Procedure.parse(start + mixing)
    for fitting in ("y = x + u", "y: money(USD) = x", "y: money(EUR) = x * rate", "y: money(EUR) = x * 0.9\nz = y + e"):
        assert Procedure.parse(start + fitting).answer_type.numeric


@all_rows("expression", ["u * rate", "u / e", "u / u * e", "n * 2", "count of us", "u * e / u", "e * 1 USD"])
def test_a_rate_or_a_quotient_takes_the_currency_away(expression: str) -> None:
    """What a number multiplies that may be a rate of exchange is in any currency."""
    assert Procedure.parse(f"{DECLARED}x = {expression}\ny = x + e").answer == "y"


def test_loops_branches_and_calls_keep_currencies() -> None:
    """A list of a loop, a variable of branches and the answer of a called procedure are in their currency, too."""
    for mixed in (
        "for each a in us:\n    d = a*2\ny = (sum of d) + e",
        "if flag:\n    x = u*1\nelse:\n    x = e*1\ny = x",
        "if flag:\n    x = u*1\nelse:\n    x = 0\ny = x + e",
        "x = u*1\nrepeat at most 3 times until z > 5:\n    z = x + e",
    ):
        with pytest.raises(ProcedureError, match=r"USD.*EUR|EUR.*USD"):
            Procedure.parse(DECLARED + mixed)
    twice = Procedure.parse("inputs:\n    v: money(USD)\nw = v * 2")
    assert twice.answered.currency == "USD"
    with pytest.raises(ProcedureError, match=r"USD.*EUR"):
        Procedure([ProcedureCall("x", twice, {"v": "u"}), Step("y", "x + e")], inputs=EUR_AND_USD)


@all_rows("expression", ["e / 1 USD", "e / (2 USD)", "(e + 1 EUR) / 1 USD", "e % 5 USD", "e // 5 USD"])
def test_a_currency_is_taken_off_amounts_in_it_alone(expression: str) -> None:
    """Euros have no number of dollars; a quotient of two amounts may be a rate of exchange."""
    text = "inputs: e: money(EUR), u: money(USD)\n"
    with pytest.raises(ProcedureError, match=r"two currencies: .* is in EUR, '[125] USD' in USD"):
        Procedure.parse(f"{text}t = {expression}")
    for computed in (
        "e * 2 / 1 USD",
        "e / (1 USD + 1 USD)",
        "e / max(2 USD, 1 USD)",
        "u + e % 5",
        "u + e % 5 EUR",
        "e % 5 + u",
    ):
        with pytest.raises(ProcedureError, match=r"two currencies|mixes currencies"):
            Procedure.parse(f"{text}t = {computed}")
    assert Procedure.parse(f"{text}t = e / u").answer == Procedure.parse(f"{text}t = e / 1 EUR").answer == "t"
