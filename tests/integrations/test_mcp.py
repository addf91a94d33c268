"""The MCP server through the library's own client, in memory: steps, arguments, runs, audits."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver")

from mcp import Client
from mcp_harness import GOOD, INPUTS, ORDER, call, talk, text, told, verify
from tables import all_rows

from stepguard import Procedure
from stepguard.integrations.mcp.server import create_server
from stepguard.testing import ScriptedBackend

pytestmark = pytest.mark.once


# One step


@all_rows(
    "step, value, values",
    [
        ("subtotal", "74.70", {"price": "24.90", "quantity": 3}),
        ("subtotal", 74.7, {"price": 24.90, "quantity": 3}),
        ("subtotal", "747/10", {"price": 24.9, "quantity": "3"}),
        ("subtotal", 0.3, {"price": 0.1, "quantity": 3}),
        ("tax", "6.16", {"subtotal": "74.70"}),
        ("tax", 6.16, {"subtotal": 74.7, "price": "24.90", "quantity": 3}),
    ],
)
@all_rows("mode", ["auto", "legacy"])
def test_a_right_step_passes_whatever_way_its_numbers_are_written(
    mode: str, step: str, value: object, values: dict[str, object]
) -> None:
    """Text or JSON numbers, whole or not: they are what was written, and nothing is rounded on the way."""
    arguments = {"procedure": ORDER, "step": step, "values": values, "value": value}
    result = call(create_server(), "verify_step", arguments, mode=mode)
    assert not result.is_error
    assert result.structured_content["verdict"] == "passed"
    assert result.structured_content["strength"] == "proved"


@pytest.mark.parametrize(
    ("value", "working", "kind"),
    [
        *(("6.17", None, "wrong_value"), ("6.1600001", None, "malformed"), ("6.16 = 6.16", None, "malformed")),
        *(("about six", None, "malformed"), ("6.17", "74.70 * 8.25 / 100", "wrong_value")),
        *(("6.16", "74.60 * 8.25 / 100", "wrong_operand"), ("6.16", "74.70 + 8.25 / 100", "unfaithful_work")),
        *(("6.16", "6 + 0.16", "wrong_operand"), ("5 = 6.17", "74.70 * 8.25 / 100", "malformed")),
    ],
)
def test_a_wrong_step_fails_with_its_kind_and_no_hint(value: str, working: str | None, kind: str) -> None:
    """What is wrong is named, and nothing the caller is told holds the right value that it did not write itself."""
    result = verify("tax", value, working=working)
    assert (result.structured_content["verdict"], result.structured_content["kind"]) == ("failed", kind)
    assert result.structured_content["strength"] == "unverified"
    assert "6.16" not in told(result)
    assert "passed" not in text(result)


def test_a_value_alone_passes_and_it_is_said_that_the_working_was_not_checked() -> None:
    """Working is checked where it is given."""
    alone = verify("tax", "6.16").structured_content
    shown = verify("tax", "6.16", working="74.70 * 8.25 / 100 = 6.16275").structured_content
    assert (alone["working_checked"], shown["working_checked"]) == (False, True)
    assert "the working was not checked" in alone["told"]
    assert shown["verdict"] == "passed"


def test_what_cannot_be_checked_is_undecided_and_no_pass() -> None:
    """A step in words, and one that has no value, pass with no claim at all."""
    words = 'inputs: a, b\nt1: text = "Name the country." (reads a)\nt2 = a / b'
    for step, value in (("t1", "France"), ("t2", "0")):
        arguments = {"procedure": words, "step": step, "values": {"a": 1, "b": 0}, "value": value}
        result = call(create_server(), "verify_step", arguments)
        assert result.structured_content["verdict"] == "undecided"
        assert "not a pass" in text(result)


def test_a_step_does_not_pass_on_an_earlier_one_that_is_seen_to_be_wrong() -> None:
    """Earlier values are checked as far as what they rest on is given; what cannot be checked so is named."""
    wrong = verify("total", "80.85", {**INPUTS, "subtotal": "74.70", "tax": "6.15"}).structured_content
    assert (wrong["verdict"], wrong["kind"]) == ("failed", "wrong_operand")
    assert "tax" in wrong["told"]
    right = verify("total", "80.86", {**INPUTS, "subtotal": "74.70", "tax": "6.16"}).structured_content
    assert (right["verdict"], right["taken_as_given"]) == ("passed", [])
    alone = verify("tax", "6.16", {"subtotal": "74.70"}).structured_content
    assert (alone["verdict"], alone["taken_as_given"]) == ("passed", ["subtotal"])
    assert "taken as given and not checked here: subtotal" in alone["told"]


# Arguments


@all_rows(
    "change, said",
    [
        *(({"step": "nope"}, "no step 'nope'"), ({"values": {}}, "reads 'subtotal'")),
        ({"values": {"subtotal": "74.70", "other": 1}}, "'other' is no input"),
        ({"values": {"subtotal": "74.70", "total": 1}}, "'total' is no input and no step before tax"),
        *(({"values": {"subtotal": "much"}}, "'subtotal'"), ({"values": {"subtotal": math.nan}}, "values")),
        *(({"values": {"subtotal": math.inf}}, "values"), ({"values": {"subtotal": 0.1 + 0.2}}, "give it as text")),
        *(({"values": {"subtotal": ["74.70"]}}, "value"), ({"values": {"subtotal": None}}, "value")),
        *(({"value": math.nan}, "value"), ({"value": {}}, "value")),
        ({"procedure": "no procedure of this name"}, "no procedure is named"),
        ({"procedure": "inputs: x\nt = x +"}, "line 2"),
        ({"procedure": "inputs: x\n" + "t = x + 1 # long\n" * 10_000}, "too long"),
        *(({"value": "1" * 200_000}, "too long"), ({"step": 7}, "step")),
    ],
)
def test_an_argument_that_cannot_work_is_a_clear_error_of_the_tool(change: dict[str, Any], said: str) -> None:
    """The error says what is wrong; the server goes on."""
    good = {"procedure": ORDER, "step": "tax", "values": {"subtotal": "74.70"}, "value": "6.16"}

    async def said_to(client: Client) -> tuple[Any, Any]:
        return await client.call_tool("verify_step", {**good, **change}), await client.call_tool("verify_step", good)

    # The in-memory transport hands floats over as they are, NaN among them.
    wrong, right = talk(create_server(), said_to)
    assert wrong.is_error
    assert said in text(wrong)
    assert right.structured_content["verdict"] == "passed"


def test_a_transcript_that_is_too_long_is_refused() -> None:
    """Sizes are limited, and the limit is an option."""
    arguments = {"procedure": ORDER, "inputs": INPUTS, "transcript": "x" * 1001}
    result = call(create_server(max_transcript=1000), "audit_transcript", arguments)
    assert result.is_error
    assert "at most 1000" in text(result)


# Audits and procedures


TRANSCRIPT = (
    "subtotal = 24.90 * 3 = 74.70\ntax = 74.70 * 8.25 / 100 = 6.17\ntotal = 74.70 + 6.17 = 80.87\nAnswer: 80.87"
)


def test_an_audit_names_what_is_wrong_and_where_without_a_hint() -> None:
    """Kinds, steps and lines; neither reasons nor right values."""
    arguments = {"procedure": ORDER, "inputs": INPUTS, "transcript": TRANSCRIPT}
    result = call(create_server(), "audit_transcript", arguments)
    found = result.structured_content
    assert (found["ok"], found["wrong"], found["answer_right"]) == (False, True, False)
    assert [(each["kind"], each["step"], each["place"]["line"]) for each in found["findings"]][:2] == [
        ("wrong_value", "tax", 2),
        ("inherited", "total", 3),
    ]
    assert "line 2: wrong_value at tax" in text(result)
    assert not any(each in told(result) for each in ("6.16", "80.86"))


def test_reasons_are_told_where_the_server_says_so() -> None:
    """People may want to know what is right."""
    arguments = {"procedure": ORDER, "inputs": INPUTS, "transcript": TRANSCRIPT}
    result = call(create_server(tell_reasons=True), "audit_transcript", arguments)
    assert "6.16" in text(result)
    assert result.structured_content["steps"][1]["expected"] == "6.16"


def test_procedures_of_a_folder_are_listed_and_named(tmp_path: Path) -> None:
    """A caller finds what it can name, and names it in every tool; without any there is no such tool."""
    (tmp_path / "order.txt").write_text(ORDER, encoding="utf-8")
    server = create_server({"m": ScriptedBackend(GOOD)}, procedures=tmp_path)

    async def said(client: Client) -> tuple[Any, Any]:
        ran = await client.call_tool("run_procedure", {"procedure": "order", "inputs": INPUTS})
        return await client.call_tool("list_procedures", {}), ran

    listed, ran = talk(server, said)
    (order,) = listed.structured_content["procedures"]
    assert (order["name"], order["answer"]) == ("order", "total")
    assert [each["name"] for each in order["inputs"]] == ["price", "quantity"]
    assert order["steps"][1] == {
        "id": "tax",
        "type": "decimal(2, half_up)",
        "reads": ["subtotal"],
        "text": "tax = subtotal * 8.25 / 100",
    }
    assert ran.structured_content["answer"] == "80.86"
    names = [each.name for each in talk(create_server(), lambda client: client.list_tools()).tools]
    assert names == ["verify_step", "run_procedure", "audit_transcript"]


def test_a_server_with_procedures_of_its_own_takes_no_others() -> None:
    """What a caller writes may have stood anywhere: it is run where the host says so, or has named none."""
    own, text_given = {"order": Procedure.parse(ORDER)}, {"procedure": ORDER, "inputs": INPUTS}
    refused = call(create_server({"m": ScriptedBackend(GOOD)}, procedures=own), "run_procedure", text_given)
    assert refused.is_error
    assert "its own procedures alone, by name: order" in text(refused)
    for options in ({"procedures": own, "accept_texts": True}, {}):
        server = create_server({"m": ScriptedBackend(GOOD)}, **options)  # type: ignore[arg-type]
        assert not call(server, "run_procedure", text_given).is_error
    assert call(create_server(accept_texts=False), "run_procedure", text_given).is_error


def test_a_run_without_an_answer_tells_texts_by_their_size() -> None:
    """What was read from a document is not echoed in an error."""
    text_read = "Dear Sir, the sum of 80.86 EUR is due."
    steps = 'inputs: n\nletter: text = "Copy the letter." (reads n)\nt1 = n * 2'
    reply = {"letter": {"work": "", "value": text_read}, "t1": "3 * 2 = 7"}
    server = create_server({"m": ScriptedBackend(*[reply] * 9)}, guard={"repair": 0}, at_least="unverified")
    result = call(server, "run_procedure", {"procedure": steps, "inputs": {"n": 3}})
    assert result.is_error
    assert result.structured_content["values"] == {"letter": f"(a text of {len(text_read)} characters)"}
    assert "Dear Sir" not in told(result)
