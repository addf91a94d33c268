"""How a policy would have judged recorded agent runs: of calls held to be right, and of runs that failed.

python benchmarks/replay_policy.py --data FILE.jsonl [--policy benchmarks/policies/airline.policy] [--json]

The file has one run a line: `messages` as OpenAI's chats have them, `gold_actions` (the calls that the benchmark's
authors hold to be right, each with `name` and `kwargs` or `arguments`) and `reward` (1 where the run succeeded). No
text of it is printed: only counts, and places as run:message.

A yes of the customer is taken from the conversation by a plain reader of the host's: the last thing that they wrote
before the call says yes and nothing that takes it back. `--assume-confirmed` takes every call as agreed to.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from stepguard import Policy
from stepguard.policy.replay import ReplayedCall, replay_conversation

HERE = Path(__file__).parent
YES = re.compile(
    r"\b(?:yes|yeah|yep|sure|ok(?:ay)?|correct|confirm(?:ed)?|proceed|go ahead|sounds good|please do|that works)\b",
    re.IGNORECASE,
)
NO = re.compile(r"\b(?:no|not|don't|wait|instead|but|however|actually|cancel that|hold on)\b", re.IGNORECASE)
SOFT = frozenset({"unseen", "stale", "unanswered", "not_done"})
"""Refused until something was looked up: the agent is told which call comes first."""


def agreed(role: str, before: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the last thing that the customer wrote says yes."""
    said = next((str(each.get("content")) for each in reversed(before) if each.get("role") == "user"), "")
    return YES.search(said) is not None and NO.search(said) is None


def plain(value: object) -> object:
    """Data as it is compared: numbers by their worth."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def gold_of(run: Mapping[str, Any]) -> list[tuple[str, object]]:
    """The calls that are held to be right."""
    return [(each["name"], plain(each.get("kwargs", each.get("arguments")))) for each in run["gold_actions"]]


def called(call: ReplayedCall) -> tuple[str, object]:
    """The tool and its arguments, as they are compared."""
    return call.decision.tool, plain(dict(call.decision.arguments))


def kind_of(call: ReplayedCall) -> str:
    """What the gate says, in one word: allowed, asked, looked up first, refused."""
    if call.decision.outcome != "refuse":
        return "allowed" if call.decision.outcome == "allow" else "asked"
    return "look up first" if {each.kind for each in call.decision.reasons} <= SOFT else "refused"


def measure(policy: Policy, runs: Sequence[Mapping[str, Any]], *, assume: bool) -> dict[str, Any]:
    """Every figure of the runs."""
    found: dict[str, Counter[str]] = {"gold": Counter(), "other": Counter()}
    by_rule: Counter[str] = Counter()
    undecided: Counter[str] = Counter()
    places: list[str] = []
    stops: Counter[str] = Counter()
    failed = 0
    seconds = []
    for number, run in enumerate(runs, 1):
        gold = gold_of(run)
        started = time.perf_counter()
        calls = replay_conversation(
            policy,
            run["messages"],
            number=number,
            now=datetime(2024, 5, 15, 15),
            zone=ZoneInfo("America/New_York"),
            confirmed=(lambda role, before: True) if assume else agreed,
        )
        seconds.append((time.perf_counter() - started) / max(len(calls), 1))
        changing = [each for each in calls if not each.reads and not each.failed]
        if run["reward"] != 1:
            failed += 1
            wrong = next((each for each in changing if called(each) not in gold), None)
            stops["no wrong change" if wrong is None else kind_of(wrong)] += 1
        for call in changing:
            right = called(call) in gold
            kind = kind_of(call)
            found["gold" if right else "other"][kind] += 1
            reasons = call.decision.reasons
            if kind == "asked":
                undecided.update(f"{call.decision.tool}: {words}" for words in {each.words for each in reasons})
            if kind in ("refused", "look up first"):
                role = "RIGHT ONE: " if right else ""
                by_rule.update(
                    {f"{role}{call.decision.tool}: {each.words} ({each.kind}, line {each.line})" for each in reasons}
                )
                if right:
                    places.append(f"{number}:{call.message} {kind}")
    return {
        "runs": len(runs),
        "failed runs": failed,
        "changing calls equal to a right one": dict(found["gold"]),
        "other changing calls": dict(found["other"]),
        "first wrong change of the failed runs": dict(stops),
        "by rule": dict(by_rule.most_common()),
        "asked": dict(undecided.most_common()),
        "right ones that were not let through": places,
        "milliseconds a call": round(1000 * sum(seconds) / len(seconds), 3),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--policy", type=Path, default=HERE / "policies" / "airline.policy")
    parser.add_argument("--assume-confirmed", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    runs = [json.loads(line) for line in options.data.read_text(encoding="utf-8").splitlines() if line.strip()]
    figures = measure(Policy.load(options.policy), runs, assume=options.assume_confirmed)
    if options.json:
        sys.stdout.write(json.dumps(figures, indent=1) + "\n")
        return
    for name, value in figures.items():
        lines = [f"{key}: {count}" for key, count in value.items()] if isinstance(value, dict) else [str(value)]
        sys.stdout.write("\n  ".join([name, *lines]) + "\n")


if __name__ == "__main__":
    main()
