"""What commands share that read a policy: its file, the facts that the host knows, the time zone."""

from __future__ import annotations

import argparse
import sys
from datetime import tzinfo

from stepguard.errors import ConfigError, ValueRefused
from stepguard.policy.moments import read_zone
from stepguard.policy.policy import Policy


def add_facts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--zone", metavar="NAME", default="UTC", help="the time zone of moments that name none")
    parser.add_argument(
        "--fact", metavar="NAME=VALUE", action="append", default=[], help="a fact without keys that the host knows"
    )


def load_policy(path: str) -> Policy:
    """The policy in a file; what its author should look at is said on stderr.

    Raises StepguardError: it cannot be read, or holds none.
    """
    try:
        policy = Policy.load(path)
    except OSError as error:
        raise ConfigError(f"cannot read {error.filename}: {error.strerror or error}", option="file") from None
    for note in policy.notes:
        where = "" if note.line is None else f", line {note.line}"
        sys.stderr.write(f"note: {path}{where}: {note.text}\n")
    return policy


def read_facts(pairs: list[str]) -> dict[str, object]:
    """The facts of ``--fact``. Raises ConfigError: one is not written as NAME=VALUE."""
    facts: dict[str, object] = {}
    for each in pairs:
        name, sign, value = each.partition("=")
        if not sign or not name:
            raise ConfigError(f"--fact {each!r:.60}: write NAME=VALUE", option="fact")
        facts[name] = value
    return facts


def chosen_zone(name: str) -> tzinfo:
    """The time zone of ``--zone``. Raises ConfigError: there is none of this name."""
    try:
        return read_zone(name)
    except ValueRefused as error:
        raise ConfigError(f"--zone {name!r:.60}: {error.reason}", option="zone") from None
