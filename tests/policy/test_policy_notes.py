"""What a policy says of itself: sums that a negative amount would lower, and conditions that decide nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tables import all_rows

from stepguard import Policy
from stepguard.cli import main
from stepguard.errors import PolicyError

HEAD = (
    "record Part:\n  name: text\n  amount: money(EUR)\n"
    "tool pay(to: text, amount: money(EUR), parts: list of Part) changes nothing\n"
)
EARLIER = "  earlier pay(to=to) as paid\n  require amount + sum of paid.amount <= 100\n"
LISTED = "  require (sum of p.amount for p in parts) <= 100\n"
NESTED = "  earlier pay() as paid\n  require (sum of (sum of q.amount for q in p.parts) for p in paid) <= 5\n"
NAMED = "  earlier pay() as paid\n  t = amount + (sum of p.amount for p in paid where p.to == to)\n  require t <= 100\n"

NOTED = [
    (EARLIER, 7, "amount"),
    (EARLIER + "  require amount > 0 or to == \"x\"\n", 7, "amount"),
    (EARLIER + "  require amount > 0 unless to == \"x\"\n", 7, "amount"),
    (EARLIER + "  if to == \"x\":\n    require amount > 0\n", 7, "amount"),
    (EARLIER + "  require amount >= -1\n", 7, "amount"),
    (EARLIER + "  require amount < 50\n", 7, "amount"),
    (EARLIER + "  refuse if amount < 0 and to == \"x\"\n", 7, "amount"),
    (EARLIER + "  for each p in parts:\n    require p.amount > 0\n", 7, "amount"),
    (NAMED, 7, "amount"),
    (LISTED, 6, "parts.amount"),
    (LISTED + "  require amount > 0\n", 6, "parts.amount"),
    (LISTED + "  require any of (p.amount > 0) for p in parts\n", 6, "parts.amount"),
    (LISTED + "  require all of (p.amount > 0) for p in parts where p.name == \"x\"\n", 6, "parts.amount"),
    (NESTED, 7, "parts.amount"),
    ("  bits = parts\n  require sum of bits.amount <= 5\n", 7, "parts.amount"),
]  # fmt: skip
KEPT = [
    *(EARLIER + f"  {line}\n" for line in (
        "require amount > 0", "require 0 < amount", "require amount >= 0.01 and amount < 50", "refuse if amount <= 0",
        "refuse if amount < 0 or to == \"x\"", "require not (amount < 0)",
    )),
    NAMED + "  require amount > 0\n",
    *(LISTED + f"  {line}\n" for line in (
        "require all of (p.amount > 0) for p in parts", "refuse if any of (p.amount < 0) for p in parts",
        "for each p in parts:\n    require p.amount >= 0",
    )),
    NESTED + "  for each p in parts:\n    require p.amount > 0\n",
    "  require (count of p for p in parts where p.amount > 5) < 3\n",
]  # fmt: skip


@all_rows("body, line, name", NOTED)
def test_a_sum_that_a_negative_amount_would_lower_is_noted(body: str, line: int, name: str) -> None:
    """With its line, the argument and the remedy; a condition that counts only now and then does not help."""
    (note,) = Policy.parse(f"{HEAD}before pay:\n{body}").notes
    assert note.line == line
    assert f"no rule of pay keeps {name} from being negative" in note.text


@all_rows("body", KEPT)
def test_a_sum_of_amounts_that_are_kept_from_being_negative_is_not(body: str) -> None:
    """However the rule says it."""
    assert Policy.parse(f"{HEAD}before pay:\n{body}").notes == ()


def test_the_rule_of_the_tool_that_is_added_up_counts() -> None:
    """It may be another tool than the one whose rule has the sum."""
    text = (
        "tool pay(sum_of: money(EUR)) changes nothing\ntool close() changes nothing\nbefore pay: at most 5 times\n"
        "before close(): \n  earlier pay() as paid\n  require sum of paid.sum_of <= 5\n"
    )
    (note,) = Policy.parse(text).notes
    assert "no rule of pay keeps sum_of" in note.text
    assert Policy.parse(text.replace("pay: at most 5 times", "pay(x): require x > 0")).notes == ()


def test_results_of_tools_are_added_up_as_they_are() -> None:
    """What a tool gave back was not written by the agent."""
    text = (
        "record Bill:\n  amount: money(EUR)\ntool bills() -> list of Bill reads\ntool close()\n"
        "before close:\n  seen bills() as listed\n  require sum of listed.amount <= 5\n"
    )
    assert Policy.parse(text).notes == ()


@all_rows(
    "demand",
    [
        "require true", "refuse if false", "require 1 < 2", 'require "a" == "a"', "require amount > 0 unless false",
        "at most once only if true", "require true or amount > 0", "require amount > 0 and not false",
        "if true:\n    at most once", "require today > 2026-01-01 and 3 == 3",
    ],
)  # fmt: skip
def test_a_condition_that_reads_nothing_is_refused(demand: str) -> None:
    """It always comes to the same, and whoever wrote it meant something else."""
    with pytest.raises(PolicyError, match="reads nothing and comes always to the same") as caught:
        Policy.parse(f"{HEAD}before pay:\n  {demand}\n")
    assert caught.value.line == 6


def test_commands_say_the_notes_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside the result, which is as it was."""
    policy, runs = tmp_path / "pay.policy", tmp_path / "runs.jsonl"
    policy.write_text(f"{HEAD}before pay:\n{EARLIER}", encoding="utf-8")
    runs.write_text("[]\n", encoding="utf-8")
    assert main(["replay-policy", str(policy), str(runs)]) == 0
    shown = capsys.readouterr()
    assert shown.out == "0 calls in 0 conversations: 0 allow, 0 ask, 0 refuse\n"
    assert "pay.policy, line 7: `sum of paid.amount` adds up" in shown.err
