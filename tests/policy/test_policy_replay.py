"""Recorded conversations against a policy: which calls would have been refused, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from policy_harness import NOW, ORDER, SHOP

from stepguard import Policy
from stepguard.cli import main
from stepguard.errors import ConfigError
from stepguard.policy.replay import read_conversations, replay_conversation, summary_of


def call(id: str, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """A message of the agent that calls a tool."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str, content: Any) -> dict[str, Any]:
    """What a tool gave back."""
    return {"role": "tool", "tool_call_id": id, "content": content if isinstance(content, str) else json.dumps(content)}


TALK = [
    {"role": "user", "content": "Money back!"},
    call("a", "refund", order="A1", amount=10),  # not looked up
    result("a", "Error: no such order"),
    call("b", "get_order", id="A1"),
    result("b", ORDER),
    call("c", "refund", order="A1", amount=120),  # needs the manager
    result("c", {**ORDER, "refunded": 120}),
    call("a", "refund", order="A1", amount=40),  # more than is left
    result("a", {**ORDER, "refunded": 160}),
    call("d", "drop_tables"),
    result("d", "done"),
]


def test_each_call_is_judged_by_what_was_known() -> None:
    """A call that would have been refused was made all the same, and what it gave back counts from there on."""
    policy = Policy.parse(SHOP)
    calls = replay_conversation(policy, TALK, now=NOW, facts={"customer": "C1"})
    assert [(each.message, each.decision.outcome, each.failed) for each in calls] == [
        *((2, "refuse", True), (4, "allow", False), (6, "ask", False), (8, "refuse", False), (10, "refuse", False))
    ]
    assert [reason.kind for each in calls for reason in each.decision.reasons] == [
        *("unseen", "unconfirmed", "broken", "unknown_tool")
    ]
    agreed = replay_conversation(policy, TALK, now=NOW, facts={"customer": "C1"}, confirmed=lambda role, before: True)
    assert agreed[2].decision.allowed
    figures = summary_of(calls)
    assert (figures["calls"], figures["changing"]) == (5, 4)
    assert figures["outcomes"] == {"refuse": 3, "allow": 1, "ask": 1}


def test_the_command_says_rule_and_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every call that would not have been let through stands with its line, its message and its rule."""
    rules, talks = tmp_path / "shop.policy", tmp_path / "talks.jsonl"
    rules.write_text(SHOP, encoding="utf-8")
    talks.write_text(json.dumps({"messages": TALK}) + "\n\n" + json.dumps(TALK[3:5]) + "\n", encoding="utf-8")
    options = ["--now", NOW.isoformat(), "--fact", "customer=C1"]
    assert main(["replay-policy", str(rules), str(talks), *options]) == 3
    shown = capsys.readouterr().out
    assert "line 1, message 8: refuse refund: rule in line 25: No more than what was paid. (broken)" in shown
    assert "6 calls in 2 conversations: 2 allow, 1 ask, 3 refuse" in shown
    assert main(["replay-policy", str(rules), str(talks), *options, "--confirmed", "manager", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["outcomes"] == {"refuse": 3, "allow": 3}
    talks.write_text(json.dumps(TALK[3:5]), encoding="utf-8")
    assert main(["replay-policy", str(rules), str(talks)]) == 0
    for wrong in (
        ["--now", "soon"],
        ["--zone", "Mars"],
        ["--zone", "America"],
        ["--fact", "customer"],
        ["--fact", "who=me"],
    ):
        assert main(["replay-policy", str(rules), str(talks), *wrong]) == 2


@pytest.mark.parametrize("line", ["{", "5", '{"talk": []}', '["hello"]'])
def test_a_line_that_is_no_conversation_is_named(line: str) -> None:
    """Nothing is passed over silently."""
    with pytest.raises(ConfigError, match="line 2 holds no conversation"):
        list(read_conversations(["[]", line]))
