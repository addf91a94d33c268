"""A conversation at the gate of a policy is durable: killed anywhere, it goes on, and no call is made twice."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from ledger_harness import CHAIN, SURE, chain_again, change_ledger
from policy_harness import NOW, ORDER, SHOP

from stepguard import Guard, Policy
from stepguard.errors import ConfigError, LedgerError, RunConflict
from stepguard.integrations.tool_gate import ToolGate
from stepguard.ledger import Ledger, verify_ledger
from stepguard.policy import Decision, PolicyGate
from stepguard.procedure import Tool

POLICY = Policy.parse(SHOP)
PAY = Policy.parse(
    "tool pay(to: text) changes nothing\ntool look(id: text) -> text reads\nbefore pay: at most once per to"
)
PROGRAM = """
import os, signal, sys
from pathlib import Path
from stepguard import Policy
from stepguard.integrations.tool_gate import ToolGate
from stepguard.procedure import Tool

ledger, calls, kind = sys.argv[1:]
policy = Policy.parse("tool pay(to: text) changes nothing\\nbefore pay: at most once per to")

def plain(to):
    with open(calls, "a") as file:
        file.write(f"{to}\\n")
    if not Path(calls + ".died").exists():
        Path(calls + ".died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"paid {to}"

def keyed(to, idempotency_key):
    return plain(f"{to} {idempotency_key}")

tools = {"plain": plain, "keyed": keyed, "idempotent": Tool(plain, idempotent=True)}
with ToolGate(policy, {"pay": tools[kind]}, ledger=ledger, run_id="c-17") as gate:
    print(gate.call("pay", {"to": "a"}, id="1"))
    print(gate.call("pay", {"to": "b"}, id="2"))
    print(gate.call("pay", {"to": "a"}, id="3"))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(
    "kind", ["plain", *(pytest.param(each, marks=pytest.mark.slow) for each in ("keyed", "idempotent"))]
)
def test_a_process_that_dies_in_a_tool_calls_none_twice(tmp_path: Path, runs: Path | str, kind: str) -> None:
    """What may be called again is, with the same key; of another call a person says what came of it."""
    calls = tmp_path / "calls"
    command = [sys.executable, "-c", PROGRAM, str(runs), str(calls), kind]

    def run() -> list[str]:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
        assert done.returncode in (0, -signal.SIGKILL), done.stderr
        return done.stdout.splitlines()

    assert run() == []
    first, second, third = run()
    made = calls.read_text(encoding="utf-8").splitlines()
    assert second.startswith("paid b")
    assert "at most once" in third
    if kind == "plain":
        assert made == ["a", "b"]
        assert "not known whether this very call was made" in first
        with Ledger(runs) as ledger:
            ledger.answer("c-17", "1", "paid a")
            with pytest.raises(ConfigError, match="has no open question '1'"):
                ledger.answer("c-17", "1", "paid a")
        assert run()[0] == "paid a"
        assert calls.read_text(encoding="utf-8").splitlines() == made
    else:
        assert first.startswith("paid a")
        assert len(made) == 3
        assert made[0] == made[1]


def test_a_call_that_was_not_made_is_made_again(runs: Path | str) -> None:
    """Who has found out that nothing was done lets the call be judged and made again, under its identifier."""
    paid: list[str] = []

    def pay(to: str) -> str:
        paid.append(to)
        return "paid"

    def gate() -> ToolGate:
        return ToolGate(PAY, {"pay": pay}, ledger=runs, run_id="c")

    with gate() as first:
        first.gate.offer("pay", {"to": "a"}, id="1")
        first.gate.offer("look", {"id": "a"}, id="2")
    with gate() as second:
        assert "not known whether" in second.call("pay", {"to": "a"}, id="1")
        assert "there is no function for look. Nothing was done" in second.call("look", {"id": "a"}, id="2")
    with Ledger(runs) as ledger:
        ledger.repeat("c", "1")
    with gate() as third:
        assert [third.call("pay", {"to": "a"}, id="1"), paid] == ["paid", ["a"]]
        assert third.call("pay", {"to": "a"}, id="1") == "paid"
    with gate() as fourth:
        assert fourth.call("pay", {"to": "a"}, id="1") == "paid"
    assert paid == ["a"]


def test_a_gate_that_observes_is_kept_and_judged_again(runs: Path | str) -> None:
    """Calls that were made whatever was decided are no fault where the gate only observed."""
    ledger = Ledger(runs)
    for number in range(3):
        gate = PAY.gate(ledger=ledger, run_id="c", observe=True)
        gate.offer("pay", {"to": "a"}, id=f"{number}")
        gate.result(f"{number}", "paid")
        gate.close()
    verified = verify_ledger(ledger, policies=[PAY])
    assert (verified.faults, verified.rechecked) == ((), 1)


def _play(gate: Callable[[], PolicyGate], seed: int) -> dict[str, Any]:
    """A conversation of chance, each event at a gate that was opened anew; what it has come to."""
    chance = random.Random(seed)
    waiting: list[Decision] = []
    asking: list[Decision] = []
    for number in range(25):
        now = gate()
        match chance.randrange(9):
            case 0 | 1 | 2:
                decision = now.offer("get_order", {"id": chance.choice("AB")}, id=f"{number}", now=NOW)
            case 3 | 4 | 5:
                given = {"order": chance.choice("AB"), "amount": chance.choice([5, 101, 500])}
                decision = now.offer("refund", given, id=f"{number}", now=NOW)
            case 6 if asking:
                (now.confirm if chance.random() < 0.7 else now.withdraw)(asking[-1], by="manager")
                decision = now.offer("refund", asking[-1].arguments, id=f"{number}", now=NOW)
            case 7:
                now.learn("damaged", chance.choice("AB"), value=chance.random() < 0.5)
                continue
            case _:
                now.take_back()
                continue
        if decision.allowed:
            waiting.append(decision)
        elif decision.outcome == "ask":
            asking.append(decision)
        if waiting and chance.random() < 0.8:
            one = waiting.pop(chance.randrange(len(waiting)))
            order = {**ORDER, "id": one.arguments.get("id") or one.arguments.get("order")}
            if chance.random() < 0.8:
                gate().result(one.call, order)
            else:
                gate().failed(one.call, done=chance.random() < 0.5)
    return dict(json.loads(json.dumps(gate().to_dict())))


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
def test_a_conversation_that_is_opened_anew_at_every_event_is_the_same(runs: Path | str, seed: int) -> None:
    """Whenever the process dies between two events, the next decides as if nothing had happened."""
    facts = {"customer": "C1"}
    whole = POLICY.gate(conversation="c", facts=facts)
    opened: list[PolicyGate] = []
    ledger = Ledger(runs, full_sync=False)

    def anew() -> PolicyGate:
        if opened:
            opened.pop().close()
        opened.append(POLICY.gate(conversation="c", facts=facts, ledger=ledger, run_id="c"))
        return opened[0]

    assert _play(anew, seed) == _play(lambda: whole, seed)
    assert verify_ledger(ledger).unchecked == {"c": "its policy has to be given"}
    verified = verify_ledger(ledger, policies=[POLICY])
    assert (verified.faults, verified.rechecked, verified.unchecked) == ((), 1, {})


def test_what_is_not_durable_lets_nothing_through(runs: Path | str) -> None:
    """On a full disk a call is not let through, and the gate is of no use until it is opened again."""
    ledger = Ledger(runs)
    gate = PAY.gate(ledger=ledger, run_id="c")
    assert gate.offer("pay", {"to": "a"}, id="1").allowed
    forbid = "pragma query_only = {}"
    if isinstance(runs, str):
        forbid = "select set_config('default_transaction_read_only', '{}', false)"
    ledger.file.read(forbid.format("on"))
    with pytest.raises(LedgerError, match="may not be written to"):
        gate.offer("pay", {"to": "b"}, id="2")
    ledger.file.read(forbid.format("off"))
    with pytest.raises(LedgerError, match="did not become durable"):
        gate.offer("pay", {"to": "c"}, id="3")
    gate.close()
    again = PAY.gate(ledger=ledger, run_id="c")
    assert [each.call for each in again.pending] == ["1"]
    assert again.offer("pay", {"to": "b"}, id="2").allowed
    assert verify_ledger(ledger).right


def test_a_name_is_of_one_conversation_and_one_policy(runs: Path | str) -> None:
    """Two gates at once, another policy, a run of a procedure and a name that is none are refused."""
    ledger = Ledger(runs)
    gate = PAY.gate(ledger=ledger, run_id="c")
    with pytest.raises(RunConflict, match="is under way"):
        PAY.gate(ledger=Ledger(runs), run_id="c")
    gate.close()
    with pytest.raises(LedgerError, match="has ended"):
        gate.offer("look", {"id": "a"}, id="1")
    with pytest.raises(RunConflict, match="begun with another policy"):
        POLICY.gate(ledger=ledger, run_id="c")
    Guard(SURE, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run")
    with pytest.raises(RunConflict, match="begun with another policy"):
        PAY.gate(ledger=ledger, run_id="run")
    with pytest.raises(RunConflict, match="begun with another procedure"):
        Guard(SURE, ledger=ledger).run(CHAIN, {"x": 12}, run_id="c")
    options: list[dict[str, Any]] = [
        {"ledger": ledger},
        {"run_id": "c"},
        {"ledger": ledger, "run_id": "c", "state": {}},
    ]
    for wrong in options:
        with pytest.raises(ConfigError, match="go together"):
            PAY.gate(**wrong)
    with pytest.raises(ConfigError, match="run_id is a text"):
        PAY.gate(ledger=ledger, run_id="\n")


def test_conversations_are_listed_verified_and_erased(tmp_path: Path, runs: Path | str) -> None:
    """A ledger shows where a conversation stands, names a record that was altered, and forgets it on request."""
    path = runs
    with ToolGate(PAY, {"pay": lambda to: "paid"}, ledger=path, run_id="c") as gate:
        gate.call("pay", {"to": "Grauzahn"}, id="1")
        gate.call("pay", {"to": "Grauzahn"}, id="2")
        with Ledger(path, read_only=True) as ledger:
            assert ledger.runs()[0].status == "running"
    with Ledger(path) as ledger:
        (run,) = ledger.runs()
        assert (run.status, run.completed, run.place) == ("open", 1, "pay")
        assert "at most once" in str(run.reason)
        change_ledger(path, "update records set body = replace(body, 'succeeded', 'not_done')")
        assert "its body is not what was written" in str(verify_ledger(ledger).faults[0])
        change_ledger(path, "update records set body = replace(body, 'not_done', 'succeeded')")
        assert verify_ledger(ledger).right
        ledger.erase(["c"])
        assert verify_ledger(ledger).erased == 1
    assert all(b"Grauzahn" not in each.read_bytes() for each in tmp_path.iterdir())
    with pytest.raises(RunConflict, match="was erased"):
        ToolGate(PAY, ledger=path, run_id="c")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"customer":"C1"', '"customer":"C2"', "was let through, and the policy says refuse"),
        ('"value":"C1"', '"value":"C2"', "was let through, and the policy says refuse"),
        ('"amount":20', '"amount":30', "was let through, and the policy says another key"),
        ('"key":"', '"key":"0', "was let through, and the policy says another key"),
        ('"at":"2026-03-10', '"at":"2026-05-10', "was let through, and the policy says ask"),
        ('"outcome":"refuse"', '"outcome":"allow"', "the call 'a' was let through, and the policy says refuse"),
        ('"facts"', '"faces"', "was let through, and the policy says"),
        ('"calls"', '"walls"', "a call was made that nothing let through, or is not kept"),
        ('"outcome":"allow"', '"outcome":"refuse"', "a call was made that nothing let through, or is not kept"),
        ('"decisions":[', '"decisions":[5,', "decisions of a record of the kind 'gate' is not what is written there"),
    ],
)
def test_what_a_policy_would_not_have_let_through_is_named(runs: Path | str, old: str, new: str, said: str) -> None:
    """Who alters a record and makes every hash right again is found by judging the conversation again."""
    path = runs
    gate = POLICY.gate(conversation="c", facts={"customer": "C1"}, ledger=Ledger(path), run_id="c")
    gate.offer("refund", {"order": "A1", "amount": 20}, id="a", now=NOW)
    gate.offer("get_order", {"id": "A1"}, id="b", now=NOW)
    gate.result("b", ORDER)
    gate.offer("refund", {"order": "A1", "amount": 20}, id="c", now=NOW)
    gate.failed("c")
    gate.close()
    with Ledger(path, read_only=True) as ledger:
        assert verify_ledger(ledger, policies=[POLICY]).right
    change_ledger(path, "update records set body = replace(body, ?, ?) where kind = 'gate'", given=(old, new))
    chain_again(path)
    with Ledger(path, read_only=True) as ledger:
        (fault,) = verify_ledger(ledger, policies=[POLICY]).faults
    assert said in str(fault)


def test_a_conversation_that_cannot_be_judged_again_is_named(runs: Path | str) -> None:
    """Without its policy, with a time zone of nowhere, or where the zone has changed, a conversation is not checked."""
    ledger = Ledger(runs)
    for zone in (UTC, timezone(timedelta(hours=1))):
        PAY.gate(ledger=ledger, run_id="changed", zone=zone).close()
    PAY.gate(ledger=ledger, run_id="nowhere", zone=timezone(timedelta(hours=1))).close()
    assert verify_ledger(ledger, policies=[PAY]).unchecked == {
        "changed": "its gate had other options in between",
        "nowhere": "the time zone 'UTC+01:00' of its gate is not known here",
    }
    assert set(verify_ledger(ledger).unchecked.values()) == {"its policy has to be given"}


def test_which_tools_may_be_called_again_is_said(runs: Path | str) -> None:
    """Of the tools of a framework the host says it; a tool that no policy knows is a mistake of the host's."""
    first = ToolGate(PAY, ledger=runs, run_id="c")
    with first:
        assert first.decide("pay", {"to": "a"}, id="1").allowed
    with ToolGate(PAY, ledger=runs, run_id="c", repeatable=["pay"]) as again:
        assert again.decide("pay", {"to": "a"}, id="1").allowed
    with ToolGate(PAY, {"pay": Tool(print)}, ledger=runs, run_id="c") as plain:
        assert not plain.decide("pay", {"to": "a"}, id="1").allowed
    with pytest.raises(ConfigError, match="declares no tool 'drop'"):
        ToolGate(PAY, repeatable=["drop"])
