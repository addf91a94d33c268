"""``stepguard ui``: the pages of `stepguard.serve.ledger_pages`, until a signal."""

from __future__ import annotations

import argparse
import os
from typing import Final

from stepguard.cli.listening import log_to_stderr, serve_until_signal
from stepguard.errors import ConfigError, MissingExtraError
from stepguard.ledger import Ledger

_TOKEN: Final = "STEPGUARD_UI_TOKEN"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ledger", metavar="LEDGER", help="the file, such as runs.db, or an address of Postgres")
    parser.add_argument(
        "--host",
        metavar="HOST",
        default="127.0.0.1",
        help="where to listen (default: %(default)s); another machine is served with a token alone",
    )
    parser.add_argument("--port", metavar="N", type=int, default=8002, help="0 takes a free one (default: %(default)s)")


def main(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM.

    Raises StepguardError: nothing was served, because of the file, the options or a missing package.
    """
    token = os.environ.get(_TOKEN) or None
    if options.host not in _LOOPBACK and token is None:
        raise ConfigError(f"--host {options.host}: set {_TOKEN} to what browsers are to show", option="host")
    try:
        from stepguard.serve.ledger_pages import create_pages
    except ModuleNotFoundError:
        raise MissingExtraError("stepguard ui", extra="serve") from None
    with Ledger(options.ledger, read_only=True) as ledger:
        shown = ledger.path  # an address without its password
    app = create_pages(options.ledger, token=token)
    log_to_stderr("WARNING", () if token is None else (token,))
    serve_until_signal(app, options.host, options.port, f"stepguard shows {shown} at {{}}/")
    return 0
