"""Right working in the notations of print, LaTeX and Markdown, and wrong working in the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from tables import all_rows

from stepguard import Guard, Procedure, audit
from stepguard.testing import ScriptedBackend

TIMES = ("×", "·", "⨉", "﹡", "⋅", "∗", "＊", "✕", "\\times", "\\cdot", "times", "multiplied by", "x")
DIVIDED = ("÷", "∕", "➗", ":", "∶", "／", "⁄", "\\div", "divided by")
EQUAL = (" = ", " ＝ ", " \\approx ", " ≈ ", " &= ")
AROUND = ("{}", "\\boxed{{{}}}", "$ {} $", "\\( {} \\)", "**{}**", "`{}`", "\\mathbf{{{}}}")
QUOTIENT = "inputs: x, y\nt1: decimal(2) = x / y"


def deviation(procedure: str, inputs: Mapping[str, object], entry: str) -> str | None:
    """The kind of what is wrong with an entry, None where it is verified."""
    result = Guard(ScriptedBackend({"t1": entry}), repair=0).run(Procedure.parse(procedure), inputs)
    if result.verified:
        return None
    assert result.problem is not None
    assert result.problem.deviation is not None
    return result.problem.deviation.kind


@all_rows(
    "formula, entry",
    [
        *(("x + y", "10 ＋ 3 = 13"), ("x * y", "10 × 3 ＝ 30"), ("a * y", "10x3 = 30"), ("a * y", "(10)x(3) = 30")),
        *(("x / y", "10⁄3 = 3.33"), ("x / y", "10 / 3 = \\boxed{3.33}"), ("x / y", "10 / 3 = 3.333... ≈ 3.33")),
        *(("x / y", "\\frac{10}{3} = 3.333\\ldots \\approx 3.33"), ("x / y", "10/3 = 3.\\overline{3} \\approx 3.33")),
        *(("x / y", "10 / 3 = 3\\frac{1}{3} = 3.33"), ("x / y", "10 / 3 = 3⅓ ≈ 3.33")),
        *(("x + y", "10 ➕ 3 = 13"), ("x - y", "10 ➖ 3 = 7")),
        *(("x / y", "10:3 = 3.33"), ("x / y", "10 : 3 ≈ 3.33"), ("x * y", "10 • 3 = 30"), ("x * y", "(10)•(3) = 30")),
        *(("x / y", "10 / 3 = 3 1/3 ≅ 3.33"), ("x + y", "１０ ＋ ３ = 13"), ("x + y", "10 plus 3 = 13\\text{ }")),
    ],
)  # fmt: skip
def test_typeset_working_passes_in_a_reply_as_in_an_audit(formula: str, entry: str) -> None:
    """Signs of print, LaTeX and Markdown are read alike in replies and in transcripts."""
    procedure = f"inputs: {formula[0]}, y\nt1: decimal(2) = {formula}"
    assert deviation(procedure, {formula[0]: 10, "y": 3}, entry) is None
    (step,) = audit(Procedure.parse(procedure), {formula[0]: 10, "y": 3}, f"t1 = {entry}").steps
    assert step.verdict == "right"


@all_rows("procedure, inputs, entry, right", [
    # A box, an environment and an index around what is said change nothing.
    *(("inputs: x, y\nt1 = x + y", {"x": 10, "y": 3}, entry, True) for entry in (
        "\\boxed{10 + 3 = 13}", "t_{1} = 10 + 3 = 13", "t₁ ＝ 10 + 3 = 13", "\\begin{align*}10 + 3 &= 13\\end{align*}",
    )),
    # A sign, another factor or digits beside markup are never dropped, and doubled signs are none.
    *((QUOTIENT, {"x": 10, "y": 3}, entry, False) for entry in (
        *(
            "10××3 = 3.33",
            "10÷÷3 = 3.33",
            "3:10 = 3.33",
            "10:3:1 = 3.33",
            "10:03 = 3.33",
            "10••3 = 3.33",
            "10 / 3 = -\\boxed{3.33}",
            "10 / 3 = \\boxed{3.33} \\times 10",
        ),
        *("10/3 = \\boxed{3}.33", "10 / 3 = \\boxed{3}\\boxed{.33}", "1\\text{}0/3 = 3.33", "1 0/3 = 3.33"),
        *("10 / 3 = 3\\frac{2}{3} = 3.33", "10 / 3 = 2\\frac{4}{3} = 3.33", "10 / 3 = 3.334... ≈ 3.33"),
    )),
    # N02: times 100% is times one, and other working stays other working.
    *(("inputs: n, o\nt1: percent = (n - o) / o", {"n": 120, "o": 100}, entry, right) for entry, right in (
        *(("(120 - 100) / 100 × 100% = 20%", True), ("\\frac{120 - 100}{100} \\times 100\\% = 20\\%", True)),
        *(("1 * (120 - 100) / 100 = 20%", True), ("(120 - 100) / 100 * 100 percent = 20%", True)),
        *(("(120 - 100) / 100 × 10% = 20%", False), ("20 × 1% = 20%", False), ("(120 - 100) × 100% = 20%", False)),
        *(("1 * 20% = 20%", False), ("(120 - 100) / 120 × 100% = 20%", False), ("1 + (120 - 100) / 100 = 20%", False)),
    )),
    ("inputs: a, b\nt1 = a - b", {"a": -96, "b": -106}, "1 * (5 + 5) = 10", False),
    # The argument that was taken and the value stand for a choice or a rounding, within working that goes on.
    *((f"inputs: h, rate\nt1 = {formula}", {"h": "46.5", "rate": "18.20"}, *row) for formula, *row in (
        ("max(0, h - 40) * rate", "(46.5 - 40) * 18.20 = 118.30", True),
        ("max(0, h - 40) * rate", "6.5 * 18.20 = 118.30", True),
        ("max(0, h - 40) * rate", "max(0, 6.5) * 18.20 = 6.5 * 18.20 = 118.30", True),
        ("max(0, h - 40) * rate", "max(0, 7) * 18.20 = 118.30", False),
        ("min(h, 40) * rate", "40 * 18.20 = 728", True),
        ("abs(40 - h) * rate", "(46.5 - 40) * 18.20 = 118.30", True),
        ("abs(40 - h) * rate", "-(40 - 46.5) * 18.20 = 118.30", True),
        ("floor(h / 8) * rate", "5 * 18.20 = 91", True),
        ("round(h / 8, 1) * 2", "5.8 * 2 = 11.6", True),
        ("max(0, h - 50) * rate", "0 * 18.20 = 0", True),
        ("max(0, h - 40)", "46.5 - 40 = 6.5", True),
        ("max(0, h - 40) * rate", "(40 - 46.5) * 18.20 = 118.30", False),
        ("max(0, h - 40) * rate", "13 * 9.10 = 118.30", False),
        ("max(0, h - 40) * rate", "max(1, 6.5) * 18.20 = 118.30", False),
        ("max(0, h - 40) * rate", "118.30 = 118.30", False),
        ("floor(h / 8) * rate", "(46.5 / 8) * 18.20 = 91", False),
        ("floor(h / 8)", "5 = 5", False),
        ("max(h, rate)", "46.5 = 46.5", False),
        ("abs(40 - h) * rate", "(40 - 46.5) * 18.20 = 118.30", False),
    )),
])  # fmt: skip
def test_working_says_what_its_notation_says(
    procedure: str, inputs: dict[str, object], entry: str, right: bool
) -> None:
    """Nothing around a working is dropped, and what changes nothing in it leaves it right."""
    assert (deviation(procedure, inputs, entry) is None) is right


ROWS = [*product(TIMES, EQUAL, AROUND)]


@all_rows("sign, equal, around", [row for row in ROWS if EQUAL[0] in row or AROUND[0] in row])
def test_every_sign_of_a_product_is_read_and_checked(sign: str, equal: str, around: str) -> None:
    """A right product passes under every sign and markup; another operand and another value fail under the same."""
    procedure, inputs = "inputs: a, y\nt1 = a * y", {"a": 12, "y": 7}
    assert deviation(procedure, inputs, f"12 {sign} 7{equal}{around.format(84)}") is None
    assert deviation(procedure, inputs, f"14 {sign} 6{equal}{around.format(84)}") is not None
    assert deviation(procedure, inputs, f"12 {sign} 7{equal}{around.format(85)}") == "wrong_value"


@all_rows("sign, cut", [*product(DIVIDED, ("3.333...", "3.33333…", "3.3\\ldots", "3.\\overline{3}"))])
def test_every_sign_of_a_quotient_is_read_and_checked(sign: str, cut: str) -> None:
    """Digits that go on are a link where they are the quotient's, and none where they are not."""
    inputs: dict[str, object] = {"x": 10, "y": 3}
    assert deviation(QUOTIENT, inputs, f"10 {sign} 3 = {cut} ≈ 3.33") is None
    assert deviation(QUOTIENT, inputs, f"10 {sign} 3 = {cut.replace('3', '4')} ≈ 3.33") == "unfaithful_work"
    assert deviation(QUOTIENT, inputs, f"3 {sign} 10 = {cut} ≈ 3.33") is not None


@all_rows("mixed", ["3\\frac{1}{4}", "3\\tfrac14", "3 1/4", "3¼", "3 ¼"])
def test_a_mixed_number_in_working_is_a_sum(mixed: str) -> None:
    """A mixed number is the operand that it says, and no product."""
    assert deviation("inputs: m\nt1 = m * 2", {"m": "3.25"}, f"{mixed} * 2 = 6.5") is None
    assert deviation("inputs: m\nt1 = m * 2", {"m": "0.75"}, f"{mixed} * 2 = 1.5") is not None
    assert deviation("inputs: m\nt1 = m * 2", {"m": "1.625"}, f"1.625 * 2 = {mixed}") is None


def test_many_settled_functions_do_not_multiply() -> None:
    """The ways of writing a working are tried to a limit, whatever the number of functions in it."""
    formula = " + ".join(f"max(x, {at})" for at in range(1, 60))
    entry = " + ".join(f"max(4, {at})" for at in range(1, 60))
    total = sum(max(4, at) for at in range(1, 60))
    assert deviation(f"inputs: x\nt1 = {formula}", {"x": 4}, f"{entry} = {total}") is None
    assert deviation(f"inputs: x\nt1 = {formula}", {"x": 4}, f"{total} + 0 = {total}") is not None
