"""What stopping replies at their first wrong step saves, worked out on recorded replies.

    python benchmarks/early_stop.py benchmarks/results/qwen2.5-coder-1.5b-arithmetic-95 --arm guard

Each recorded run is made again with ``Guard(stop_early=True)``, or, with ``--by-itself``, as a guard does without being
told at a server of one's own: from the first refused step on. A reply is cut where the guard would have stopped its
stream, letter by letter; its output tokens are counted by the share of its letters that is left. The guard is told the
whole of them, so that it chooses the recorded segments. Runs that need a reply that was not recorded are left out: a
reply that had been cut off at its cap is stopped before it. What a provider bills for a stream that is broken off, and
how late it notices, a recording cannot show.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from stepguard import Guard
from stepguard.backends import Completion, Request
from stepguard.backends.recorded import RecordedBackend
from stepguard.core.completions import STOPPED_EARLY
from stepguard.errors import ReplyMissing
from stepguard.evaluation.families import Arithmetic

ADAPTIVE = "guard(adaptive=true)"


@dataclass(slots=True)
class Streamed:
    """The recorded replies as streams that can be stopped.

    Attributes:
        whole: the output tokens of what was said.
        kept: those of what was waited for.
        stopped: how many replies were stopped.
    """

    recorded: RecordedBackend
    whole: int = 0
    kept: int = 0
    stopped: int = 0

    name = "recorded"
    can_stop = True
    stopping = "slips"

    def complete(self, request: Request) -> Completion:
        """The reply, as much of it as is waited for."""
        said = self.recorded.complete(replace(request, stop=None))
        tokens = said.usage.output_tokens
        self.whole += tokens
        end = _stop(request.stop, said.text) if request.stop and said.text else None
        if said.text is None or end is None:
            self.kept += tokens
            return said
        self.stopped += 1
        self.kept += -(-tokens * end // len(said.text))
        return replace(said, text=said.text[:end], finish_reason=STOPPED_EARLY)


def _stop(stop: Callable[[str], bool], text: str) -> int | None:
    return next((end for end in range(1, len(text)) if stop(text[:end])), None)


def main() -> None:
    """Make the runs again and print what they cost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path, help="a folder of stepguard bench, with replies.jsonl")
    parser.add_argument("--arm", choices=["guard", ADAPTIVE], default="guard")
    parser.add_argument("--by-itself", action="store_true", help="stop replies once a step was refused")
    args = parser.parse_args()
    first, *lines = (args.recording / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    meta = json.loads(first)["configuration"]
    segment, prompts = None if args.arm == ADAPTIVE else meta["segment"], meta.get("prompts", "full")
    outcomes = [each for each in map(json.loads, lines) if each["arm"] == args.arm]
    recorded = RecordedBackend(args.recording / "replies.jsonl")
    print("steps  runs  left out  calls  stopped  output tokens  with early stop  saved")
    for length in sorted({each["length"] for each in outcomes}):
        made: list[Streamed] = []
        calls = left_out = 0
        for each in outcomes:
            if each["length"] != length:
                continue
            task, model = Arithmetic().make(each["seed"], length), Streamed(recorded)
            stop = None if args.by_itself else True
            guard = Guard(model, segment=segment, prompts=prompts, stop_early=stop, seed=each["seed"])
            result = guard.run(task.procedure, task.inputs)
            if isinstance(result.error, ReplyMissing):
                left_out += 1
                continue
            if (result.status, result.usage.calls) != (each["status"], each["calls"]):
                raise SystemExit(f"seed {each['seed']} at {length} steps ends otherwise than recorded: {result.status}")
            made.append(model)
            calls += result.usage.calls
        whole, kept = sum(each.whole for each in made), sum(each.kept for each in made)
        print(
            f"{length:<6} {len(made):<5} {left_out:<9} {calls:<6} {sum(each.stopped for each in made):<8} {whole:<14} "
            f"{kept:<16} {1 - kept / whole:.1%}"
        )


if __name__ == "__main__":
    main()
