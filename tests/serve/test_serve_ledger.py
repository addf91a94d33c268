"""A server with a ledger: a key gives the result of its run again, goes on with it, and belongs to one caller."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import conftest
import pytest
from conftest import ChatServer, Reply, completion_body
from serve_harness import GOOD, KEY, MODEL, PROCEDURE, VALUES, Answer, Served, serving

from stepguard import Guard, Procedure
from stepguard.errors import ConfigError, LedgerError
from stepguard.ledger import Ledger, verify_ledger
from stepguard.serve import create_app
from stepguard.testing import ScriptedBackend

ANSWER_KEY = "answer-SECRET-1"
REFUND = Procedure.parse('name: refund\ninputs: x, y\nt2 = x + y\nok: boolean = ask person "Pay {t2}?"\nt1 = t2 * 3')
ORDER: dict[str, object] = {"x": 12, "y": 7}


upstream = conftest.chat_server
"""A scripted upstream."""


def _served(upstream: ChatServer, path: Path, **options: Any) -> Any:
    return serving(
        upstream.url,
        **{
            "procedures": {"sums": PROCEDURE, "refund": REFUND},
            "ledger": path,
            "answer_key": ANSWER_KEY,
            "guard": {"segment": 1, "repair": 0},
            **options,
        },
    )


def _replies(received: Any) -> Reply:
    text = json.dumps(received.body)
    return Reply(completion_body('{"t1": "19 * 3 = 57"}' if "t1" in text else '{"t2": "12 + 7 = 19"}'))


def _ask(served: Served, key: str, inputs: object = ORDER, model: str = MODEL, caller: str = KEY) -> Answer:
    body = {"model": model, "messages": [], "inputs": inputs}
    headers = {"Idempotency-Key": key, "Authorization": f"Bearer {caller}"}
    return served.request("POST", "/v1/chat/completions", body, headers)


def _person(served: Served, method: str, path: str, body: object = None, key: str = ANSWER_KEY) -> Answer:
    return served.request(method, path, body, {"Authorization": f"Bearer {key}"})


def test_the_same_key_again_asks_no_model(upstream: ChatServer, tmp_path: Path) -> None:
    """A run that has completed gives its result again, in every protocol, and is counted once."""
    upstream.play(_replies)
    with _served(upstream, tmp_path / "runs.db") as served:
        first = _ask(served, "order 17")
        assert (first.status, first.json["stepguard"]["answer"], len(upstream.requests)) == (200, 57, 2)
        again = _ask(served, "order 17")
        told, told_again = ({**each.json["stepguard"], "seconds": 0} for each in (first, again))
        assert told_again == told
        body = {"model": MODEL, "input": "", "inputs": ORDER}
        answer = served.request("POST", "/v1/responses", body, {"Idempotency-Key": "order 17"})
        assert "answer: 57" in json.dumps(answer.json)
        assert len(upstream.requests) == 2
        assert all("idempotency-key" not in each.headers for each in upstream.requests)
        served.settle('stepguard_runs_total{procedure="sums",status="verified"}', 3)
        assert served.metrics()["stepguard_model_calls_total"] == 2
        assert _ask(served, "order 18").status == 200
        assert served.chat(VALUES).status == 200
        assert len(upstream.requests) == 6
    with Ledger(tmp_path / "runs.db") as ledger:
        assert verify_ledger(ledger).right
        assert len(ledger.runs()) == 2


def test_a_run_that_failed_goes_on(upstream: ChatServer, tmp_path: Path) -> None:
    """Where the upstream failed, or the server died, the same key asks only what is missing."""
    upstream.play([Reply(completion_body('{"t2": "12 + 7 = 19"}')), Reply({"error": {"message": "down"}}, status=400)])
    with _served(upstream, tmp_path / "runs.db") as served:
        assert _ask(served, "order 17").status == 400
    upstream.requests.clear()
    upstream.play(_replies)
    with _served(upstream, tmp_path / "runs.db") as served:
        assert _ask(served, "order 17").json["stepguard"]["answer"] == 57
    assert len(upstream.requests) == 1


def test_a_key_is_for_one_request(upstream: ChatServer, tmp_path: Path) -> None:
    """Another body under the same key is refused, and so is the same while its run is under way."""
    upstream.play(_replies)
    with _served(upstream, tmp_path / "runs.db", api_key="one-key-SECRET") as served:

        def ask(key: str, inputs: object = ORDER, model: str = MODEL) -> Answer:
            return _ask(served, key, inputs, model, "one-key-SECRET")

        assert ask("order 17").status == 200
        for other in (ask("order 17", {"x": 12, "y": 8}), ask("order 17", model="refund@some-model")):
            assert (other.status, other.error["code"]) == (422, "idempotency_key_reused")
            assert "runs.db" not in other.error["message"]
        run = Guard(ScriptedBackend({}), ledger=tmp_path / "runs.db").start(PROCEDURE, ORDER, run_id="order 18")
        busy = ask("order 18")
        assert (busy.status, busy.error["code"], busy.headers["retry-after"]) == (409, "run_under_way", "1")
        run.cancel()
        assert ask("order 18").status == 200
        assert ask("order 18", {"x": "12.0", "y": 7}).status == 200


def test_many_at_once_under_one_key_are_one_run(upstream: ChatServer, tmp_path: Path) -> None:
    """Of requests that come together one runs, and the model is asked for it alone."""
    upstream.play(_replies)
    with _served(upstream, tmp_path / "runs.db") as served:
        answers: list[Answer] = []
        threads = [threading.Thread(target=lambda: answers.append(_ask(served, "order 17"))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {each.status for each in answers} <= {200, 409}
        assert _ask(served, "order 17").status == 200
    assert len(upstream.requests) == 2


@pytest.mark.parametrize("keys", [None, ["first-SECRET", "second-SECRET"]])
def test_a_key_belongs_to_one_caller(upstream: ChatServer, tmp_path: Path, keys: list[str] | None) -> None:
    """What one caller was answered is not given to another who names the same key."""
    upstream.play(_replies)
    with _served(upstream, tmp_path / "runs.db", api_key=keys) as served:
        for number, caller in enumerate(("first-SECRET", "second-SECRET", "first-SECRET")):
            assert _ask(served, "order 17", caller=caller).status == 200
            assert len(upstream.requests) == (2, 4, 4)[number]
        names = [each["run_id"] for each in _person(served, "GET", "/runs").json["runs"]]
        assert len(set(names)) == 2
        assert all(name.endswith("/order 17") and "SECRET" not in name for name in names)
        if keys is None:  # whoever has seen the name in a log and shows no key
            body = {"model": MODEL, "messages": [], "inputs": ORDER}
            taken = served.request(
                "POST", "/v1/chat/completions", body, {"Idempotency-Key": names[0], "Authorization": ""}
            )
            assert (taken.status, taken.error["code"]) == (400, "invalid_idempotency_key")


def test_an_answer_that_would_be_rounded_is_none(upstream: ChatServer, tmp_path: Path) -> None:
    """Of more digits than a number of JSON keeps nobody knows which a person meant."""
    with _served(upstream, tmp_path / "runs.db") as served:
        for digits in (b"99.99999999999999999", b"[1e400]", b"1e-400", b"1e99999999999999999999", b"0.1"):
            given = b'{"run": "r", "step": "s", "value": %b}' % digits
            answer = served.request("POST", "/runs/answer", given, {"Authorization": f"Bearer {ANSWER_KEY}"})
            expected = (404, "run_not_found") if digits == b"0.1" else (400, "invalid_json")
            assert (answer.status, answer.error["code"]) == expected


def test_runs_that_wait_are_answered_over_http(upstream: ChatServer, tmp_path: Path) -> None:
    """A person with the answer key sees who is waited for and answers; the same request then goes on."""
    upstream.play(_replies)
    with _served(upstream, tmp_path / "runs.db", api_key="caller-SECRET") as served:

        def ask() -> Answer:
            return _ask(served, "case 1", model="refund@some-model", caller="caller-SECRET")

        waiting = ask()
        assert (waiting.status, waiting.error["type"]) == (422, "run_waiting")
        (run,) = _person(served, "GET", "/runs?status=waiting").json["runs"]
        assert (run["run_id"], run["place"], run["reason"]) == ("case 1", "ok", "Pay 19?")
        answer: dict[str, object] = {"run": "case 1", "step": "ok", "value": "yes"}
        assert _person(served, "POST", "/runs/answer", answer, key="caller-SECRET").status == 401
        assert _person(served, "GET", "/runs", key="caller-SECRET").status == 401
        for wrong, status in (
            ({**answer, "run": "case 2"}, 404),
            ({**answer, "step": "t1"}, 409),
            ({"run": "case 1", "step": "ok", "repeat": True}, 409),
            ({**answer, "repeat": True}, 400),
            ({**answer, "by": "me"}, 400),
            ({"run": "case 1", "step": "ok"}, 400),
            (b'{"run": "case 1", "step": "ok", "value": "yes", "value": "no"}', 400),
        ):
            assert _person(served, "POST", "/runs/answer", wrong).status == status, wrong
        assert ask().error["type"] == "run_waiting"
        assert _person(served, "POST", "/runs/answer", answer).json == {"run": "case 1", "step": "ok", "noted": True}
        assert ask().json["stepguard"]["answer"] == 57
        assert len(upstream.requests) == 2
        assert _person(served, "GET", "/runs?limit=x").status == 400
        assert _person(served, "GET", "/runs?limit=0").json == {"runs": []}


@pytest.mark.parametrize("key", ["", "   ", "x" * 201, "a\tb", "\x85"])
def test_what_names_no_run_is_refused(upstream: ChatServer, tmp_path: Path, key: str) -> None:
    """A key is a text on one line that people can read; nothing is run under another."""
    with _served(upstream, tmp_path / "runs.db") as served:
        answer = _ask(served, key)
    assert (answer.status, answer.error["code"]) == (400, "invalid_idempotency_key")
    assert upstream.requests == []


def test_a_ledger_that_cannot_be_written_is_no_answer(upstream: ChatServer, tmp_path: Path) -> None:
    """A full disk is a fault of the server; nobody is told where its file lies, and requests without a key are run."""
    upstream.play(Reply(completion_body(GOOD)))
    ledger = Ledger(tmp_path / "runs.db")
    ledger.file.read("pragma query_only = on")
    with _served(upstream, tmp_path / "runs.db", ledger=ledger, guard={}) as served:
        answer = _ask(served, "order 17")
        assert (answer.status, answer.error["code"]) == (503, "ledger_unavailable")
        assert "runs.db" not in json.dumps(answer.json)
        assert served.chat(VALUES).status == 200


def test_options_that_cannot_work_are_named(tmp_path: Path) -> None:
    """Answers need a ledger, whoever asks may not answer, and a ledger is one."""
    with pytest.raises(ConfigError, match="answers are for runs in a ledger"):
        create_app("http://127.0.0.1:1/v1", answer_key=ANSWER_KEY)
    with pytest.raises(ConfigError, match="may not answer for a person"):
        create_app("http://127.0.0.1:1/v1", ledger=tmp_path / "a.db", api_key=ANSWER_KEY, answer_key=ANSWER_KEY)
    (tmp_path / "other").write_text("no ledger at all")
    with pytest.raises(LedgerError, match="is no ledger"):
        create_app("http://127.0.0.1:1/v1", ledger=tmp_path / "other")
    with pytest.raises(ConfigError, match="ledger is the path of a file"):
        create_app("http://127.0.0.1:1/v1", ledger=5)  # type: ignore[arg-type]
