"""``stepguard mcp``: the MCP server of `stepguard.integrations.mcp.server`, over stdio or HTTP."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path
from typing import Any, Final

from stepguard.cli.arguments import add_at_least, add_guard, add_ledger, add_log_level, open_ledger, read_guard
from stepguard.cli.listening import log_to_stderr, serve_until_signal
from stepguard.engine.budget import Budget
from stepguard.errors import ConfigError

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--procedures", metavar="DIR", help="a folder with a procedure in each file, which callers may name"
    )
    parser.add_argument(
        "--accept-texts", action="store_true", help="callers may also write procedures of their own, as text"
    )
    parser.add_argument(
        "--tell-reasons",
        action="store_true",
        help="audits tell reasons and right values: for people, not for a model that is to try again",
    )
    add_ledger(parser, "keep runs there to which a caller gives a run_id, and go on with them")
    add_at_least(parser)
    add_log_level(parser, "warning")
    model = parser.add_argument_group(
        "the model", "Without any of these run_procedure asks the client's own model, where it offers that."
    )
    model.add_argument(
        "--model",
        metavar="NAME",
        action="append",
        default=[],
        help="a model that run_procedure may ask, as for `stepguard run`; repeat for more, the first is the default",
    )
    model.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible endpoint that has these models")
    guard = parser.add_argument_group("the guard, for every run")
    add_guard(guard, Budget(calls=60, tokens=200_000, seconds=300.0), stop_early=False)
    http = parser.add_argument_group("HTTP")
    http.add_argument("--http", action="store_true", help="serve streamable HTTP at /mcp, and not stdio")
    http.add_argument(
        "--host", metavar="HOST", default="127.0.0.1", help="an address of this machine itself (default: %(default)s)"
    )
    http.add_argument("--port", metavar="N", type=int, default=8001, help="0 takes a free one (default: %(default)s)")


def main(options: argparse.Namespace) -> int:
    """Serve until the client closes stdin, or with ``--http`` until a signal.

    Raises StepguardError: nothing was served, because of the options, the procedures or a missing package.
    """
    if options.http and options.host not in _LOOPBACK:
        raise ConfigError(
            f"--host {options.host}: this server asks for no key, so it listens at {', '.join(_LOOPBACK)} alone; put "
            "a proxy that does in front of it",
            option="host",
        )
    if not options.http and sys.stdin is None:
        raise ConfigError("stdin is closed, where the client would speak: open it, or pass --http")
    from stepguard.integrations.mcp.server import create_server

    server = create_server(
        _models(options),
        procedures=None if options.procedures is None else Path(options.procedures),
        # Where it is not given, that hangs on whether there are procedures to name.
        accept_texts=options.accept_texts or None,
        guard=read_guard(options, seconds=options.max_seconds),
        tell_reasons=options.tell_reasons,
        at_least=options.at_least,
        ledger=open_ledger(options),
    )
    log_to_stderr(options.log_level.upper())
    if options.http:
        _serve_http(server, options.host, options.port)
        return 0
    # A thread waits for the next line, and Python would wait for it; the client knows that it has ended the server.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        from stepguard.integrations.mcp.wire import serve_stdio

        asyncio.run(serve_stdio(server))
    finally:
        signal.signal(signal.SIGINT, before)
    return 0


def _models(options: argparse.Namespace) -> dict[str, object] | None:
    if options.base_url is None and not options.model:
        return None
    from stepguard.cli.models import choose_backend

    backends: dict[str, object] = {}
    for name in options.model or [None]:
        asked = argparse.Namespace(gguf=None, model=name, base_url=options.base_url, seed=None)
        backend, shown = choose_backend(asked)
        backends[name or shown] = backend
    return backends


def _serve_http(server: Any, host: str, port: int) -> None:
    from stepguard.integrations.mcp.wire import ExactBodies

    app = ExactBodies(server.streamable_http_app(host=host))
    serve_until_signal(app, host, port, "stepguard serves MCP at {}/mcp")
