"""Judgements before an MCP server: a model is asked meanwhile, and the call goes on with what was verified."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from conftest import ChatServer, Reply, completion_body
from policy_harness import NOW

from stepguard import Budget, Guard, Policy
from stepguard.integrations.mcp_gate import GatedSession
from stepguard.integrations.mcp_gate.stdio import serve_command
from stepguard.testing import ScriptedBackend

RULES = """
record Order:
  note: text
  late: boolean
tool get_order(id: text) -> Order reads
tool refund(order: text) changes nothing
fact broken[note: text]: boolean judged "Does the note say that the goods came broken?"
fact torn[note: text]: boolean judged "Does the note say that the box was torn?"
before refund(id):
  seen get_order(id) as order
  require broken[order.note] "Only what came broken."
  require not order.late or torn[order.note] "Late ones only where the box was torn."
"""
NOTE = "The lid was cracked when I opened the box."
SERVER = f"""
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "method" not in asked or "id" not in asked: continue
    look = "id" in asked["params"].get("arguments", {{}})
    data = {{"note": {NOTE!r}, "late": False}} if look else {{"result": "paid"}}
    result = {{"content": [], "structuredContent": data, "isError": False}}
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": result}}), flush=True)
"""


def verdict(fact: str, value: str, quote: str = "lid was cracked when") -> dict[str, Any]:
    """What the model answers."""
    return {fact: {"work": f'the note says "{quote}"', "value": value}}


def request(number: int, tool: str, **arguments: str) -> str:
    """A call, as the client writes it."""
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


def desk(*replies: dict[str, Any], late: bool = False, **options: Any) -> tuple[GatedSession, ScriptedBackend]:
    """A session that has looked the order up."""
    backend = ScriptedBackend(*replies)
    gate = Policy.parse(RULES).gate(conversation="c")
    session = GatedSession(gate, clock=lambda: NOW, guard=Guard(backend, **options), ask=["broken"])
    session.from_client(request(0, "get_order", id="A1"))
    result = {"content": [], "structuredContent": {"note": NOTE, "late": late}, "isError": False}
    session.from_server(json.dumps({"jsonrpc": "2.0", "id": 0, "result": result}))
    return session, backend


def judged(session: GatedSession, routed: list[Any]) -> list[tuple[str, str]]:
    """What becomes of a call once every judgement that it waits for is made."""
    routed = list(routed)
    while any(each.to == "judge" for each in routed):
        name = next(each.text for each in routed if each.to == "judge")
        routed = [each for each in routed if each.to != "judge"] + session.judged(name, session.judge(name))
    return [tuple(each) for each in routed]


def test_a_call_goes_on_with_what_was_judged_and_the_same_is_asked_once() -> None:
    """The log says the verdict and its strength, and the state keeps them."""
    session, backend = desk(verdict("broken", "true"))
    log, (to, text) = judged(session, session.from_client(request(1, "refund", order="A1")))
    assert log == ("log", "judged broken: true (constrained)")
    assert (to, json.loads(text)["params"]["arguments"]) == ("server", {"order": "A1"})
    assert [each.to for each in session.from_client(request(2, "refund", order="A1"))] == ["server"]
    assert len(backend.requests) == 1
    assert [each["strength"] for each in session.gate.to_dict()["facts"]] == ["constrained"]


def test_a_judgement_may_bring_the_next_one_and_refuse() -> None:
    """Each is made where the rule hangs on it; the client is told the rule in the words of the host."""
    session, backend = desk(verdict("broken", "true"), verdict("torn", "false"), late=True)
    *_, (to, text) = judged(session, session.from_client(request(1, "refund", order="A1")))
    assert to == "client"
    assert "Late ones only where the box was torn." in text
    assert len(backend.requests) == 2


def test_what_is_not_verified_is_asked_of_the_person_and_not_paid_for_again() -> None:
    """A quotation that stands nowhere, or a budget that is spent: the log says why."""
    session, backend = desk(verdict("broken", "true", quote="it exploded on arrival"), budget=Budget(calls=1))
    session.from_client('{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"capabilities":{"elicitation":{}}}}')
    log, asked, (to, text) = judged(session, session.from_client(request(1, "refund", order="A1")))
    assert log[1].startswith("judged broken: not verified (")
    assert asked[0] == "log"
    assert (to, json.loads(text)["method"]) == ("client", "elicitation/create")
    token = json.loads(text)["id"]
    said = {"jsonrpc": "2.0", "id": token, "result": {"action": "accept", "content": {"answer": True}}}
    assert [each.to for each in session.from_client(json.dumps(said))] == ["server"]
    assert len(backend.requests) == 1


def test_other_messages_pass_while_a_model_is_asked() -> None:
    """One that comes under the same identifier does not, and a call that is cancelled is not made."""
    session, backend = desk(verdict("broken", "true"))
    ((to, name),) = session.from_client(request(1, "refund", order="A1"))
    assert to == "judge"
    assert [each.to for each in session.from_client(request(2, "get_order", id="A2"))] == ["server"]
    assert "not answered yet" in session.from_client(request(1, "refund", order="A1"))[0].text
    verdicts = session.judge(name)
    session.from_client('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')
    assert [each.to for each in session.judged(name, verdicts)] == ["log"]
    assert session.judge(name) == []
    assert [each.to for each in session.from_client(request(3, "refund", order="A1"))] == ["server"]
    assert len(backend.requests) == 1


def test_two_calls_at_once_are_judged_for_once_and_answered_both() -> None:
    """Before a real process: nothing waits for the model but the calls that hang on it."""
    backend = ScriptedBackend(verdict("broken", "true"))
    session = GatedSession(Policy.parse(RULES).gate(conversation="c"), guard=Guard(backend))
    lines, answered, three = [request(0, "get_order", id="A1")], dict[int, Any](), threading.Semaphore(0)

    def client() -> Any:
        yield from (f"{line}\n".encode() for line in lines)
        assert three.acquire(timeout=60)
        yield from (f"{request(id, 'refund', order='A1')}\n".encode() for id in (1, 2))
        assert three.acquire(timeout=60)
        assert three.acquire(timeout=60)

    def to_client(text: str) -> None:
        answer = json.loads(text)
        answered[answer["id"]] = answer["result"]
        three.release()

    command = [sys.executable, "-c", SERVER]
    assert serve_command(session, command, client=client(), to_client=to_client, log=lambda line: None) == 0
    assert [answered[id]["isError"] for id in (0, 1, 2)] == [False, False, False]
    assert len(backend.requests) == 1


def test_the_command_takes_a_model_and_its_budget(chat_server: ChatServer, tmp_path: Path) -> None:
    """`--model`, `--base-url` and the limits of a judgement."""
    chat_server.play(Reply(completion_body(json.dumps(verdict("broken", "true")))))
    (tmp_path / "desk.policy").write_text(RULES, encoding="utf-8")
    command = [sys.executable, "-W", "error", "-m", "stepguard.cli", "mcp-gate"]
    command += ["--policy", str(tmp_path / "desk.policy"), "--model", "some-model", "--base-url", chat_server.url]
    command += ["--max-calls", "2", "--", sys.executable, "-c", SERVER]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8") as gate:
        assert gate.stdin is not None
        assert gate.stdout is not None
        answers = []
        for line in (request(1, "get_order", id="A1"), request(2, "refund", order="A1")):
            gate.stdin.write(f"{line}\n")
            gate.stdin.flush()
            answers.append(json.loads(gate.stdout.readline())["result"])
        _, log = gate.communicate(timeout=60)
    assert answers[1]["structuredContent"] == {"result": "paid"}
    assert log == "judged broken: true (constrained)\n"
    assert len(chat_server.requests) == 1
