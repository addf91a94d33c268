"""Every example runs without a key, and ends on the right numbers.

Those of frameworks, which take seconds to load, are run with the slow tests, and by CI with each extra by itself.
"""

from __future__ import annotations

import contextlib
import io
import runpy
import subprocess
import sys
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def printed(name: str) -> str:
    """What an example prints that runs in a process of its own; a warning or an error of it fails the test."""
    script = EXAMPLES / f"{name}.py"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def here_printed(name: str) -> str:
    """As `printed`, of one that needs nothing but what the tests have loaded, in this process."""
    script, out = str(EXAMPLES / f"{name}.py"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setattr(sys, "argv", [script])
        runpy.run_path(script, run_name="__main__")
    return out.getvalue()


def cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)


SUBTOTAL = Decimal("24.90") * 3
TAX = cents(SUBTOTAL * Decimal("8.25") / 100)
TOTAL = SUBTOTAL + TAX


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
    slipped, insisted = here_printed("medication_dose").split("A model that insists:")
    assert f"draw up {marks * Decimal('0.5')} ml" in slipped
    assert "after wrong_value" in slipped
    assert "NOTHING IS HANDED ON" in insisted
    assert "step marks" in insisted
    assert "draw up" not in insisted


def test_a_workflow_that_dies_after_every_step_asks_and_pays_once() -> None:
    """The engine inside a workflow engine takes the same way in every life: nothing is asked or called twice."""
    *deaths, outcome, spent = here_printed("durable_workflow").splitlines()
    assert outcome == f"life {len(deaths) + 1}: verified: total 59.50, R-1"
    assert spent == f"{len(deaths) - 1} model calls, {len(deaths) - 1} of them counted; paid 59.50"


def test_forty_steps_end_on_the_right_balance_with_the_guard_alone() -> None:
    """Unguarded the same model ends on another balance, without a word; guarded all forty steps are verified."""
    balance = Decimal("12000.00")
    for _ in range(20):
        balance += cents(balance * Decimal("0.0045")) - Decimal("628.70")
    unguarded, guarded = here_printed("loan").split("guarded:   ")
    assert f"{balance} EUR left" in guarded
    assert "verified" in guarded
    assert f"{balance} EUR left" not in unguarded


def test_the_client_answers_what_is_verified_and_passes_on_all_else() -> None:
    """A guarded call gives steps and answer, another is passed on, and what is not verified is an error."""
    shown = here_printed("openai_client")
    assert f"[guarded]\nsubtotal = 74.7\ntax = 6.16\ntotal = {TOTAL}\nanswer: {TOTAL}\nverified after 3" in shown
    assert "[passed on: no_procedure]\nno result: None" in shown
    assert "no answer: invoice: step tax" in shown
    assert f"to pay: {TOTAL - 5}" in shown


def test_the_claim_is_settled_with_its_allowance_and_approved() -> None:
    """An item over the daily allowance is cut, one that is too old not paid, and the sum goes to a person."""
    total = Decimal("12.50") + min(Decimal("31.80"), Decimal(28)) + Decimal("22.40")
    shown = here_printed("expense_claim")
    assert f"checked: {{'applicant': 'Ada Byron', 'total': '{total}', 'approved': True}}" in shown
    assert "caught: wrong_value" in shown


def test_the_loan_is_decided_or_waits_for_an_officer() -> None:
    """Rate by purpose and score, half a point off for a loyal customer, and a run that goes on with the answer."""
    shown = here_printed("loan_decision")
    for rate, months in ((Decimal("0.069"), 36), (Decimal("0.094"), 48)):
        interest = cents(9000 * rate * months / 12)
        assert f"'payment': '{cents((9000 + interest) / months)}'" in shown
    assert "waits for an officer: Grant 9000.00 EUR over 48 months" in shown
    assert shown.count("verified: {'granted': True") == 2


def test_the_line_that_was_multiplied_wrongly_is_told() -> None:
    """Its difference is named; the totals add up."""
    off = Decimal("87.00") - 2 * Decimal("38.50")
    shown = here_printed("invoice_audit")
    assert "'lines_differ': True, 'net_differs': False, 'gross_differs': False" in shown
    assert f"['0.00', '0.00', '{off}']" in shown


def test_the_series_is_worked_out_with_its_units() -> None:
    """Micrograms and milligrams are the same measure; what is taken and filled up makes the volume."""
    pytest.importorskip("pint")
    shown = here_printed("dilution_series")
    assert "verified: {'take': ['2 mL', '0.8 mL', '0.2 mL'], 'fill': ['2 mL', '3.2 mL', '3.8 mL']" in shown


def test_the_worker_is_restarted_until_its_queue_is_short() -> None:
    """Two restarts halve it below the bound, and the ticket is closed."""
    shown = here_printed("runbook")
    assert "closed: worker-17 is at 75" in shown
    assert "2 restarts" in shown


def test_two_returns_are_settled_by_the_tables() -> None:
    """An exception, a member's postage, furniture that is late and large."""
    first = cents(Decimal("320.50") * Decimal("0.70")) - cents(Decimal("4.90") / 2)
    second = cents(Decimal("500.00") * Decimal("0.20")) - Decimal("24.90") - 15  # after 50 days of 45
    assert f"verified: {100 + first + second}" in here_printed("returns_desk")


@pytest.mark.slow
def test_the_agent_reads_what_is_verified_and_nothing_else() -> None:
    """A slip is mended, and neither a stubborn model nor a wrong tool gets a value to the agent."""
    pytest.importorskip("agents")
    mended, stubborn, wrong = [line for line in printed("openai_agents_tool").splitlines() if "agent:" in line]
    assert f'"answer": "{TOTAL}"' in mended
    assert "stopped at step tax (wrong_value)" in stubborn
    assert "total (wrong_value)" in wrong
    assert not any(value in stubborn + wrong for value in (str(TOTAL), "6.16", "6.17", str(SUBTOTAL)))


@pytest.mark.slow
def test_the_agent_answers_what_is_verified_and_passes_on_all_else() -> None:
    """A guarded call gives steps and answer, another is passed on, and what is not verified is an error."""
    pytest.importorskip("langchain")
    shown = printed("langchain_agent")
    assert f"subtotal = 74.7\ntax = 6.16\ntotal = {TOTAL}\nanswer: {TOTAL}\nverified after 3 calls" in shown
    assert "caught: wrong_value\npassed on: Good morning.\nno answer: step tax" in shown


@pytest.mark.slow
def test_the_graph_pays_what_is_verified_alone() -> None:
    """A slip of the model is mended on the way; a model that insists on it leads to a person."""
    pytest.importorskip("langgraph")
    total = cents(Decimal("24.90") * 3 * Decimal("1.19"))
    slips, insists = printed("langgraph_graph").splitlines()
    assert slips == f"slips: paid {total}"
    assert insists.startswith("insists: to be looked at: ")
    assert insists.endswith("stopped at step total (wrong_value)")


@pytest.mark.slow
def test_an_agent_gives_what_is_verified() -> None:
    """A guarded request is mended or an error, and an output with a wrong step is asked again."""
    pytest.importorskip("pydantic_ai")
    shown = printed("pydantic_ai_agent")
    assert f"tax=Decimal('{TAX}') total=Decimal('{TOTAL}') verified after 3 calls" in shown
    assert "stopped at step tax (wrong_value)" in shown
    assert f"total=Decimal('{TOTAL}') after 2 calls" in shown


@pytest.mark.slow
def test_the_agent_is_told_what_failed_and_no_right_value_but_that_of_a_verified_run() -> None:
    """A wrong step fails and a right one passes, a transcript is looked over, and the run ends on the total."""
    pytest.importorskip("mcp.server.mcpserver")
    checked, ran = printed("mcp_client").split("run_procedure: ")
    assert "tax failed (wrong_value)" in checked
    assert "tax passed" in checked
    assert "wrong_value at tax" in checked
    assert str(TAX) not in checked
    assert ran.endswith(f"answer: {TOTAL}\n")


@pytest.mark.slow
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


def _settled_rightly(shown: str) -> None:
    assert 'Call get_order(order="A1") first' in shown
    assert "No more is paid back than was paid." in shown
    assert "the manager agrees" in shown
    assert shown.splitlines()[-2].endswith("Done: 120.00 EUR are on their way.")
    assert shown.splitlines()[-1].removesuffix(".0)]").removesuffix(")]") == "paid: [('A1', 120"


def test_an_agent_that_wants_too_much_is_told_what_to_do() -> None:
    """What the policy forbids is refused, and the agent finishes the right way."""
    _settled_rightly(here_printed("refund_desk"))
    _settled_rightly(printed("refund_desk_anthropic"))
    _settled_rightly(printed("refund_desk_responses"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("framework", "show"),
    [
        ("pydantic_ai", lambda: printed("refund_desk_pydantic_ai")),
        ("langchain", lambda: printed("refund_desk_langchain")),
        ("agents", lambda: printed("refund_desk_openai_agents")),
        ("mcp", lambda: printed("refund_desk_mcp")),
    ],
)
def test_an_agent_of_a_framework_is_told_what_to_do(framework: str, show: Callable[[], str]) -> None:
    """The same desk, with the tools of the framework behind the gate."""
    pytest.importorskip(framework)
    _settled_rightly(show())
