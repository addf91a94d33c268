"""Show the runs of a ledger in a browser: a list, and a page for each run. Pages change nothing and have no script.

=====================  ==========================================================================================
``GET /``              the runs, the newest first; ``q`` searches, ``status`` chooses, ``page`` turns over
``GET /run?id=NAME``   one run: the way that it took through its procedure, every attempt and what it cost; ``calls``
                       turns over the attempts
either, ``&live=1``    the page is loaded anew every few seconds, that of a run until it has ended
=====================  ==========================================================================================

Who reaches a port of this machine may be a page in somebody's browser: without a token only requests whose header
``Host`` names this machine are answered.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections import Counter
from collections.abc import Sequence
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
from stepguard.serve.blackout import SHORTEST
from stepguard.serve.ledger_calls import CALLS, draw_spend, list_calls, time_text
from stepguard.show.page import draw_html
from stepguard.show.style import CSS

_PAGE: Final = 50
_SECONDS: Final = 5
"""How often a live page reloads."""
_DAYS: Final = 60
"""How many days of spending are listed."""
_SECONDS_OF_DAY: Final = 86_400
_SHOWN: Final = 200
"""Characters of a name or a reason."""
_HERE: Final = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE | re.ASCII)
_KINDS: Final = {
    "verified": "good",
    **dict.fromkeys(("checked", "unverified", "waiting", "answered"), "weak"),
    **dict.fromkeys(("running", "open", "erased"), "quiet"),
}
_MOVING: Final = ("queued", "running", "interrupted", "waiting", "answered", "open")
"""Statuses of runs that may still change."""
_MORE: Final = """
.runs>li{border:1px solid var(--rule);border-radius:6px;background:var(--panel);padding:.4rem .7rem;margin:.5rem 0;
overflow-wrap:anywhere}
.runs a{font-weight:600}form{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:end;margin:.6rem 0}
label{display:grid;font-size:.8125rem;color:var(--muted)}
input,select,button{font:inherit;color:inherit;background:var(--bg);border:1px solid var(--muted);border-radius:4px;
padding:.25rem .5rem;min-width:0;max-width:100%;height:2.2rem}td,th{font-variant-numeric:tabular-nums}
"""
# No script, no frame, nothing from elsewhere: what a run holds may be anybody's text.
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
    # Opened once at the start, so that a wrong path is an error of the command and not of every page.
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
            # Against DNS rebinding: a page whose own name resolves to this machine sends that name as Host.
            if _HERE.fullmatch(request.headers.get("host", "")):
                return None
            return Response("this server answers this machine alone, by its own name", 421, headers=_HEADERS)
        # In constant time: the time of an ordinary comparison tells how much of a guess is right.
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
        words, status = query.get("q", "").strip(), query.get("status", "")
        try:
            with Ledger(self._path, read_only=True) as ledger:
                matching = [each for each in ledger.runs() if _fits(each, words.casefold(), status)]
        except LedgerError as error:
            return _problem(str(error), 503)
        pages = max(1, -(-len(matching) // _PAGE))
        page = _number(query.get("page", "1"), pages, otherwise=1)
        shown = matching[(page - 1) * _PAGE : page * _PAGE]
        turned = _turned("/", page, pages, ("Newest", "Newer", "Older", "Oldest"), "page", q=words, status=status)
        body: list[Child] = [
            _search(words, status),
            tag("p", f"{_sum_of(matching)}, page {page:,} of {pages:,}", class_="quiet"),
            _days(matching),
            tag("nav", _live_link("/", request), aria_label="This page"),
            tag("ol", [tag("li", _summary(each)) for each in shown], class_="runs", id="runs"),
            tag("nav", turned, aria_label="Pages") if turned else None,
        ]
        return _html("Runs", body, live="live" in query, skip=("Skip to the runs", "#runs"))

    def run(self, request: Request) -> Response:
        run_id = request.query_params.get("id", "")
        try:
            with Ledger(self._path, read_only=True) as ledger:
                summary = ledger.summary(run_id)
                if summary is None:
                    return _problem("There is no such run.", 404)
                try:
                    reading = read_run(ledger, run_id)
                except (ConfigError, ProcedureError) as error:
                    return _html(run_id, [_back(), *_summary(summary, linked=False), tag("p", f"Not drawn: {error}")])
                return _run_page(reading, request)
        except StepguardError as error:
            return _problem(str(error), 503)


def _run_page(reading: RunReading, request: Request) -> Response:
    summary = reading.summary
    moving = summary.status in _MOVING
    follow = tag("nav", _live_link("/run", request), aria_label="This page") if moving else None
    live = moving and "live" in request.query_params
    if reading.procedure is None or reading.result is None:
        lines = "\n".join(line.text for line in conversation_lines(reading))
        return _html(
            summary.run_id,
            [_back(), *_summary(summary, linked=False), follow, tag("h2", "Calls"), tag("pre", lines)],
            live=live,
        )
    page = draw_html(
        reading.procedure,
        reading.result,
        standing=reading.standing,
        name=summary.run_id,
        above=[_back(), *_facts(summary), follow],
        below=_spend(reading, request),
    )
    return _answer(page, live=live)


def _spend(reading: RunReading, request: Request) -> Child:
    """The calls of the model, with what they cost: the last ones where no others are asked for."""
    attempts = () if reading.result is None else reading.result.attempts
    if not attempts:
        return None
    pages = -(-len(attempts) // CALLS)
    page = _number(request.query_params.get("calls", ""), pages, otherwise=pages)
    words = "First calls", "Earlier calls", "Later calls", "Last calls"
    turned = _turned("/run", page, pages, words, "calls", id=reading.summary.run_id)
    return [
        draw_spend(attempts, reading.times),
        tag("h2", f"Model calls{'' if pages == 1 else f', page {page:,} of {pages:,}'}", id="calls"),
        tag("nav", turned, aria_label="Calls") if turned else None,
        list_calls(attempts, reading.times, page),
    ]


def _number(text: str, most: int, *, otherwise: int) -> int:
    """The number of a page, the nearest one that there is."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else otherwise
    return min(max(number, 1), most)


def _turned(path: str, page: int, pages: int, words: Sequence[str], name: str, **parts: object) -> list[Html]:
    """Links to the first, the previous, the next and the last page, but not to this one."""
    steps = zip(words, (1, page - 1, page + 1, pages), strict=True)
    return [_link(each, path, **parts, **{name: to}) for each, to in steps if 1 <= to <= pages and to != page]


def _summary(run: RunSummary, *, linked: bool = True) -> list[Html]:
    name = _link(shorten(run.run_id, _SHOWN), "/run", id=run.run_id) if linked else None
    place = [] if run.place is None else [tag("p", _place_of(run))]
    return [*_facts(run, name), *place]


def _facts(run: RunSummary, name: Html | None = None) -> list[Html]:
    steps = f"steps: {run.completed:,}" if run.total is None else f"steps: {run.completed:,} of {run.total:,}"
    spent = f"model calls: {run.calls:,}, tokens: {run.tokens:,}"
    times = f"begun {time_text(run.started)}, last written {time_text(run.updated)}"
    return [
        tag("p", name, tag("span", run.status, class_=f"badge {_KINDS.get(run.status, 'bad')}")),
        tag("p", f"{shorten(run.procedure, _SHOWN)}, {steps}, {spent}, {times}", class_="note"),
    ]


def _place_of(run: RunSummary) -> str:
    """Where a run stands, or stopped, and why."""
    place = shorten(str(run.place), _SHOWN)
    if run.reason is None:
        return f"last: {place}"
    return f"{'waits at' if run.status == 'waiting' else 'at'} {place}: {shorten(run.reason, 2 * _SHOWN)}"


def _days(runs: Sequence[RunSummary]) -> Child:
    """The spending of the runs, by the day on which they were begun."""
    counts, calls, tokens = Counter[int](), Counter[int](), Counter[int]()
    for run in runs:
        day = int(run.started // _SECONDS_OF_DAY)
        counts[day], calls[day], tokens[day] = counts[day] + 1, calls[day] + run.calls, tokens[day] + run.tokens
    if not counts:
        return None
    names = "Day of the start", "Runs", "Model calls", "Tokens"
    rows = [
        tag("tr", [tag("td", cell) for cell in (time_text(day * _SECONDS_OF_DAY)[:10], *map("{:,}".format, spent))])
        for day, spent in [(day, (counts[day], calls[day], tokens[day])) for day in sorted(counts, reverse=True)][
            :_DAYS
        ]
    ]
    table = tag("table", tag("thead", tag("tr", [tag("th", name, scope="col") for name in names])), tag("tbody", rows))
    cut = tag("p", f"{len(counts) - _DAYS:,} earlier days are left out", class_="note") if len(counts) > _DAYS else None
    return tag("details", tag("summary", "Spend by day"), table, cut)


def _sum_of(runs: Sequence[RunSummary]) -> str:
    calls, tokens = sum(run.calls for run in runs), sum(run.tokens for run in runs)
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
        return _link("Stop refreshing", path, **query)
    return _link(f"Refresh every {_SECONDS} seconds", path, **query, live=1)


def _problem(words: str, status: int) -> Response:
    return _html("Not to be shown", [_back(), tag("p", words)], status=status)


def _html(
    title: str, body: Child, *, status: int = 200, live: bool = False, skip: tuple[str, str] | None = None
) -> Response:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width,initial-scale=1"),
        tag("title", shorten(title, _SHOWN)),
        tag("style", Html(CSS + _MORE)),
    )
    skipped = None if skip is None else tag("a", skip[0], href=skip[1], class_="skip")
    page = tag("html", head, tag("body", skipped, tag("main", tag("h1", shorten(title, _SHOWN)), body)), lang="en")
    return _answer(f"<!doctype html>\n{page}\n", status=status, live=live)


def _answer(page: str, *, status: int = 200, live: bool = False) -> Response:
    headers = {**_HEADERS, "refresh": str(_SECONDS)} if live else _HEADERS
    return HTMLResponse(page.encode("utf-8", "backslashreplace"), status, headers)
