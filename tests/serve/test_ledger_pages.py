"""The pages of a ledger: every run is found and drawn, nothing is changed, and nobody else is let in."""

from __future__ import annotations

import base64
import gc
from pathlib import Path
from typing import Any

import pytest
from ledger_harness import CHAIN, SURE, Counting, change_ledger, kill, payment

from stepguard import Guard, Policy, Procedure
from stepguard.cli import main
from stepguard.errors import ConfigError, LedgerError
from stepguard.ledger import Ledger
from stepguard.testing import ScriptedBackend

pytest.importorskip("httpx")
pytest.importorskip("prometheus_client")

from starlette.testclient import TestClient

from stepguard.serve.ledger_pages import create_pages

TOKEN = "token-SECRET-1"
ODD = 'a <script>alert(1)</script> & "b" /?=%'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with runs of every kind."""
    path = tmp_path / "runs.db"
    with Ledger(path, full_sync=False, keep="prompts") as ledger:
        guard = Guard(SURE, ledger=ledger)
        guard.run(CHAIN, {"x": 12}, run_id=ODD)
        guard.run(payment([], approval=True), {"x": 3}, run_id="waits")
        guard.run(Procedure.parse("inputs: letter: text, x\nn = x + 1"), {"letter": "Grauzahn", "x": 1}, run_id="gone")
        ledger.erase(["gone"])
        slips = ScriptedBackend({"b": "12 + 1 = 14"}, {"b": "12 + 1 = 13"})
        Guard(slips, repair=2, ledger=ledger).run(Procedure.parse("inputs: a\nb = a + 1"), {"a": 12}, run_id="slips")
        gate = Policy.parse("tool pay(to: text)\nbefore pay: at most once").gate(ledger=ledger, run_id="c-17")
        gate.offer("pay", {"to": "<b>"}, id="1")
        gate.close()
    kill(Guard(Counting(die_at=3), segment=1, ledger=path), CHAIN, {"x": 12}, "killed")
    gc.collect()
    return path


def _client(path: Path, token: str | None = None, **options: Any) -> TestClient:
    return TestClient(create_pages(path, token=token), base_url="http://127.0.0.1:8002", **options)


def test_runs_are_listed_searched_and_drawn(path: Path) -> None:
    """The list leads to a page of each run, with its way, its attempts and what it cost; texts are escaped."""
    client = _client(path)
    page = client.get("/")
    assert page.status_code == 200
    assert [word in page.text for word in ("waits", "interrupted", "erased", "Approve the call pay(amount=6)?")] == [
        True
    ] * 4
    assert "<script" not in page.text
    assert "script" not in page.headers["content-security-policy"]
    for query, found in (("q=APPROVE", 1), ("status=waiting", 1), ("q=nobody", 0), ("status=waiting&q=killed", 0)):
        assert f"{found} run" in client.get(f"/?{query}").text
    drawn = client.get("/run", params={"id": ODD}).text
    assert "VERIFIED: " in drawn
    assert "Call 1 (ask), t1 to t6 </span>" in drawn
    slips = client.get("/run?id=slips").text
    assert "wrong_value at b: a + 1 is 13, not 14" in slips
    assert '<summary>reply</summary><pre>{"b": "12 + 1 = 14"}</pre>' in slips
    assert "<summary>user</summary>" in slips
    assert "<script" not in drawn
    killed, waits = client.get("/run?id=killed").text, client.get("/run?id=waits").text
    assert "INTERRUPTED: now at t3 (2 steps completed)" in killed
    assert "WAITING at approve_receipt</b>: Approve the call pay(amount=6)?" in waits
    assert "STOPPED" not in killed + waits
    assert "pay(to=&lt;b&gt;): allow, key " in client.get("/run?id=c-17").text
    erased = client.get("/run?id=gone")
    assert (erased.status_code, "Grauzahn" in erased.text) == (200, False)
    assert client.get("/run?id=nobody").status_code == 404
    assert "refresh" not in page.headers
    assert client.get("/?live=1").headers["refresh"] == "5"


def test_a_long_list_is_turned_over(tmp_path: Path) -> None:
    """Fifty runs stand on a page, the newest first; a page that is none is the nearest."""
    with Ledger(tmp_path / "runs.db", full_sync=False) as ledger:
        for number in range(120):
            Guard(SURE, ledger=ledger).run(Procedure.parse("a = 1 + 1"), run_id=f"run {number}")
    client = _client(tmp_path / "runs.db")
    first = client.get("/").text
    assert [name in first for name in ("run 119<", "run 70<", "run 69<", "Newer", "Older")] == [
        True, True, False, False, True,
    ]  # fmt: skip
    last = client.get("/?page=3").text
    assert ["run 0<" in last, "Older" in last, "page 3 of 3" in last] == [True, False, True]
    assert "page 3 of 3" in client.get("/?page=99999999").text
    for page in ("-1", "x", "0", "9" * 30):
        assert "page 1 of 3" in client.get(f"/?page={page}").text


def test_pages_change_nothing(path: Path) -> None:
    """The file is read, and no request can write to it."""
    client = _client(path)
    before = path.read_bytes()
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert client.request(method, "/").status_code == 405
    client.get("/")
    client.get("/run?id=waits")
    assert path.read_bytes() == before


def test_who_is_let_in(path: Path) -> None:
    """Without a token this machine alone by its own name, which a page of others cannot use; else who shows it."""
    for host, status in (
        ("127.0.0.1:8002", 200),
        ("localhost", 200),
        ("[::1]:8002", 200),
        ("[::1]", 200),
        ("evil.example:8002", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost:80@evil.example", 421),
        ("127.0.0.1:evil.example", 421),
        ("", 421),
    ):
        assert _client(path).get("/", headers={"host": host}).status_code == status, host
    guarded = _client(path, TOKEN)
    for shown, status in ((f"any:{TOKEN}", 200), ("any:token", 401), (TOKEN, 401), ("any:", 401)):
        code = base64.b64encode(shown.encode()).decode()
        answer = guarded.get("/", headers={"authorization": f"Basic {code}", "host": "runs.example"})
        assert answer.status_code == status
        assert TOKEN not in answer.text
    assert guarded.get("/", headers={"authorization": "Basic %%%"}).status_code == 401
    assert "Basic" in guarded.get("/").headers["www-authenticate"]


def test_what_cannot_be_read_is_said(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged record, a file that is none, a host without a token, a token that can be guessed."""
    change_ledger(path, "update records set body = '{' where run = 2")
    broken = _client(path).get("/run?id=waits")
    assert broken.status_code == 503
    assert "stepguard verify" in broken.text
    (path.parent / "other").write_text("no ledger at all")
    with pytest.raises(LedgerError, match="is no ledger"):
        create_pages(path.parent / "other")
    with pytest.raises(ConfigError, match="a token is text"):
        create_pages(path, token="x")
    assert main(["ui", str(path), "--host", "0.0.0.0"]) == 2
    assert "set STEPGUARD_UI_TOKEN" in capsys.readouterr().err
