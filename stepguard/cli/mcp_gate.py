"""``stepguard mcp-gate``: a policy before an MCP server; see `stepguard.integrations.mcp_gate`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from stepguard.cli.arguments import add_guard, add_model, read_guard
from stepguard.cli.policies import add_facts, chosen_zone, load_policy, read_facts
from stepguard.engine.budget import Budget
from stepguard.errors import ConfigError

if TYPE_CHECKING:
    from stepguard.guard import Guard
    from stepguard.policy.gate import PolicyGate

_BUDGET: Final = Budget(calls=10, tokens=50_000, seconds=60.0)
"""What one judgement may spend."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--policy", metavar="FILE", required=True, help="the policy: YAML or JSON by its suffix, otherwise text")
    add("server", metavar="COMMAND", nargs=argparse.REMAINDER, help="the server, behind --: -- python server.py")
    add("--url", metavar="URL", help="a server over streamable HTTP in place of COMMAND (extra: mcp)")
    add("--token", metavar="NAME", help="the environment variable whose value goes to --url as a bearer token")
    add_facts(parser)
    add(
        "--refusals", metavar="N", type=int, default=3, help="refusals in a row until a person takes over (%(default)s)"
    )
    add(
        "--ask",
        metavar="NAME",
        action="append",
        default=[],
        help="a role or a fact of the policy for which the person at the client answers (elicitation)",
    )
    add("--ledger", metavar="FILE", help="keep the conversation, and go on with it; with --run-id")
    add("--run-id", metavar="NAME", help="which conversation of the ledger this is")
    add("--observe", action="store_true", help="log what would be refused, and pass every call on")
    model = parser.add_argument_group(
        "the model", "It judges the facts that the policy declares as judged; without it they are asked of a person."
    )
    add_model(model)
    model.add_argument(
        "--session-calls",
        metavar="N",
        type=int,
        default=1000,
        help="begin no judgement after this many model calls of the session (%(default)s)",
    )
    model.add_argument(
        "--session-tokens", metavar="N", type=int, help="begin no judgement once the session has spent so many tokens"
    )
    add_guard(parser.add_argument_group("the guard, for every judgement"), _BUDGET, stop_early=False)


def main(options: argparse.Namespace) -> int:
    """Pass messages between a client on stdio and the server, until one of them ends.

    Raises StepguardError: the policy or an option cannot work, or the server cannot be started.
    """
    from stepguard.ledger import Ledger

    # argparse leaves the -- in what it takes as the rest.
    command = options.server[1:] if options.server[:1] == ["--"] else options.server
    if bool(command) == (options.url is not None):
        raise ConfigError("name one server: its command behind --, or --url URL", option="server")
    if sys.stdin is None:
        raise ConfigError("stdin is closed, where the client would speak: open it")
    with ExitStack() as stack:
        ledger = None if options.ledger is None else stack.enter_context(Ledger(options.ledger))
        gate = load_policy(options.policy).gate(
            facts=read_facts(options.fact),
            zone=chosen_zone(options.zone),
            refusals=options.refusals,
            observe=options.observe,
            ledger=ledger,
            run_id=options.run_id,
        )
        stack.callback(gate.close)
        return _serve(gate, _guard(gate, options), command, options)


def _guard(gate: PolicyGate, options: argparse.Namespace) -> Guard | None:
    if options.model is None and options.base_url is None and options.gguf is None:
        return None
    if not any(fact.judged for fact in gate.policy.facts.values()):
        raise ConfigError("the policy declares no fact as judged: leave the model out", option="model")
    if options.observe:
        raise ConfigError("--observe stops no call, so nothing is judged: leave the model out", option="model")
    from stepguard.cli.models import choose_backend
    from stepguard.guard import Guard

    backend, _ = choose_backend(options)
    return Guard(backend, **read_guard(options, seconds=options.max_seconds))


def _serve(gate: PolicyGate, guard: Guard | None, command: list[str], options: argparse.Namespace) -> int:
    from stepguard.integrations.mcp_gate import GatedSession, serve_command

    over_http = options.url is not None
    budget = Budget(calls=options.session_calls, tokens=options.session_tokens)
    session = GatedSession(gate, ask=options.ask, handshake=over_http, guard=guard, budget=budget)
    if not over_http:
        return serve_command(session, command)
    from stepguard.integrations.mcp_gate.http import serve_url

    headers = {}
    if options.token is not None:
        if not os.environ.get(options.token):
            raise ConfigError(f"the environment has no {options.token}", option="token")
        headers["Authorization"] = f"Bearer {os.environ[options.token]}"
    asyncio.run(serve_url(session, options.url, headers=headers))
    return 0
