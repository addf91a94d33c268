"""A written policy as a draft: what can be read in one way is a rule, everything else is listed with its line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tables import all_rows

from stepguard import Policy
from stepguard.cli import main
from stepguard.errors import ConfigError
from stepguard.policy.prose import DraftedPolicy, draft_policy
from stepguard.policy.tool_schemas import declare_tools


def tool(name: str, /, *, required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    """A tool as OpenAI has it."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    schema["required"] = list(properties) if required is None else required
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TEXT, NUMBER = {"type": "string"}, {"type": "number"}
TOOLS = declare_tools(
    json.dumps(
        [
            tool("get_order", id=TEXT), tool("refund", order=TEXT, amount=NUMBER), tool("close_account", customer=TEXT),
            tool("login"),
        ]
    )
)  # fmt: skip


def drafted(text: str) -> DraftedPolicy:
    return draft_policy(text, TOOLS, name="desk")


def demands(draft: DraftedPolicy) -> list[str]:
    """The rules of a draft without their words, and without those that were assumed."""
    lines = [each.rsplit(' "', 1)[0] for each in draft.text.split("\n") if not each.startswith(("#", "tool", "name"))]
    return [
        each.strip()
        for each in lines
        if each and not each.startswith(("never get", "never login", "allow login", "before"))
    ]


READ = [
    *((f"{how} `close_account`.", "never close_account") for how in ("Never call", "Do not call", "Don't ever use",
      "You must never call", "The agent may not use")),
    ("`close_account` must not be called.", "never close_account"),
    ("close_account is forbidden!", "never close_account"),
    ("NEVER CALL `close_account`", "never close_account"),
    ("**Never** call `close_account`.", "never close_account"),
    ("- [ ] Never call\n  `close_account()`.", "never close_account"),
    ("`refund` may be called at most once.", "at most once"),
    ("`refund` may be called at most twice per order.", "at most 2 times per order"),
    ("Call `refund` at most 3 times per `order`.", "at most 3 times per order"),
    ("refund() must be called at most five times per conversation.", "at most 5 times"),
    ("The amount of `refund` must not exceed 100.", "require amount <= 100"),
    ("`amount` of `refund` must be at least 0.01", "require amount >= 0.01"),
    ("The amount of `refund` must be more than 0.", "require amount > 0"),
    ("`refund` requires the approval of the manager.", "confirmed by manager"),
    ("`refund` must be approved by a manager.", "confirmed by manager"),
    ("Obtain the consent of the customer before calling `refund`.", "confirmed by customer"),
    ("Before calling `refund`, call `login` first.", "done login"),
    ("Call `login` before `refund`.", "done login"),
    ("`refund` may only be called after `login`.", "done login"),
]  # fmt: skip


@all_rows("text, demand", READ)
def test_a_sentence_that_can_be_read_in_one_way_is_a_rule(text: str, demand: str) -> None:
    """With the sentence as its words, and its line; the draft is a policy."""
    draft = drafted(text)
    assert demand in demands(draft)
    assert draft.rules == 1
    assert draft.policy == Policy.parse(draft.text)
    assert "# line 1: " in draft.text
    assert [each for each in draft.notes if each.line is not None] == []


UNREAD = [
    "Never call `close_account` unless the manager agrees.", "Never call `close_account` on Sundays.",
    "You should not call `close_account`.", "Never call close account.", "Never close an account.",
    "Minors: never call `close_account`.", '"Never call `close_account`."', "Never call `close_account`?",
    "Never call `close_account` or `refund`.", "Never call `close_account`, except for gold members.",
    "If in doubt, never call `close_account`.", "It is not true that `close_account` is forbidden.",
    "Never call `drop_table`.", "`refund` may be called at most twice per day.",
    "`refund` may be called at most twice per customer.", "`refund` may be called at most 0 times.",
    "`refund` may be called at most twice within 24 hours.", "`refund` may be called at least twice.",
    "The amount of `refund` must not exceed 100 EUR.", "The amount of `refund` must not exceed the price.",
    "The order of `refund` must not exceed 100.", "The amount of `refund` should not exceed 100.",
    "Never call `close_account`...", "`refund` must be confirmed by email.", "`refund` needs approval by nobody.",
    "The amount of `refund` must not exceed 1.000.", "`refund` may be called at most 02 times.",
    "`refund` requires approval.", "`refund` requires the approval of the manager above 100.",
    "Call `refund` after `login`.", "~~Never call `close_account`.~~", "Call `login` before `login`.",
    "For gold members:\nNever call `close_account`.", "# Never call `close_account`",
    "**Never call `close_account`.**", "> Never call `close_account`.", "| Never call `close_account`. |",
    "```\nNever call `close_account`.\n```", "<!--\n\nNever call `close_account`.\n\n-->",
    "    Never call `close_account`.", "~~~\n```\nNever call `close_account`.\n~~~",
    "```\n~~~\nNever call `close_account`.",
    "````md\n```\nNever call `close_account`.\n```\n````", "``` one `\n\n```\nNever call `close_account`.\n```",
    "```\n``` x\nNever call `close_account`.\n```",
]  # fmt: skip


@all_rows("text", UNREAD)
def test_everything_else_is_listed(text: str) -> None:
    """With its line and why; no rule comes of it, not even a part of one."""
    draft = drafted(text)
    assert draft.rules == 0
    assert demands(draft) == ["never refund", "never close_account"]
    assert any(each.line is not None and each.kind == "left_out" for each in draft.notes)
    assert draft.policy is not None


NARROWED = [
    "# Desk\n\nThank them. For gold members:\n\n- Never call `close_account`.",
    "# Desk\n\n## Gold members\n\nNever call `close_account`.",
    "# Desk\n\n# Gold members\n\nNever call `close_account`.",
    "Desk\n====\n\nGold members\n------------\n\nNever call `close_account`.",
    "**Gold members**\n\nThank them.\n\nNever call `close_account`.",
    "For gold members:\n\n- Thank them.\n- Never call `close_account`.",
    "For gold members:\n\nNever call `close_account`.",
    "1. Gold members\n   - Never call `close_account`.",
    "1. Gold members\n\n   Never call `close_account`.",
    "This is for gold members. Never call `close_account`.",
    "Never call `close_account`. Gold members are exempt.",
    "- Never call `close_account`.\n  This is for gold members.",
    "Only for gold members.\n\nNever call `close_account`.",
    "Gold members\n\n- Never call `close_account`.",
    "If somebody is a gold member,\n\n- thank them\n- Never call `close_account`.",
    "Never call `close_account`.\n\nThis is for gold members.",
    "- Never call `close_account`.\n- Except for gold members.",
    "| gold members |\n\nNever call `close_account`.",
    "<b>Gold members</b>\n\nNever call `close_account`.",
    "Call `get_order` before `close_account`.",
    "- Never call `close_account`.\n  - Gold members may.",
    "- Never call `close_account`.\n  - Never on Sundays.\n\n    Gold members may.",
    "Never call `close_account`.\n\nThank them. Gold members are exempt.",
    "- Thank them, the rest no longer applies.\n- Never call `close_account`.",
    "- Never call `close_account`.\n- Thank them.\n\nAll of this is void for gold members.",
    "- What is not ours:\n- Never call `close_account`.",
    "- ~~\n- Never call `close_account`.\n- ~~",
    "Never call `close_account`.\n<br>Gold members may.",
    "Never call `close_account`.\n> Gold members may.",
    "# Desk\n\nNever call `close_account`.\n\n## Gold members\n\nNone of the rules above count; ignore them.",
    "# Examples of wrong policies\n\nNever call `close_account`.",
    "- Gold\u2028members\n  - Never\u2028call `close_account`.",
]


@all_rows("text", NARROWED)
def test_what_may_be_narrowed_by_what_is_around_it_is_only_proposed(text: str) -> None:
    """As a comment that a person uncomments; a first heading is a title, and narrows nothing."""
    draft = drafted(text)
    assert draft.rules == 0
    assert demands(draft) == ["never refund", "never close_account"]
    assert [each.kind for each in draft.notes if each.line is not None].count("proposed") == 1
    proposed = draft.text.split("\n# ", 2)[2]
    assert "close_account" in proposed


def test_what_narrows_nothing_is_no_doubt() -> None:
    """A title, a heading that is the name of a tool, another item of a list, a paragraph behind one."""
    text = (
        "# Desk\n\n- Be kind.\n- Never call `login`.\n- `refund` may be called at most once.\n\n"
        "`refund` requires the approval of the manager.\n\n## `close_account`\n\nNever call `close_account`."
    )
    assert drafted(text).rules == 4


def test_tools_that_no_rule_speaks_of_are_forbidden_and_named() -> None:
    """An assumption that is safe, and that a person has to look at."""
    draft = drafted("Never call `close_account`.")
    assumed = [each.text for each in draft.notes if each.kind == "assumed"]
    assert assumed == ["get_order", "refund", "login"]
    assert 'never refund "Nothing of the written policy' in draft.text


def test_without_tools_no_argument_is_known() -> None:
    """Tools that rules name take any; what needs an argument is listed."""
    text = "`refund` requires the approval of the manager.\n\nThe amount of `refund` must not exceed 100."
    draft = draft_policy(text)
    assert "tool refund(...)" in draft.text
    assert [(each.line, each.kind) for each in draft.notes] == [(3, "left_out")]
    assert draft_policy("Be kind.").rules == 0


def test_tools_are_declared_from_what_models_and_clients_are_given() -> None:
    """As OpenAI, Anthropic and MCP have them; what cannot be declared is passed on unread, and named."""
    where = {"type": "object", "properties": {"city": TEXT, "since": {"type": "string", "format": "date"}}}
    given = {
        "tools": [
            {"name": "move", "input_schema": {"type": "object", "properties": {
                "to": {**where, "required": ["city", "since"]}, "how": {"enum": ["by_road", "by_sea"]},
                "stops": {"type": "array", "items": {"type": "integer"}}, "why": TEXT,
                "odd": {"type": ["string", "null"]}, "in-between": TEXT,
            }, "required": ["to", "how", "stops", "odd", "in-between"]}},
            {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
            {"name": "not a name"}, {"name": "look"},
        ]
    }  # fmt: skip
    made = declare_tools(json.dumps(given))
    assert made.tools == {
        "move": "tool move(to: MoveTo, how: one_of(by_road, by_sea), stops: list of integer, ...)",
        "look": "tool look() reads",
    }
    assert made.records == ["record MoveTo:\n  city: text\n  since: date"]
    assert made.reads == ["look"]
    assert [each.split(":")[0] for each in made.left_out] == [
        "the argument 'why' of move", "the argument 'odd' of move", "the argument 'in-between' of move",
        "the tool 'not a name'", "the tool 'look'",
    ]  # fmt: skip
    assert draft_policy("`move` may be called at most once.", made).policy is not None
    odd = {"a": {"enum": ["one"]}, "b": {"enum": ["A", "a"]}, "in": TEXT, "c": {"type": "object"}, "d": TEXT}
    strange = {"name": "act", "parameters": {"properties": odd, "required": [*odd, [], None]}}
    made = declare_tools(json.dumps([strange, {"name": "or"}, {"name": "if"}]))
    assert made.tools == {"act": "tool act(d: text, ...)"}
    assert len(made.left_out) == 6
    for wrong in ("", "{}", "[]", '["move"]', '{"tools": {"name": "move"}}'):
        with pytest.raises(ConfigError, match="a JSON list of tools"):
            declare_tools(wrong)


def test_the_command_prints_the_draft_and_lists_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The draft on stdout, the list on stderr; what is printed can be loaded."""
    text, tools = tmp_path / "refund desk.md", tmp_path / "tools.json"
    text.write_text("`refund` may be called at most once per order.\n\nBe kind.\n", encoding="utf-8")
    tools.write_text(json.dumps([tool("refund", order=TEXT)]), encoding="utf-8")
    assert main(["import-policy", str(text), "--tools", str(tools)]) == 1
    shown = capsys.readouterr()
    (tmp_path / "draft.policy").write_text(shown.out, encoding="utf-8")
    assert Policy.load(tmp_path / "draft.policy").name == "refund desk"
    assert "line 3 left out: Be kind.\n    it fits none of the forms" in shown.err
    assert "1 sentences are rules of the draft, 1 are not" in shown.err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Never call `refund`."), encoding="utf-8"))
    assert main(["import-policy", "-"]) == 0
    capsys.readouterr()
    assert main(["import-policy", str(tmp_path / "none.md")]) == 2
    text.write_text("Be kind.", encoding="utf-8")
    assert main(["import-policy", str(text)]) == 3


def test_a_rule_that_is_said_twice_is_drafted_once() -> None:
    """The second sentence is listed with the line of the first, and the draft is a policy."""
    drafted = draft_policy("Never call `wipe`.\n\n`wipe` must not be called.\n")
    assert (drafted.rules, [each.reason for each in drafted.notes]) == (1, ["line 1 says the same"])
    assert drafted.policy is not None
