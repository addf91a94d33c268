"""The runs of a ledger as pages in a browser: a list, and one for each run. They change nothing and have no script.

=====================  ==========================================================================================
``GET /``              the runs, the newest first; ``q`` searches, ``status`` chooses, ``page`` turns over
``GET /run?id=NAME``   one run: the way that it took through its procedure, every attempt and what it cost
either, ``&live=1``    the page is loaded anew every few seconds
=====================  ==========================================================================================

Who reaches a port of this machine may be a page in somebody's browser: without a token only requests whose header
``Host`` names this machine are answered.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from stepguard.core.arguments import check_instance
from stepguard.core.markup import Child, Html, tag
from stepguard.core.verdicts import shorten
from stepguard.errors import ConfigError, LedgerError, ProcedureError, StepguardError
from stepguard.ledger import KEPT_STATUSES, Ledger, RunReading, RunSummary, read_run
from stepguard.ledger.conversations import conversation_lines
from stepguard.results import Attempt
from stepguard.serve.blackout import SHORTEST
from stepguard.show.page import draw_html
from stepguard.show.style import CSS

_PAGE: Final = 50
_SECONDS: Final = 5
"""After so many a live page is loaded anew."""
_ATTEMPTS: Final = 500
_SHOWN: Final = 200
"""Characters of a name or a reason."""
_HERE: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE | re.ASCII)
_KINDS: Final = {
    "verified": "good",
    **dict.fromkeys(("checked", "unverified", "waiting", "answered"), "weak"),
    **dict.fromkeys(("running", "open", "erased"), "quiet"),
}
_MORE: Final = """
.runs>li{border:1px solid var(--rule);border-radius:6px;background:var(--panel);padding:.4rem .7rem;margin:.5rem 0;
overflow-wrap:anywhere}
.runs a{font-weight:600}form{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:end;margin:.6rem 0}
label{display:grid;font-size:.8125rem;color:var(--muted)}
input,select,button{font:inherit;color:inherit;background:var(--bg);border:1px solid var(--muted);border-radius:4px;
padding:.25rem .5rem;min-width:0;max-width:100%}nav{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;margin:.8rem 0}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.875rem}
"""
_HEADERS: Final = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def create_pages(path: str | Path, *, token: str | None = None) -> Starlette:
    """The application.

    Args:
        path: the file of the ledger, which is opened to be read for every page.
        token: what a browser must show as the password, with any name; without it only this machine is served.

    Raises:
        ConfigError: an argument cannot work.
        LedgerError: the file cannot be read.
    """
    check_instance(path, (str, Path), "ledger", what="the path of a file")
    if token is not None and not (token.isascii() and token.isprintable() and len(token) >= SHORTEST):
        raise ConfigError(f"a token is text in ASCII of {SHORTEST} characters or more", option="token")
    Ledger(path, read_only=True).close()
    pages = _Pages(path)
    app = Starlette(routes=[Route("/", pages.runs), Route("/run", pages.run)])
    app.add_middleware(_Door, token=token)
    return app


class _Door:
    """Lets nobody in but those who show the token, or this machine where there is none."""

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app: Final = app
        self._token: Final = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(Request(scope)) if scope["type"] == "http" else None
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        if self._token is None:
            if _HERE.fullmatch(request.headers.get("host", "")):
                return None
            return Response("this server answers this machine alone, by its own name", 421, headers=_HEADERS)
        if hmac.compare_digest(_password(request).encode("utf-8", "surrogateescape"), self._token.encode()):
            return None
        challenge = {"www-authenticate": 'Basic realm="stepguard", charset="UTF-8"'}
        return Response("show the token as the password", 401, headers={**_HEADERS, **challenge})


def _password(request: Request) -> str:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(given, validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return ""


class _Pages:
    """Reads the ledger for each page, in a thread of its own."""

    def __init__(self, path: str | Path) -> None:
        self._path: Final = path

    def runs(self, request: Request) -> Response:
        """The list."""
        query = request.query_params
        words, status, number = query.get("q", "").strip(), query.get("status", ""), query.get("page", "1")
        page = int(number) if number.isascii() and number.isdecimal() and 0 < len(number) < 9 else 1
        try:
            with Ledger(self._path, read_only=True) as ledger:
                matching = [each for each in ledger.runs() if _fits(each, words.casefold(), status)]
        except LedgerError as error:
            return _problem(str(error), 503)
        pages = max(1, -(-len(matching) // _PAGE))
        page = min(max(page, 1), pages)
        shown = matching[(page - 1) * _PAGE : page * _PAGE]
        turned = [
            _link(words_of, "/", q=words, status=status, page=to)
            for words_of, to in (("Newer", page - 1), ("Older", page + 1))
            if 1 <= to <= pages
        ]
        body: list[Child] = [
            _search(words, status),
            tag("p", f"{_sum_of(matching)}, page {page:,} of {pages:,}", class_="quiet"),
            tag("ol", [tag("li", _summary(each)) for each in shown], class_="runs"),
            tag("nav", turned, _live_link("/", request), aria_label="Pages"),
        ]
        return _html("Runs", body, live="live" in query)

    def run(self, request: Request) -> Response:
        """One run."""
        run_id = request.query_params.get("id", "")
        try:
            with Ledger(self._path, read_only=True) as ledger:
                summary = next((each for each in ledger.runs() if each.run_id == run_id), None)
                if summary is None:
                    return _problem("There is no such run.", 404)
                try:
                    reading = read_run(ledger, run_id)
                except (ConfigError, ProcedureError) as error:
                    return _html(run_id, [_back(), tag("div", _summary(summary)), tag("p", f"Not drawn: {error}")])
                return _run_page(reading, request)
        except StepguardError as error:
            return _problem(str(error), 503)


def _run_page(reading: RunReading, request: Request) -> Response:
    summary = reading.summary
    above = [_back(), tag("div", _summary(summary)), tag("nav", _live_link("/run", request), aria_label="This page")]
    live = "live" in request.query_params
    if reading.procedure is None or reading.result is None:
        lines = "\n".join(line.text for line in conversation_lines(reading))
        return _html(summary.run_id, [above, tag("h2", "Calls"), tag("pre", lines)], live=live)
    page = draw_html(reading.procedure, reading.result, above=above, below=_attempts(reading.result.attempts))
    return _answer(page, live=live)


def _attempts(attempts: Sequence[Attempt]) -> Child:
    """Every call of the model, with what it cost so far."""
    if not attempts:
        return None
    cut = f"The last {_ATTEMPTS} of {len(attempts):,} are listed." if len(attempts) > _ATTEMPTS else None
    return [
        tag("h2", "Model calls"),
        None if cut is None else tag("p", cut, class_="quiet"),
        tag("ol", list(_calls(attempts))),
    ]


def _calls(attempts: Sequence[Attempt]) -> Iterator[Html]:
    spent = 0
    for place, each in enumerate(attempts):
        spent += each.usage.tokens
        if place < len(attempts) - _ATTEMPTS:
            continue
        steps = [str(step) for step in each.steps]
        places = shorten(f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else "".join(steps), _SHOWN)
        cost = f"{spent:,} tokens so far, {each.seconds:.1f} s"
        words = f"Call {each.number} ({each.rung}), {places}: {each.outcome}; {cost}"
        reasons = [shorten(f"{one.kind}: {one.reason}", 300) for one in each.deviations]
        yield tag("li", words, [tag("span", reason, class_="note") for reason in reasons], class_="result")


def _summary(run: RunSummary) -> list[Html | None]:
    steps = f"steps: {run.completed:,}" if run.total is None else f"steps: {run.completed:,} of {run.total:,}"
    spent = f"model calls: {run.calls:,}, tokens: {run.tokens:,}"
    name = _link(shorten(run.run_id, _SHOWN), "/run", id=run.run_id)
    place = None if run.place is None else shorten(run.place, _SHOWN)
    why = place if run.reason is None else f"{place}: {shorten(run.reason, 2 * _SHOWN)}"
    written = f"last written {_time(run.updated)}"
    return [
        tag("p", name, tag("span", run.status, class_=f"badge {_KINDS.get(run.status, 'bad')}")),
        tag("p", f"{shorten(run.procedure, _SHOWN)}, {steps}, {spent}, {written}", class_="note"),
        None if why is None else tag("p", why),
    ]


def _sum_of(runs: Sequence[RunSummary]) -> str:
    calls, tokens = sum(each.calls for each in runs), sum(each.tokens for each in runs)
    return f"{len(runs):,} run{'' if len(runs) == 1 else 's'}, model calls: {calls:,}, tokens: {tokens:,}"


def _fits(run: RunSummary, words: str, status: str) -> bool:
    texts = (run.run_id, run.procedure, run.place, run.reason)
    return (not status or run.status == status) and (
        not words or any(words in text.casefold() for text in texts if text is not None)
    )


def _search(words: str, status: str) -> Html:
    options = [tag("option", "any", value="")]
    options += [tag("option", each, value=each, selected="" if each == status else None) for each in KEPT_STATUSES]
    return tag(
        "form",
        tag("label", "Search", tag("input", name="q", type="search", value=words)),
        tag("label", "Status", tag("select", options, name="status")),
        tag("button", "Show"),
        action="/",
        role="search",
    )


def _link(words: str, path: str, **parts: object) -> Html:
    query = urlencode({name: value for name, value in parts.items() if value}, errors="backslashreplace")
    return tag("a", words, href=f"{path}?{query}")


def _back() -> Html:
    return tag("nav", tag("a", "All runs", href="/"), aria_label="Runs")


def _live_link(path: str, request: Request) -> Html:
    query = dict(request.query_params)
    if query.pop("live", None) is not None:
        return _link("Stop loading anew", path, **query)
    return _link(f"Load anew every {_SECONDS} seconds", path, **query, live=1)


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):  # a clock that was far out
        return "at no time that a clock shows"


def _problem(words: str, status: int) -> Response:
    return _html("Not to be shown", [_back(), tag("p", words)], status=status)


def _html(title: str, body: Child, *, status: int = 200, live: bool = False) -> Response:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width,initial-scale=1"),
        tag("title", shorten(title, _SHOWN)),
        tag("style", Html(CSS + _MORE)),
    )
    page = tag("html", head, tag("body", tag("main", tag("h1", shorten(title, _SHOWN)), body)), lang="en")
    return _answer(f"<!doctype html>\n{page}\n", status=status, live=live)


def _answer(page: str, *, status: int = 200, live: bool = False) -> Response:
    headers = {**_HEADERS, "refresh": str(_SECONDS)} if live else _HEADERS
    return HTMLResponse(page.encode("utf-8", "backslashreplace"), status, headers)
