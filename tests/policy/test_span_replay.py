"""Conversations recorded as OpenTelemetry spans against a policy, by the conventions for generative AI."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from policy_harness import ORDER, SHOP
from tables import all_rows

from stepguard import Policy
from stepguard.cli import main
from stepguard.errors import ConfigError
from stepguard.policy.replay import ReplayedCall, replay_conversation
from stepguard.policy.span_replay import read_span_conversations

POLICY = Policy.parse(SHOP)
NANO = 1_000_000_000
START = 1_773_144_000 * NANO  # 10 March 2026, 12:00 UTC


def otlp(name: str, at: float, *, span: str = "", parent: str = "", trace: str = "t1", **given: Any) -> dict[str, Any]:
    """A span of an export in OTLP; what stands in `given` is an attribute, its dots as underscores twice."""

    def value(data: Any) -> dict[str, Any]:
        match data:
            case bool():
                return {"boolValue": data}
            case int():
                return {"intValue": str(data)}
            case float():
                return {"doubleValue": data}
            case list():
                return {"arrayValue": {"values": [value(each) for each in data]}}
            case dict():
                return {"kvlistValue": {"values": [{"key": key, "value": value(each)} for key, each in data.items()]}}
        return {"stringValue": data}

    attributes = [
        {"key": key.replace("__", "."), "value": value(each)} for key, each in given.items() if key != "status"
    ]
    return {
        "traceId": trace, "spanId": span or f"s{at}", "parentSpanId": parent, "name": name, "attributes": attributes,
        "startTimeUnixNano": str(START + int(at * NANO)), "endTimeUnixNano": str(START + int((at + 0.5) * NANO)),
        **({"status": {"code": given["status"]}} if "status" in given else {}),
    }  # fmt: skip


def executed(tool: str, at: float, arguments: Any, result: Any = None, **more: Any) -> dict[str, Any]:
    """The execution of a tool."""
    given = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": tool}
    given["gen_ai__tool__call__arguments"] = arguments
    if result is not None:
        given["gen_ai__tool__call__result"] = result
    return otlp(f"execute_tool {tool}", at, **{**given, **more})


def chat(at: float, *, given: Any = None, said: Any = None, **more: Any) -> dict[str, Any]:
    """An inference with its messages."""
    messages = {"gen_ai__input__messages": given, "gen_ai__output__messages": said}
    return otlp("chat m", at, **{key: each for key, each in messages.items() if each is not None}, **more)


def asks(id: str, tool: str, /, **arguments: Any) -> dict[str, Any]:
    part = {"type": "tool_call", "id": id, "name": tool, "arguments": arguments}
    return {"role": "assistant", "parts": [part], "finish_reason": "tool_call"}


def gets(id: str, response: Any, key: str = "response") -> dict[str, Any]:
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": id, key: response}]}


def lines(*spans: dict[str, Any]) -> list[str]:
    """An export of each span in a line of its own."""
    return [json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [each]}]}]}) for each in spans]


def replayed(*spans: Any, **options: Any) -> list[ReplayedCall]:
    """Every call of a file."""
    text = [each for span in spans for each in ([span] if isinstance(span, str) else lines(span))]
    return [
        call
        for number, conversation in enumerate(read_span_conversations(text), 1)
        for call in replay_conversation(POLICY, conversation, number=number, facts={"customer": "C1"}, **options)
    ]


def shown(calls: list[ReplayedCall]) -> list[tuple[int, str, str, list[str]]]:
    return [
        (call.line, call.decision.tool, call.decision.outcome, [each.kind for each in call.decision.reasons])
        for call in calls
    ]


REFUNDS: list[Any] = [
    executed("refund", 1, '{"order": "A1", "amount": 10}', "paid back"),
    executed("get_order", 2, {"id": "A1"}, json.dumps(ORDER)),
    executed("refund", 3, '{"order": "A1", "amount": 150.01}', {"id": "A1"}),
]


def test_executions_of_tools_are_judged_in_the_order_of_their_times() -> None:
    """However they stand in the file, in text or structured, by the time at which each was made."""
    assert shown(replayed(*REFUNDS))[2][3][0] == "broken"
    first = shown(replayed(*reversed(REFUNDS)))
    assert [each[1:3] for each in first] == [("refund", "refuse"), ("get_order", "allow"), ("refund", "refuse")]
    assert [each[0] for each in first] == [3, 2, 1]
    late = executed("refund", 60 * 86_400, '{"order": "A1", "amount": 1}')
    assert "unknown_fact" in shown(replayed(*REFUNDS[1:2], late))[1][3]
    assert shown(replayed(*REFUNDS[1:2], late, now=None))[1][2] == "ask"


YES: Any = {"role": "user", "parts": [{"type": "text", "content": "yes"}]}
TALK = [
    chat(1, given=[YES], said=[asks("a", "get_order", id="A1")]),
    chat(
        2,
        given=json.dumps([asks("a", "get_order", id="A1"), gets("a", ORDER), YES]),
        said=json.dumps([asks("b", "refund", order="A1", amount=120)]),
    ),
    chat(3, given=[asks("b", "refund", order="A1", amount=120), gets("b", {**ORDER, "refunded": 120}, "result")],
         said=[asks("c", "refund", order="A1", amount=40)]),
]  # fmt: skip


def test_calls_in_messages_are_judged_where_no_execution_is_recorded() -> None:
    """Each once, however often the history is sent again; what the user said before goes to who reads it."""
    assert shown(replayed(*TALK)) == [
        *((1, "get_order", "allow", []), (2, "refund", "ask", ["unconfirmed"]), (3, "refund", "refuse", ["broken"]))
    ]
    heard: list[Any] = []

    def confirmed(role: str, before: Any) -> bool:
        heard.append((role, [each["content"] for each in before]))
        return True

    assert shown(replayed(*TALK, confirmed=confirmed))[1][2] == "allow"
    assert heard == [("manager", ["", "", "yes"]), ("manager", ["", ""])]


def test_a_call_that_is_recorded_twice_is_one() -> None:
    """In messages and as an execution, by two layers within each other, and by the server that was called."""
    inner = executed("refund", 2.1, '{"order": "A1", "amount": 10}', "ok", span="i", parent="between")
    between = otlp("http", 2.05, span="between", parent="o")
    outer = executed("refund", 2, '{"order": "A1", "amount": 10}', "ok", span="o", gen_ai__tool__call__id="b")
    far = {**executed("refund", 2.2, '{"order": "A1", "amount": 10}', span="f"), "kind": 2}
    talk = [chat(1.5, said=[asks("b", "refund", order="A1", amount=10)])]
    calls = replayed(executed("get_order", 1, '{"id": "A1"}', json.dumps(ORDER)), *talk, inner, between, outer, far)
    assert [each.decision.tool for each in calls] == ["get_order", "refund"]
    nested = executed("get_order", 2.1, '{"id": "A1"}', parent="o")
    assert len(replayed(outer, nested)) == 2


def test_what_an_execution_leaves_out_is_taken_from_the_messages() -> None:
    """By the identifier of the call."""
    bare = otlp("execute_tool get_order", 2, gen_ai__operation__name="execute_tool", gen_ai__tool__name="get_order",
                gen_ai__tool__call__id="a")  # fmt: skip
    history = chat(3, given=[asks("a", "get_order", id="A1"), gets("a", ORDER)])
    refund = executed("refund", 4, '{"order": "A1", "amount": 10}')
    for order in ([bare, history, refund], [history, bare, refund]):
        assert [each.decision.outcome for each in replayed(*order)] == ["allow", "allow"]
    with pytest.raises(ConfigError, match=r"line 1: the arguments of get_order were not recorded: turn the recording"):
        replayed(bare)


def test_conversations_are_kept_apart() -> None:
    """By their identifier, also over several traces; a span without one belongs to that of its trace."""
    seen = executed("get_order", 1, '{"id": "A1"}', json.dumps(ORDER), gen_ai__conversation__id="c1")
    there = executed("refund", 2, '{"order": "A1", "amount": 1}', trace="t2", gen_ai__conversation__id="c1")
    also = executed("refund", 3, '{"order": "A1", "amount": 2}', trace="t2")
    other = executed("refund", 4, '{"order": "A1", "amount": 3}', trace="t3")
    calls = replayed(seen, there, also, other)
    assert [each.conversation for each in calls] == [1, 1, 1, 2]
    assert [each[3] for each in shown(calls)] == [[], [], ["stale"], ["unseen"]]


def test_events_and_log_records_hold_messages_too() -> None:
    """An event of a span, or a record of a log beside it."""
    event = {"name": "gen_ai.client.inference.operation.details", "timeUnixNano": str(START + NANO)}
    details = {"gen_ai.output.messages": json.dumps([asks("a", "close_account", customer="C1")])}
    span = {"name": "chat", "context": {"trace_id": "0xab", "span_id": "0x1"}, "attributes": {"gen_ai.system": "x"}}
    span |= {"start_time": "2026-03-10T12:00:00Z", "end_time": "2026-03-10T12:00:01Z"}
    as_event = {**span, "events": [{**event, "attributes": details, "timestamp": "2026-03-10T12:00:01.5Z"}]}
    given = [{"key": key, "value": {"stringValue": each}} for key, each in details.items()]
    record = {"eventName": event["name"], "timeUnixNano": "0", "observedTimeUnixNano": str(START), "traceId": "ab"}
    log = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{**record, "attributes": given}]}]}]}
    for line in (as_event, log):
        assert shown(replayed(json.dumps(line)))[0][1:3] == ("close_account", "refuse")


def test_a_call_that_failed_may_have_been_done_unless_its_result_says_not() -> None:
    """A span with an error counts against limits, as it would for a gate."""
    look = executed("get_order", 1, '{"id": "A1"}', json.dumps(ORDER))
    again = [executed("get_order", at, '{"id": "A1"}', json.dumps(ORDER)) for at in (2.5, 3.5)]
    pay = '{"order": "A1", "amount": 1}'
    for more, outcome in (({"status": 2}, "refuse"), ({"error__type": "timeout"}, "refuse"), ({}, "allow")):
        result = None if more else "Error: nothing was paid"
        pays = [executed("refund", at, pay, result, **more) for at in (2, 3, 4)]
        calls = replayed(look, *pays, *again)
        assert [each.failed for each in calls if each.decision.tool == "refund"] == [True] * 3
        assert calls[-1].decision.outcome == outcome


WRONG = [
    (['{"a": 1}'], "line 1: a span, a log record or an export"),
    ([json.dumps(executed("mail", 1, "{}")), "[]"], "line 2: a span"),
    (['{"attributes": {"gen_ai.system": "x"}}'], "line 1: a record has no time"),
    (['{"resourceSpans": 5}'], "line 1: it is no export of OTLP"),
    (lines(otlp("GET /", 1)), "no call of a tool is recorded in these spans: turn the recording of their content on"),
    (lines(chat(1, gen_ai__response__finish_reasons=["tool_calls"])), "no call of a tool is recorded"),
    (lines(chat(1, said="[cut off")), "line 1: gen_ai.output.messages holds no messages"),
    (lines(otlp("x", 1, gen_ai__operation__name="execute_tool")), "its name was not recorded"),
    (lines(chat(1, said=[asks("", "mail")])), "line 1: a call of a tool has no identifier"),
    (lines(*(chat(at, said=[asks("a", "mail", to=to)]) for at, to in ((1, "x"), (2, "y")))), "stands for two calls"),
    ([json.dumps({**otlp("chat", 1), "attributes": [], "events": [{"name": "gen_ai.choice", "timeUnixNano": 5,
      "attributes": [{"key": "gen_ai.system", "value": {"stringValue": "x"}}]}]})], "recorded one by one"),
]  # fmt: skip


@all_rows("text, words", WRONG)
def test_what_cannot_be_read_is_refused_by_name(text: list[str], words: str) -> None:
    """A call that was left out would be counted as none."""
    with pytest.raises(ConfigError) as caught:
        replayed(*text)
    assert words in str(caught.value)


def test_the_command_tells_spans_from_chats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the line of each call; empty lines in front do not count."""
    (tmp_path / "shop.policy").write_text(SHOP, encoding="utf-8")
    (tmp_path / "spans.jsonl").write_text("\n" + "\n".join(lines(*REFUNDS)) + "\n", encoding="utf-8")
    command = ["replay-policy", str(tmp_path / "shop.policy"), str(tmp_path / "spans.jsonl"), "--fact", "customer=C1"]
    assert main(command) == 3
    shown = capsys.readouterr().out
    assert "line 2: refuse refund: rule in line" in shown
    assert shown.endswith("3 calls in 1 conversations: 1 allow, 0 ask, 2 refuse\n")
    assert main([*command, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)["not_let_through"]
    assert [(each["line"], each["message"]) for each in found] == [(2, None), (4, None)]


@pytest.mark.parametrize("dropped", ["", "execute_tool"])
def test_what_an_instrumented_agent_has_recorded_is_read(dropped: str) -> None:
    """Real spans of pydantic-ai, by its executions, or by its messages alone."""
    agents = pytest.importorskip("pydantic_ai")
    instrumentation = pytest.importorskip("pydantic_ai.capabilities.instrumentation")
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.models.instrumented import InstrumentationSettings

    kept = InMemorySpanExporter()
    provider = trace.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    left: list[tuple[str, Any]] = [
        *(("refund", {"order": "A1", "amount": 10}), ("get_order", {"id": "A1"})),
        ("refund", {"order": "A1", "amount": 151}),
    ]

    def play(messages: Any, info: Any) -> Any:
        return agents.ModelResponse([agents.ToolCallPart(*left.pop(0)) if left else agents.TextPart("Done.")])

    def get_order(id: str) -> dict[str, Any]:
        return ORDER

    def refund(order: str, amount: float) -> str:
        return "paid back"

    settings = InstrumentationSettings(tracer_provider=provider)
    agent = agents.Agent(
        FunctionModel(play),
        tools=[get_order, refund],
        capabilities=[instrumentation.Instrumentation(settings=settings)],
    )
    asyncio.run(agent.run("Money back!"))
    text = [each.to_json(indent=None) for each in kept.get_finished_spans()]
    text = [each for each in text if not dropped or dropped not in each]
    assert [each[1:] for each in shown(replayed(*text, now=None))] == [
        ("refund", "refuse", ["unseen"]), ("get_order", "allow", []), ("refund", "refuse", ["broken"]),
    ]  # fmt: skip


PAY = Policy.parse("tool pay(amount: number)\nbefore pay(amount):\n  require amount < 100\n")


@all_rows(
    "inner, calls",
    [({"amount": 1}, 1), ('{"amount": 1.0}', 1), ({"amount": 1, "memo": ""}, 1), ({"amount": 900}, 2), ("900", 2)],
)
def test_a_call_below_one_of_the_same_tool_is_the_same_where_nothing_differs(inner: Any, calls: int) -> None:
    """An inner layer that records a call again does not double it; another call does not hide below the first."""
    spans = [executed("pay", 1, {"amount": 1}, span="a"), otlp("x", 1.1, span="b", parent="a")]
    (conversation,) = read_span_conversations(lines(*spans, executed("pay", 1.2, inner, span="c", parent="b")))
    assert [each.decision.outcome for each in replay_conversation(PAY, conversation)] == ["allow", "refuse"][:calls]


def doubled(**given: Any) -> str:
    """A call as the SDK writes its span, always the same one."""
    call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay", **given}
    times = {"start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01Z"}
    return json.dumps({"context": {"trace_id": "1", "span_id": "2"}, **times, "attributes": call})


def test_what_is_recorded_twice_and_differs_is_refused() -> None:
    """Neither the first nor the last of two counts: of a span, an attribute, an argument."""
    key, small, large = "gen_ai.tool.call.arguments", '{"amount": 1}', '{"amount": 900}'
    one = doubled(**{key: small})
    twice = one.replace(f'"{key}"', f'"{key}": {json.dumps(large)}, "{key}"')
    assert len(read_span_conversations([one, one])[0].calls) == 1
    for given in (
        [one, doubled(**{key: large})],
        [twice],
        [one.replace('"context"', '"name": "", "name": "", "context"')],
    ):
        with pytest.raises(ConfigError, match=r"twice|two calls"):
            read_span_conversations(given)
    listed = executed("pay", 1, {"amount": 900})
    listed["attributes"][2]["value"]["kvlistValue"]["values"].append({"key": "amount", "value": {"intValue": "1"}})
    for line in (lines(listed)[0], doubled(**{key: '{"amount": 900, "amount": 1}'})):
        (conversation,) = read_span_conversations([line])
        assert [each.decision.outcome for each in replay_conversation(PAY, conversation)] == ["refuse"]
