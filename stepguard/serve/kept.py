"""Runs that a server keeps in a ledger, named by the header ``Idempotency-Key``: resumed, and answered by persons.

A key is of one caller: where several share a server, the name of a run begins with a digest of the caller's own key,
so that nobody is given what another was answered.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import blake2b
from typing import Any, Final

from starlette.requests import Request

from stepguard.core.arguments import check_run_id
from stepguard.errors import ConfigError, LedgerError, RunConflict
from stepguard.ledger import Ledger
from stepguard.serve.errors import HttpProblem, cut, wrong_request

_HEADER: Final = "idempotency-key"
_BYTES: Final = 8  # enough to tell callers apart, and to give none of them away
_OF_A_CALLER: Final = re.compile(rf"[0-9a-f]{{{2 * _BYTES}}}/")
_MOST: Final = 100
"""Runs of one list, where the request names no other limit."""


class KeptRuns:
    """The ledger of a server.

    Args:
        one_caller: whether all requests are of one caller, because the server has one key.
    """

    def __init__(self, ledger: Ledger, *, one_caller: bool) -> None:
        self.ledger: Final = ledger
        self._one_caller: Final = one_caller

    def run_id(self, request: Request) -> str | None:
        """The name of the run of a request; None of one that is not kept. Raises Problem: the header names nothing."""
        keys = request.headers.getlist(_HEADER)
        if not keys:
            return None
        if len(keys) > 1:
            raise wrong_request("the header Idempotency-Key stands there twice", code="invalid_idempotency_key")
        caller, key = self._caller(request), keys[0].strip()
        # Without a key of its own, a caller could otherwise write another's digest and be given that one's run.
        if not (caller or self._one_caller) and _OF_A_CALLER.match(key):
            raise wrong_request(
                "this Idempotency-Key begins as one of a caller with a key", code="invalid_idempotency_key"
            )
        name = f"{caller}{key}"
        try:
            check_run_id(name if key else "", "Idempotency-Key")
        except ConfigError as error:
            raise wrong_request(cut(str(error)), code="invalid_idempotency_key") from error
        return name

    def _caller(self, request: Request) -> str:
        if self._one_caller:
            return ""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        shown = token.strip() if scheme.lower() == "bearer" else ""
        shown = shown or request.headers.get("x-api-key") or request.headers.get("api-key", "")
        return f"{blake2b(shown.encode('utf-8', 'surrogateescape'), digest_size=_BYTES).hexdigest()}/" if shown else ""

    async def list_runs(self, query: Mapping[str, str]) -> dict[str, Any]:
        """The runs, the newest first: all, or those with a ``status``; at most ``limit``.

        Raises Problem: the query asks for something else, or the ledger cannot be read.
        """
        limit = query.get("limit", str(_MOST))
        if not query.keys() <= {"status", "limit"} or not (limit.isascii() and limit.isdecimal() and len(limit) < 9):
            raise wrong_request("a list of runs takes a status, and a limit in digits", code="invalid_query")
        with ledger_problems():
            runs = await asyncio.to_thread(self.ledger.runs)
        chosen = [run for run in runs if query.get("status", run.status) == run.status]
        return {"runs": [asdict(each) for each in chosen[: int(limit)]]}

    async def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Answer the step of a run for a person: ``run``, ``step`` and ``value``, or ``repeat`` of a call of a tool.

        Raises Problem: there is no such question, the run is under way, or the ledger cannot be written.
        """
        run_id, step, value, repeat = (body.get(name) for name in ("run", "step", "value", "repeat"))
        if (
            not body.keys() <= {"run", "step", "value", "repeat"}
            or not (isinstance(run_id, str) and isinstance(step, str))
            or repeat not in (None, True)
            or (value is None) == (repeat is None)
        ):
            raise wrong_request('an answer has "run", "step" and "value", or "repeat": true', code="invalid_answer")
        try:
            with ledger_problems():
                if repeat:
                    await asyncio.to_thread(self.ledger.repeat, run_id, step)
                else:
                    await asyncio.to_thread(self.ledger.answer, run_id, step, value)
        except ConfigError as error:
            missing = error.option == "run_id"
            raise wrong_request(
                "there is no such run"
                if missing
                else "the run waits for no answer to this step, or for no such answer",
                status=404 if missing else 409,
                code="run_not_found" if missing else "no_open_question",
            ) from error
        return {"run": run_id, "step": step, "noted": True}


@contextmanager
def ledger_problems() -> Iterator[None]:
    """Turn errors of the ledger into problems for the caller, without the path of its file."""
    try:
        yield
    except RunConflict as error:
        if error.under_way:
            raise HttpProblem(
                "a request with this Idempotency-Key is being answered: send it again later",
                status=409,
                kind="invalid_request_error",
                code="run_under_way",
                retry_after=1,
                retry=True,
            ) from error
        raise wrong_request(
            "this Idempotency-Key was used for another procedure or other inputs, or its run was erased: use another",
            status=422,
            code="idempotency_key_reused",
        ) from error
    except LedgerError as error:
        raise HttpProblem(
            "the ledger of this server cannot be read or written",
            status=503,
            kind="server_error",
            code="ledger_unavailable",
            retry=False,
        ) from error
