"""``stepguard replay-policy``: what a policy would have said of recorded conversations."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final

from stepguard.cli.policies import add_facts, chosen_zone, load_policy, read_facts
from stepguard.cli.text import printable, shortened
from stepguard.errors import ConfigError
from stepguard.policy.replay import ReplayedCall, read_conversations, replay_conversation, summary_of
from stepguard.policy.span_records import is_span_line
from stepguard.policy.span_replay import read_span_conversations

_LET_THROUGH: Final = 0
_WAITING: Final = 1
_REFUSED: Final = 3
_LONGEST: Final = 160


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="POLICY", help="the policy: YAML or JSON by its suffix, otherwise text")
    add(
        "conversations",
        metavar="CONVERSATIONS",
        help="JSON lines: each an object with `messages`, or a list of messages, as OpenAI's chats have them; or spans "
        "of OpenTelemetry, with their content, as an SDK or a collector exports them; - for stdin",
    )
    add("--now", metavar="MOMENT", help="when the calls were made, such as 2026-01-31T14:30:00; spans say it")
    add_facts(parser)
    add(
        "--confirmed",
        metavar="ROLE",
        action="append",
        default=[],
        help="take it that they had said yes to every call; otherwise such calls would have waited",
    )
    add(
        "--failure",
        metavar="TEXT",
        default="Error",
        help="a result that begins so says that nothing was done (default: %(default)s)",
    )
    add("--json", action="store_true", help="print one JSON document")


def main(options: argparse.Namespace) -> int:
    """Replay and print. Raises StepguardError: the policy, the conversations or an option cannot be read."""
    policy = load_policy(options.file)
    facts, now, zone = read_facts(options.fact), _moment(options.now), chosen_zone(options.zone)
    how: Any = {
        "now": now,
        "zone": zone,
        "facts": facts,
        "confirmed": lambda role, before: role in options.confirmed,
        "failure": lambda content: bool(options.failure) and content.startswith(options.failure),
    }
    # By its first line: nothing in the name of a file tells spans from conversations.
    first, lines = _peeked(_lines(options.conversations))
    recorded = enumerate(read_span_conversations(lines), 1) if is_span_line(first) else read_conversations(lines)
    calls = [call for number, each in recorded for call in replay_conversation(policy, each, number=number, **how)]
    if options.json:
        listed = [
            {"line": call.line, "message": call.message, **call.decision.to_dict()}
            for call in calls
            if not call.decision.allowed
        ]
        sys.stdout.write(json.dumps({**summary_of(calls), "not_let_through": listed}, ensure_ascii=False) + "\n")
    else:
        _print(calls)
    outcomes = {call.decision.outcome for call in calls}
    if "refuse" in outcomes:
        return _REFUSED
    return _WAITING if "ask" in outcomes else _LET_THROUGH


def _lines(path: str) -> Iterator[str]:
    """The lines of a file, or of stdin; never all of them at once."""
    if path == "-" and sys.stdin is None:
        raise ConfigError("cannot read -: stdin is closed", option="conversations")
    try:
        if path == "-":
            yield from sys.stdin
            return
        with Path(path).open(encoding="utf-8-sig") as source:
            yield from source
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}", option="conversations") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text", option="conversations") from None


def _peeked(lines: Iterator[str]) -> tuple[str, Iterator[str]]:
    """The first line that is not empty, and all lines."""
    passed: list[str] = []
    for line in lines:
        passed.append(line)
        if line.strip():
            break
    return passed[-1] if passed else "", chain(passed, lines)


def _print(calls: list[ReplayedCall]) -> None:
    for call in calls:
        place = f"line {call.line}" if call.message is None else f"line {call.line}, message {call.message}"
        for reason in dict.fromkeys(call.decision.reasons):
            rule = f"rule in line {reason.line}" if reason.line is not None else reason.kind
            words = printable(reason.words if reason.line is None else f"{reason.words} ({reason.kind})")
            sys.stdout.write(
                f"{place}: {call.decision.outcome} "
                f"{shortened(printable(call.decision.tool), 80)}: {rule}: {shortened(words, _LONGEST)}\n"
            )
    counts = Counter(call.decision.outcome for call in calls)
    conversations = len({call.conversation for call in calls})
    shown = ", ".join(f"{counts[name]} {name}" for name in ("allow", "ask", "refuse"))
    sys.stdout.write(f"{len(calls)} calls in {conversations} conversations: {shown}\n")


def _moment(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--now {text!r:.60}: write a moment such as 2026-01-31T14:30:00", option="now") from None
