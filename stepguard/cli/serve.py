"""``stepguard serve``: the application of `stepguard.serve` behind uvicorn, until a signal ends it gracefully."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from stepguard.cli.arguments import (
    add_at_least,
    add_guard,
    add_ledger,
    add_limits,
    add_log_level,
    open_ledger,
    read_guard,
)
from stepguard.cli.listening import bounded_server, listening, log_to_stderr, serve_on, signals_end_it, url_of
from stepguard.errors import ConfigError, MissingExtraError

# From the environment: everybody on a machine sees what stands in a command line.
_KEY: Final = "STEPGUARD_SERVE_KEY"
_UPSTREAM_KEY: Final = "STEPGUARD_UPSTREAM_KEY"
_ANSWER_KEY: Final = "STEPGUARD_ANSWER_KEY"
_LAST_SECONDS: Final = 5.0
"""After the seconds of grace those that are cancelled have this time to be told so."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--upstream",
        metavar="URL",
        required=True,
        help="the endpoint behind it, up to and without /chat/completions, such as https://api.openai.com/v1",
    )
    add("--procedures", metavar="DIR", help="a folder with a procedure in each file: NAME.yaml is asked as NAME@MODEL")
    add("--host", metavar="HOST", default="127.0.0.1", help="where to listen (default: %(default)s)")
    add("--port", metavar="N", type=int, default=8000, help="0 takes a free one (default: %(default)s)")
    add(
        "--trust-procedures",
        metavar="ROLE,...",
        help="roles whose messages may be a procedure, such as system,developer (default: none)",
    )
    add("--trust-inputs", metavar="ROLE,...", help="roles whose messages may give inputs, such as user (default: none)")
    add_ledger(
        parser, "keep the runs of requests with a header Idempotency-Key there: the same key goes on with its run"
    )
    add("--guarded-only", action="store_true", help="refuse chats that would be passed on")
    add_at_least(parser)
    add(
        "--tell-reasons",
        action="store_true",
        help="errors also tell why a step was not accepted, which may name the right value: not for agents",
    )
    add_log_level(parser, "info")
    guard = parser.add_argument_group("the guard")
    add_guard(guard, seconds=False)
    guard.add_argument(
        "--mode", choices=["json_schema", "tools", "json"], help="how the upstream binds a reply to its form"
    )
    guard.add_argument("--no-strict", action="store_true", help="for an upstream that does not know the word strict")
    add(
        "--pass",
        dest="passed",
        metavar="ROUTE",
        action="append",
        default=[],
        help="pass this on as well, such as 'GET /files/{id}'; repeat for more. What is not on the list is not found",
    )
    add(
        "--trusted-proxy",
        metavar="ADDRESS",
        action="append",
        default=[],
        help="a proxy in front of this server, whose word is taken for whom it speaks for; repeat for more",
    )
    add(
        "--metrics-port",
        metavar="N",
        type=int,
        help="serve /metrics at a port of its own, without a key (default: at the port of the API, with its key)",
    )
    add("--metrics-host", metavar="HOST", default="127.0.0.1", help="where to listen for it (default: %(default)s)")
    limits = parser.add_argument_group("limits")
    add_limits(limits)
    limits.add_argument("--max-body", metavar="BYTES", type=int, help="the largest request (default: 16 MiB)")
    limits.add_argument(
        "--max-memory", metavar="BYTES", type=int, help="for all requests in flight together (default: 512 MiB)"
    )
    limits.add_argument("--concurrent", metavar="N", type=int, help="requests at once (default: 100)")
    limits.add_argument("--waiting", metavar="N", type=int, help="requests that may wait (default: 500)")
    limits.add_argument("--connections", metavar="N", type=int, help="open connections (default: 1000)")
    limits.add_argument(
        "--client-share", metavar="PART", type=float, help="what one client may take of these (default: 0.5)"
    )
    limits.add_argument("--max-seconds", metavar="S", type=float, help="for one request (default: 600)")
    limits.add_argument(
        "--upstream-seconds", metavar="S", type=float, help="how long the upstream may be silent (default: 300)"
    )
    limits.add_argument(
        "--grace-seconds", metavar="S", type=float, help="for requests that run when it is to stop (default: 30)"
    )


def main(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM, then let the requests in flight end.

    Raises StepguardError: nothing was served, because of the options, the procedures or a missing package.
    """
    from stepguard.integrations.chat.trust import Trust
    from stepguard.serve import Limits, create_app

    try:
        from stepguard.serve.connections import Connections, files_allowed
    except ModuleNotFoundError:
        raise MissingExtraError("stepguard serve", extra="serve") from None
    given = {
        "body": options.max_body,
        "memory": options.max_memory,
        "concurrent": options.concurrent,
        "waiting": options.waiting,
        "connections": options.connections,
        "client_share": options.client_share,
        "seconds": options.max_seconds,
        "upstream_seconds": options.upstream_seconds,
        "grace_seconds": options.grace_seconds,
    }
    limits = Limits(**{name: value for name, value in given.items() if value is not None})
    connections = Connections(limits, files=files_allowed(), trusted=frozenset(options.trusted_proxy))
    limits = connections.fitted(limits)
    app = create_app(
        options.upstream,
        procedures=None if options.procedures is None else Path(options.procedures),
        limits=limits,
        guard=read_guard(options),
        mode=options.mode,
        strict=False if options.no_strict else None,
        trust=Trust(procedures=_roles(options.trust_procedures), inputs=_roles(options.trust_inputs)),
        guarded_only=options.guarded_only,
        at_least=options.at_least,
        reasons=options.tell_reasons,
        api_key=(os.environ.get(_KEY) or "").split(",") if os.environ.get(_KEY) else None,
        upstream_key=os.environ.get(_UPSTREAM_KEY) or None,
        ledger=open_ledger(options),
        answer_key=os.environ.get(_ANSWER_KEY) or None,
        more_paths=options.passed,
        metrics=options.metrics_port is None,
    )
    service = app.state.stepguard
    service.connect()
    log_to_stderr(options.log_level.upper(), service.secrets)
    with (
        listening(options.host, options.port) as listener,
        _metrics_at(options.metrics_host, options.metrics_port, service),
    ):
        server = bounded_server(
            app, connections, last_seconds=limits.grace_seconds + 2 * _LAST_SECONDS, proxies=options.trusted_proxy
        )
        sys.stdout.write(f"stepguard serves {url_of(listener)}/v1 in front of {options.upstream}\n")
        sys.stdout.flush()
        with signals_end_it():
            asyncio.run(_serve(server, service, listener))
    return 0


def _roles(text: str | None) -> list[str]:
    return [role.strip() for role in (text or "").split(",") if role.strip()]


@contextlib.contextmanager
def _metrics_at(host: str, port: int | None, service: Any) -> Iterator[None]:
    """The metrics at a port of their own, to whoever reaches it; nothing where none is given."""
    if port is None:
        yield
        return
    from prometheus_client import start_http_server

    try:
        server, thread = start_http_server(port, host, service.metrics.registry)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"cannot listen on {host}:{port}: {error}; choose another --metrics-port") from None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def _serve(server: Any, service: Any, listener: socket.socket) -> None:
    """Serve until a signal; then no request is taken any more, and those in flight end or are told that they do not."""
    serving = asyncio.create_task(serve_on(server, listener), name="stepguard-serve")
    # uvicorn tells nobody that a signal has come; from then on `stop` counts the seconds of grace.
    while not (serving.done() or server.should_exit):
        await asyncio.sleep(0.05)
    stopping = asyncio.create_task(service.stop(), name="stepguard-stop")
    await serving
    if server.force_exit:  # a second signal: no grace
        stopping.cancel()
    await asyncio.gather(stopping, return_exceptions=True)
