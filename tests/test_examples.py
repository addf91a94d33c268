"""Every example runs by itself, without a key, and ends on the right numbers."""

from __future__ import annotations

import subprocess
import sys
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def printed(name: str) -> str:
    """What an example prints; a warning or an error of it fails the test."""
    script = EXAMPLES / f"{name}.py"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)


def test_the_invoice_ends_on_its_total() -> None:
    """Goods less discount, shipping and tax on top, each rounded to cents; slips on the way are shown."""
    goods = Decimal("12.50") * 3
    net = goods - cents(goods * Decimal("0.10")) + Decimal("4.95")
    total = net + cents(net * Decimal("0.19"))
    shown = printed("invoice")
    assert f"verified: {total}\n" in shown
    assert "caught: wrong_value" in shown


def test_the_dose_is_right_or_not_handed_on() -> None:
    """With a model that slips the dose is right; with one that insists on a wrong step there is none."""
    marks = Decimal("17.5") * 15 / 24 // Decimal("0.5")
    slipped, insisted = printed("medication_dose").split("A model that insists:")
    assert f"draw up {marks * Decimal('0.5')} ml" in slipped
    assert "after wrong_value" in slipped
    assert "NOTHING IS HANDED ON" in insisted
    assert "step marks" in insisted
    assert "draw up" not in insisted


def test_forty_steps_end_on_the_right_balance_with_the_guard_alone() -> None:
    """Unguarded the same model ends on another balance, without a word; guarded all forty steps are verified."""
    balance = Decimal("12000.00")
    for _ in range(20):
        balance += cents(balance * Decimal("0.0045")) - Decimal("628.70")
    unguarded, guarded = printed("loan").split("guarded:   ")
    assert f"{balance} EUR left" in guarded
    assert "verified" in guarded
    assert f"{balance} EUR left" not in unguarded


def test_the_client_answers_what_is_verified_and_passes_on_all_else() -> None:
    """A guarded call gives steps and answer, another is passed on, and what is not verified is an error."""
    subtotal = Decimal("24.90") * 3
    total = subtotal + cents(subtotal * Decimal("8.25") / 100)
    shown = printed("openai_client")
    assert f"[guarded]\nsubtotal = 74.7\ntax = 6.16\ntotal = {total}\nanswer: {total}\nverified after 3" in shown
    assert "[passed on]\nno result: None" in shown
    assert "no answer: procedure: step tax" in shown
    assert f"to pay: {total - 5}" in shown


def test_the_spans_tell_the_verdicts_and_no_content() -> None:
    """The run, its attempts and each verdict stand there; no value does."""
    pytest.importorskip("opentelemetry.sdk")
    shown = printed("opentelemetry_spans")
    assert shown.startswith("invoke_workflow loan verified\n")
    assert "stepguard.attempt partly\n" in shown
    assert "  gen_ai.evaluation.result: interest verified 1\n" in shown
    assert "  gen_ai.evaluation.result: balance wrong_value 0\n" in shown
    assert "12540" not in shown


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_is_tested(script: Path) -> None:
    """A new example is not forgotten here."""
    assert f'printed("{script.stem}")' in Path(__file__).read_text(encoding="utf-8")
