"""Calls of an endpoint are counted in the ledger, over all who share it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from ledger_harness import SURE

from stepguard import Guard, Procedure, RetryPolicy
from stepguard.backends import Message, Request
from stepguard.backends.base import endpoint_of
from stepguard.backends.circuit import CircuitBreaker
from stepguard.backends.limiter import LimitedBackend
from stepguard.backends.openai import OpenAIBackend
from stepguard.backends.recorded import RecordedBackend
from stepguard.errors import BackendTimeout, ConfigError
from stepguard.ledger import Ledger, RatedBackend
from stepguard.repair.rungs import person

HELLO = Request((Message("user", "hello"),), timeout=0.05)


def called(model: RatedBackend, *, awaited: bool) -> bool:
    """Whether a call comes through in its time."""
    try:
        asyncio.run(model.acomplete(HELLO)) if awaited else model.complete(HELLO)
    except BackendTimeout:
        return False
    return True


@pytest.mark.parametrize("awaited", [False, True])
def test_a_rate_is_counted_over_all_who_share_a_ledger(runs: Path | str, awaited: bool) -> None:
    """Who asks the same endpoint counts for the same turns, in whatever process and behind whatever stands before it;
    another endpoint has turns of its own, and a wait that is longer than the time of a call ends at once."""

    def one(_: object) -> str:
        return "1"

    def two(_: object) -> str:
        return "2"

    rate = (1, 3600.0)
    with Ledger(runs) as first, Ledger(runs) as second:
        assert called(RatedBackend(one, ledger=first, rate=rate), awaited=awaited)
        assert not called(RatedBackend(one, ledger=second, rate=rate), awaited=awaited)
        assert not called(RatedBackend(CircuitBreaker(one), ledger=second, rate=rate), awaited=awaited)
        assert called(RatedBackend(two, ledger=second, rate=rate), awaited=awaited)
        started = time.monotonic()
        guard = Guard(RatedBackend(one, ledger=first, rate=rate), retry=RetryPolicy(timeout=30.0, retries=0))
        result = guard.run(Procedure.parse("inputs: a\nb = a + 1"), {"a": 1})
        assert result.status == "failed"
        assert time.monotonic() - started < 30


def test_turns_are_spread_evenly(runs: Path | str) -> None:
    """Calls that have to wait come through one after the other, none twice as fast as the rate."""
    with Ledger(runs) as ledger:
        guard = Guard(RatedBackend(SURE, ledger=ledger, rate=(100, 5.0)), segment=1)
        started = time.monotonic()
        assert guard.run(Procedure.parse("inputs: a\nb = a + 1\nc = b + 1\nd = c + 1\ne = d + 1"), {"a": 1}).verified
        assert time.monotonic() - started >= 3 * 0.05


def test_an_endpoint_is_a_model_where_it_is_asked(tmp_path: Path) -> None:
    """Its name holds the address without what may be secret; nobody else counts persons, replays and rated calls."""
    first = OpenAIBackend("m", base_url="http://user:hunter2@127.0.0.1:1/v1?key=hunter2", api_key="k")
    assert endpoint_of(first) == "m at http://127.0.0.1:1/v1"
    assert endpoint_of(LimitedBackend(CircuitBreaker(first), most=1)) == endpoint_of(first)
    assert endpoint_of(RecordedBackend(tmp_path / "r.db", first)) == endpoint_of(first)
    assert endpoint_of(RecordedBackend(tmp_path / "r.db")) == ""
    asked = person(lambda *_: 1).backend
    assert asked is not None
    assert endpoint_of(asked) == ""
    rated = RatedBackend(first, ledger=tmp_path / "runs.db", rate=(1, 1.0))
    assert endpoint_of(rated) == ""
    for uncounted in (rated, asked, RecordedBackend(tmp_path / "r.db")):
        with pytest.raises(ConfigError, match="are counted"):
            RatedBackend(uncounted, ledger=tmp_path / "runs.db", rate=(1, 1.0))


def test_a_model_of_a_client_is_the_same_endpoint_as_one_of_an_address() -> None:
    """However a model is named, it is counted together where it is asked at the same address."""
    openai = pytest.importorskip("openai")
    address = "http://127.0.0.1:1/v1"
    client = openai.OpenAI(base_url=f"{address}/", api_key="k")
    named = OpenAIBackend("m", provider="groq", base_url=address, api_key="k")
    assert endpoint_of(OpenAIBackend("m", client=client)) == endpoint_of(named) == f"m at {address}"


@pytest.mark.parametrize("rate", [60, (0, 1.0), (1, 0.0), (1,), (1.5, 1.0), "60/60", None])
def test_what_is_no_rate_is_refused(tmp_path: Path, rate: Any) -> None:
    """A rate is a number of calls and of seconds."""
    with pytest.raises(ConfigError):
        RatedBackend(SURE, ledger=tmp_path / "runs.db", rate=rate)
