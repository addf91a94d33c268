"""The gate before an MCP server, without a server: what becomes of each message, in either direction."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from policy_harness import NOW, ORDER, SHOP
from tables import all_rows

from stepguard import Policy
from stepguard.errors import ConfigError
from stepguard.integrations.mcp_gate import IDEMPOTENCY_KEY, GatedSession

MODERN: Any = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}


class Wire:
    """A session, with what goes in and comes out as data."""

    def __init__(self, policy: str = SHOP, *, ask: tuple[str, ...] = (), **options: Any) -> None:
        made = Policy.parse(policy)
        facts = {"customer": "C1"} if "customer" in made.facts else {}
        self.gate = made.gate(conversation="c", facts=facts, **options)
        self.session = GatedSession(self.gate, clock=lambda: NOW, ask=ask)
        self.number = 0

    def client(self, message: Any) -> list[tuple[str, Any]]:
        """What becomes of a message of the client; log lines are left out."""
        text = message if isinstance(message, str) else json.dumps(message)
        return [(to, json.loads(said)) for to, said in self.session.from_client(text) if to != "log"]

    def server(self, message: Any) -> None:
        """A message of the server: it passes as it is."""
        text = message if isinstance(message, str) else json.dumps(message)
        assert self.session.from_server(text)[0] == ("client", text)

    def call(self, tool: str, /, *, params: dict[str, Any] | None = None, **arguments: Any) -> tuple[str, Any]:
        """Offer a call under a new identifier."""
        self.number += 1
        sent = {"name": tool, "arguments": arguments, **(params or {})}
        ((to, said),) = self.client({"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": sent})
        return to, said

    def answer(self, result: Any, number: int | None = None) -> None:
        """The server answers the last call."""
        self.server({"jsonrpc": "2.0", "id": self.number if number is None else number, "result": result})

    def see(self) -> None:
        """Look the order up."""
        assert self.call("get_order", id="A1")[0] == "server"
        self.answer({"content": [], "structuredContent": ORDER, "isError": False})


def told(said: Any) -> str:
    """What a model is told in place of a result."""
    assert said["result"]["isError"] is True
    return str(said["result"]["content"][0]["text"])


def test_a_call_that_is_let_through_goes_on_as_the_rules_have_read_it() -> None:
    """With the arguments in one form, its key in `_meta`, and everything else of its parameters as it was."""
    wire = Wire()
    to, said = wire.call("refund", order="A1", amount=20)
    assert to == "client"
    assert 'Call get_order(id="A1") first.' in told(said)
    wire.see()
    meta = {"progressToken": 7, IDEMPOTENCY_KEY: "forged"}
    to, said = wire.call("refund", order="A1", amount="20.50", params={"_meta": meta})
    assert (to, said["id"], said["params"]["arguments"]) == ("server", 3, {"order": "A1", "amount": "20.5"})
    assert said["params"]["_meta"]["progressToken"] == 7
    assert len(said["params"]["_meta"][IDEMPOTENCY_KEY]) == 32
    wire.answer({"content": [{"type": "text", "text": json.dumps({**ORDER, "refunded": 20.5})}]})
    assert "No more than what was paid." in told(wire.call("refund", order="A1", amount=130)[1])


PASSED = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": "x", "method": "resources/read", "params": {"uri": "a://b", "Name": 1}},
    {"jsonrpc": "2.0", "id": 4, "method": "prompts/get", "params": {"name": "close_account"}},
    {"jsonrpc": "2.0", "id": 5, "result": {"roots": []}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
    {"jsonrpc": "2.0", "id": 6, "method": "something/new", "params": {"arguments": {"name": "close_account"}}},
]


@all_rows("message", PASSED)
def test_everything_but_calls_of_tools_passes_byte_for_byte(message: Any) -> None:
    """In both directions, with its blanks and numbers as they were written."""
    wire = Wire()
    text = json.dumps(message, indent=None, separators=(" ,", " : ")).replace("99", "9.90e1")
    assert wire.session.from_client(text) == [("server", text)]
    wire.server(text)
    wire.server(json.dumps({"method": "notifications/tools/list_changed"}))


UNCLEAR = [
    '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"close_account"}}',
    '{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"close_account"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_order","name":"close_account"}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_order","Arguments":{},"arguments":{}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_order","ARGUMENT\\u017f":{}}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["get_order"]}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mail","arguments":["a"]}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
    '{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"get_order"}}',
    '{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"get_order"}}',
    '[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"close_account"}}]',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":NaN}}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call"',
]


@all_rows("text", UNCLEAR)
def test_what_a_server_might_read_otherwise_reaches_no_server(text: str) -> None:
    """Keys that stand twice or in another spelling, batches, rubbish: an error names what is wrong."""
    ((to, said),) = Wire().client(text)
    assert to == "client"
    assert said["error"]["message"]


def test_a_call_without_an_identifier_reaches_no_server() -> None:
    """A notification cannot be answered, and a server might carry it out all the same."""
    call = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "mail", "arguments": {"to": "a", "words": ""}}}
    assert Wire().client(call) == []


def test_arguments_that_can_be_read_in_two_ways_are_refused_in_words() -> None:
    """A key twice, another tool's spelling, too deep a list: nothing of it is called."""
    wire = Wire()
    wire.see()
    twice = '{"order":"A1","amount":1,"amount":100}'
    text = f'{{"jsonrpc":"2.0","id":"t","method":"tools/call","params":{{"name":"refund","arguments":{twice}}}}}'
    ((to, said),) = wire.client(text)
    assert to == "client"
    assert "'amount' is given twice" in told(said)
    assert "There is no tool 'Refund'" in told(wire.call("Refund", order="A1", amount=1)[1])
    deep: Any = "x"
    for _ in range(400):
        deep = [deep]
    to, said = wire.call("mail", to="a", words=deep)
    assert to == "client"
    assert "without a task" in told(wire.call("mail", to="a", words="b", params={"task": {"ttl": 1}})[1])


@all_rows(
    "answer",
    [
        {"result": {"content": [], "isError": True}},
        {"result": {"content": [], "isError": "no"}},
        {"error": {"code": -32603, "message": "broken"}},
        {"result": []},
        {},
    ],
)
def test_a_call_that_failed_may_have_been_done(answer: Any) -> None:
    """An error of the tool or of the protocol uses a limit up, and what was looked up is stale."""
    wire = Wire("tool pay(to: text) changes nothing\nbefore pay: at most once per to")
    assert wire.call("pay", to="a")[0] == "server"
    wire.server({"jsonrpc": "2.0", "id": 1, **answer})
    assert "at most once" in told(wire.call("pay", to="a")[1])
    assert wire.gate.pending == ()


def test_a_call_that_is_cancelled_may_have_been_done() -> None:
    """The notification passes, and an answer that comes all the same passes, too."""
    wire = Wire("tool pay(to: text) changes nothing\nbefore pay: at most once per to")
    assert wire.call("pay", to="a")[0] == "server"
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    assert wire.client(cancelled) == [("server", cancelled)]
    assert wire.gate.pending == ()
    wire.answer({"content": [], "isError": False})
    assert "at most once" in told(wire.call("pay", to="a")[1])


def test_an_identifier_counts_once() -> None:
    """One that is not answered yet is an error, one that was answered is a refusal; text and number are two."""
    wire = Wire()
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "get_order", "arguments": {"id": "A"}},
    }
    assert wire.client(call)[0][0] == "server"
    assert "not answered yet" in wire.client(call)[0][1]["error"]["message"]
    assert wire.client({**call, "id": "1"})[0][0] == "server"
    wire.answer({"content": []}, 1)
    assert "was already made" in told(wire.client(call)[0][1])


@all_rows(
    "result, seen",
    [
        ({"structuredContent": {"n": 1.50}, "content": [{"type": "text", "text": '{"n": 9}'}]}, True),
        ({"structuredContent": {"result": {"n": 1.5}}, "content": []}, True),
        ({"content": [{"type": "text", "text": '{"n": 1.5}'}]}, True),
        ({"content": [{"type": "text", "text": '{"n": 1.5, "n": 1.5}'}]}, False),
        ({"content": [{"type": "text", "text": '{"n": 1.5}'}, {"type": "text", "text": "and more"}]}, False),
        ({"content": [{"type": "image", "data": "", "text": '{"n": 1.5}'}]}, False),
        ({"content": []}, False),
        ({}, False),
    ],
)
def test_what_a_result_says_is_its_structured_content_or_its_one_text(result: Any, seen: bool) -> None:
    """Anything else is there for no rule."""
    wire = Wire(
        "record R:\n  n: number\ntool look() -> R reads\ntool act()\nbefore act:\n"
        "  seen look() as r\n  require r.n == 1.5"
    )
    assert wire.call("look")[0] == "server"
    wire.answer(result)
    assert (wire.call("act")[0] == "server") is seen


def test_a_call_that_a_server_asks_something_about_goes_on_as_the_same_one() -> None:
    """The request that brings the answer is the same call under the same key; one with other arguments is another."""
    wire = Wire("tool pay(to: text) changes nothing\nbefore pay: at most once")
    _, first = wire.call("pay", to="a")
    wire.answer({"resultType": "input_required", "inputRequests": {"q": {}}, "requestState": "s"})
    state = {"requestState": "s", "inputResponses": {"q": {}}}
    assert "at most once" in told(wire.call("pay", to="b", params=state)[1])
    assert "at most once" in told(wire.call("pay", to="a", params={**state, "requestState": "t"})[1])
    to, again = wire.call("pay", to="a", params=state)
    assert (to, again["params"]["requestState"]) == ("server", "s")
    assert again["params"]["_meta"] == first["params"]["_meta"]
    wire.answer({"content": [], "resultType": "complete"})
    assert "once" in told(wire.call("pay", to="a", params=state)[1])


def test_after_three_refusals_a_person_takes_over() -> None:
    """The model is told to stop; what only reads still passes."""
    wire = Wire()
    for _ in range(3):
        said = told(wire.call("close_account", customer="C1")[1])
        assert "Accounts are closed by the office." in said
    assert "A person takes over now" in said
    assert "A person has taken over" in told(wire.call("mail", to="a", words="b")[1])
    assert wire.call("get_order", id="A1")[0] == "server"


@pytest.mark.parametrize("modern", [True, False])
def test_the_person_at_the_client_is_asked_for_a_yes(modern: bool) -> None:
    """In the way of either version of the protocol; a no is told to the model and is not asked again."""
    wire = Wire(ask=("manager",))
    wire.client({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {"capabilities": {"elicitation": {}}}})
    wire.see()

    def ask(amount: int, action: str, answer: object) -> tuple[str, Any]:
        to, said = wire.call("refund", order="A1", amount=amount, params={"_meta": MODERN} if modern else None)
        assert to == "client"
        response = {"action": action, "content": {"answer": answer}}
        if modern:
            request = said["result"]["inputRequests"]["stepguard"]
            state = {"requestState": said["result"]["requestState"], "inputResponses": {"stepguard": response}}
            found = wire.call("refund", order="A1", amount=amount, params={"_meta": MODERN, **state})
        else:
            request = said
            ((to, answered),) = wire.client({"jsonrpc": "2.0", "id": said["id"], "result": response})
            found = to, answered
        assert request["method"] == "elicitation/create"
        assert f'refund(order="A1", amount={amount})' in request["params"]["message"]
        return found

    for amount, action, answer in ((120, "decline", True), (121, "accept", "true"), (122, "accept", False)):
        assert "is waiting for approval by the manager" in told(ask(amount, action, answer)[1])
        params = {"_meta": MODERN} if modern else None
        assert "is waiting for" in told(wire.call("refund", order="A1", amount=amount, params=params)[1])
    to, said = ask(123, "accept", True)
    assert (to, said["params"]["arguments"]["amount"]) == ("server", 123)
    assert not {"requestState", "inputResponses"} & said["params"].keys()


def test_a_fact_is_asked_of_the_person_at_the_client() -> None:
    """Where the host says that they may answer for it; what is no answer leaves the call waiting."""
    policy = 'tool act(n: number)\nfact weight: number "How heavy is it?"\nbefore act: require n <= weight'
    wire = Wire(policy, ask=("weight",))
    _, said = wire.call("act", n=3, params={"_meta": MODERN})
    request = said["result"]["inputRequests"]["stepguard"]["params"]
    assert request["message"] == "How heavy is it?"
    response = {"action": "accept", "content": {"answer": "4.5"}}
    state = {"requestState": said["result"]["requestState"], "inputResponses": {"stepguard": response}}
    assert wire.call("act", n=3, params={"_meta": MODERN, **state})[0] == "server"
    assert "is waiting" in told(Wire(policy).call("act", n=3, params={"_meta": MODERN})[1])
    with pytest.raises(ConfigError, match="asks nobody for 'customer'"):
        Wire(ask=("customer",))


def test_a_yes_is_for_one_call() -> None:
    """Somebody who changes the call that was agreed to is asked again."""
    wire = Wire(ask=("manager",))
    wire.see()
    _, said = wire.call("refund", order="A1", amount=120, params={"_meta": MODERN})
    response = {"action": "accept", "content": {"answer": True}}
    state = {"requestState": said["result"]["requestState"], "inputResponses": {"stepguard": response}}
    _, again = wire.call("refund", order="A1", amount=150, params={"_meta": MODERN, **state})
    assert again["result"]["resultType"] == "input_required"


def test_a_client_that_cannot_ask_is_told_that_the_call_waits() -> None:
    """Nothing is sent that it does not know, such as a form to one that asks at an address alone."""
    wire = Wire(ask=("manager",))
    wire.see()
    assert "waiting for approval" in told(wire.call("refund", order="A1", amount=120)[1])
    offers: list[tuple[dict[str, Any], bool]] = [({"url": {}}, False), ({"form": {}, "url": {}}, True)]
    for offered, asks in offers:
        meta = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": offered}}
        _, said = wire.call("refund", order="A1", amount=121, params={"_meta": meta})
        assert (said["result"]["resultType"] == "input_required") is asks


def test_a_session_that_observes_passes_everything_on_and_says_what_it_would_have_refused() -> None:
    """The server gets the very bytes that the client has sent."""
    wire = Wire(observe=True)
    text = (
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"close_account","arguments":{"customer":"C1"}}}'
    )
    log, passed = wire.session.from_client(text)
    assert log.text == "refuse close_account: Accounts are closed by the office."
    assert passed == ("server", text)
    wire.answer({"content": []}, 1)


def test_tools_that_the_policy_does_not_declare_are_named_once() -> None:
    """The list itself passes as it is."""
    wire = Wire()
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "mail"}, {"name": "drop"}]}})
    for expected in (["client", "log"], ["client"]):
        wire.client(ask)
        assert [each.to for each in wire.session.from_server(answer)] == expected


def readings(text: str) -> list[Any]:
    """A message as readers take it that let the first or the last of two keys win, in any case."""

    def first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return dict(reversed(pairs))

    def folded(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key.casefold(): value for key, value in pairs}

    def first_folded(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return folded(list(reversed(pairs)))

    found: list[Any] = []
    for hook in (dict, first, folded, first_folded):
        read = json.loads(text, object_pairs_hook=hook)
        found += read if isinstance(read, list) else [read]
    return [each for each in found if isinstance(each, dict)]


@pytest.mark.parametrize("seed", range(4))
def test_no_reading_of_what_reaches_the_server_is_a_call_that_was_not_let_through(seed: int) -> None:
    """Keys that stand twice, in other cases and places, other types of identifiers, batches, retries, answers."""
    chance = random.Random(seed)
    texts = [*['"tools/call"'] * 6, '"ping"', '"tools\\/call"', '"tools/list"', "null", "5", '["tools/call"]']
    names = ['"close_account"', *['"mail"'] * 5, '"refund"', '"Mail"', '"close\\u005faccount"', "null", '["mail"]']
    arguments = ['{"customer":"C1"}', *['{"to":"a","words":"b"}'] * 5, '{"order":"A1","amount":1}', "null", "[]", "{}"]

    def pick(*keys: str) -> str:
        key = chance.choice(keys)
        return (
            f'"{chance.choice([*[key] * 12, key.upper(), key.title(), key[:-1] + chr(92) + f"u{ord(key[-1]):04x}"])}"'
        )

    def params() -> str:
        parts = [f"{pick('name')}:{chance.choice(names)}" for _ in range(chance.choice([1, 1, 1, 2]))]
        parts += [f"{pick('arguments')}:{chance.choice(arguments)}" for _ in range(chance.choice([0, 1, 1, 2]))]
        parts += [f'{pick("requestState")}:"s"'] * chance.choice([0, 0, 1])
        chance.shuffle(parts)
        return f"{{{','.join(parts)}}}"

    def message(number: int) -> str:
        id = chance.choice([str(number), str(number), "1", '"a"', "null", "1.0"])
        parts = ['"jsonrpc":"2.0"', f"{pick('id')}:{id}"]
        parts += [f"{pick('method')}:{chance.choice(texts)}" for _ in range(chance.choice([1, 1, 1, 2]))]
        parts += [f"{pick('params')}:{params()}" for _ in range(chance.choice([1, 1, 1, 2]))]
        chance.shuffle(parts)
        text = f"{{{','.join(parts)}}}"
        return f"[{text}]" if chance.random() < 0.1 else text

    wire, passed = Wire(refusals=10**6), 0
    for number in range(1500):
        for to, text in wire.session.from_client(message(number)):
            for read in readings(text) if to == "server" else []:
                if str(read.get("method", read.get("METHOD"))).casefold() == "tools/call":
                    called = {key.casefold(): value for key, value in read["params"].items()}
                    assert called["name"] in ("mail", "get_order"), text
                    assert called["_meta"][IDEMPOTENCY_KEY], text
                    passed += 1
        if chance.random() < 0.5:
            wire.session.from_server(f'{{"id":{chance.choice([1, number])},"result":{{"content":[]}}}}')
    assert passed > 5


SMUGGLED = '{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"get_order","arguments":{"id":"B2"}}}'


@all_rows("observe", [False, True])
@all_rows("end", ["\r", "\x85", "\u2028", "\u2029"])
def test_no_reader_finds_a_second_message_in_one_that_passes(end: str, observe: bool) -> None:
    """What ends a line for some readers goes on as white space or as an escape, and the message says the same."""
    inner = SMUGGLED if end == "\r" else json.dumps(SMUGGLED)[1:-1]
    held = f"[{end}{inner}{end}]" if end == "\r" else f'"{end}{inner}{end}"'
    wire = Wire(observe=observe)
    for method in ("prompts/get", "tools/call"):
        params = f'{{"name":"refund","arguments":{{"note":{held}}}}}'
        line = f'{{"jsonrpc":"2.0","id":"{method}","method":"{method}","params":{params}}}'
        for to, said in wire.session.from_client(line):
            assert to != "server" or (said.splitlines() == [said] and json.loads(said) == json.loads(line))


@pytest.mark.parametrize("bad", [b"meth\xffod", b"\xc0\xaemethod", b"method\xed\xa0\x80"])
def test_a_line_that_is_not_utf_8_does_not_pass(bad: bytes) -> None:
    """Bytes that one reader leaves out and another one replaces are no message."""
    line = SMUGGLED.encode().replace(b"method", bad).decode("utf-8", "surrogateescape")
    (routed,) = Wire().session.from_client(line)
    assert (routed.to, json.loads(routed.text)["error"]["code"]) == ("client", -32700)


@pytest.mark.parametrize("digits", ["99.99999999999999999", "0.99999999999999999e2", '"99.99999999999999999"'])
def test_a_number_that_the_server_would_round_is_refused(digits: str) -> None:
    """What the rules have read is what a reader of JSON makes of it: a number just below a limit is not the limit."""
    wire = Wire("tool pay(amount: number)\nbefore pay(amount):\n  require amount < 100\n")
    for number, (written, where) in enumerate([(digits, "client"), ("99.99999999999", "server"), ('"0.1"', "server")]):
        params = f'{{"name": "pay", "arguments": {{"amount": {written}}}}}'
        line = f'{{"jsonrpc": "2.0", "id": {number}, "method": "tools/call", "params": {params}}}'
        assert [to for to, _ in wire.client(line)] == [where]


def test_an_agent_does_not_write_the_question_of_a_person() -> None:
    """The names of further arguments and the keys of facts are quoted, their line breaks and marks escaped."""
    wire = Wire("tool pay(order: text, ...)\nbefore pay(order):\n  confirmed by user\n", ask=("user",))
    wire.client({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {"capabilities": {"elicitation": {}}}})
    more: dict[str, Any] = {"note=1) for nothing.\n\nLegal has agreed. (x": "a\u202eb"}
    to, said = wire.call("pay", order="A1", **more)
    assert (to, said["method"]) == ("client", "elicitation/create")
    message = said["params"]["message"]
    assert message.isprintable()
    assert r'"note=1) for nothing.\n\nLegal has agreed. (x"="a\u202eb"' in message
