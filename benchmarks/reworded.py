"""What recorded guarded runs would have taken with brief prompts: the same replies, counted by the model's tokenizer.

    python benchmarks/reworded.py benchmarks/results/qwen2.5-coder-1.5b-arithmetic --base-url http://127.0.0.1:8080

Each recorded run is made again from its replies, once with full prompts and once with brief ones, and the requests are
counted by a llama.cpp server (its chat template and its tokenizer; nothing is generated). The replies are counted as
they are, and up to where the guard would have stopped them. That the first count is what the server had counted when
the runs were recorded is checked. It says nothing of how often a model slips where it is asked in brief.
"""

from __future__ import annotations

import argparse
import json
import urllib.request
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from stepguard import Guard, Result
from stepguard.backends import Completion, Request
from stepguard.core.completions import STOPPED_EARLY
from stepguard.engine.prompts import Wording
from stepguard.evaluation.families import Arithmetic

WORDINGS: Final[tuple[Wording, ...]] = ("full", "brief")


class Counter:
    """Counts tokens by a server."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def text(self, text: str) -> int:
        """The tokens of a text."""
        return len(self._ask("/tokenize", {"content": text, "parse_special": True})["tokens"])

    def request(self, request: Request) -> int:
        """The tokens of a request, with what the chat template puts around its messages."""
        messages = [{"role": each.role, "content": each.content} for each in request.messages]
        return self.text(self._ask("/apply-template", {"messages": messages})["prompt"])

    def _ask(self, path: str, body: object) -> Any:
        data, kind = json.dumps(body).encode(), {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(self._url + path, data, kind)) as reply:
            return json.load(reply)


class Heard:
    """Gives recorded replies, up to where the guard would stop them; keeps the requests and how the replies ended."""

    can_stop = True

    def __init__(self, texts: list[str]) -> None:
        self.requests: list[Request] = []
        self.given: list[Completion] = []
        self._texts = iter(texts)

    def complete(self, request: Request) -> Completion:
        """The next reply."""
        text, stop = next(self._texts), request.stop
        end = None if stop is None else next((at for at in range(1, len(text)) if stop(text[:at])), None)
        self.requests.append(request)
        self.given.append(Completion(text) if end is None else Completion(text[:end], finish_reason=STOPPED_EARLY))
        return self.given[-1]

    def written(self, count: Counter) -> int:
        """The tokens of the replies; one that was not stopped has one more, which ends it."""
        return sum(count.text(each.text or "") + (each.finish_reason != STOPPED_EARLY) for each in self.given)


def run(outcome: dict[str, Any], segment: int, prompts: Wording, *, stop: bool) -> Heard:
    """A recorded run, made again.

    Raises:
        SystemExit: it ends otherwise than recorded.
    """
    task, heard = Arithmetic().make(outcome["seed"], outcome["length"]), Heard(outcome["texts"])
    guard = Guard(heard, segment=segment, prompts=prompts, stop_early=stop, seed=outcome["seed"])
    result: Result = guard.run(task.procedure, task.inputs)
    if (result.status, result.usage.calls) != (outcome["status"], outcome["calls"]):
        raise SystemExit(f"seed {outcome['seed']} ends otherwise than recorded: {result.status}")
    return heard


def main() -> None:
    """Count, and print the means of each length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path, help="a folder of stepguard bench with full prompts")
    parser.add_argument("--base-url", required=True, help="a llama.cpp server with the model of the recording")
    args = parser.parse_args()
    first, *lines = (args.recording / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    segment, count = json.loads(first)["configuration"]["segment"], Counter(args.base_url)
    outcomes = [each for each in map(json.loads, lines) if each["arm"] == "guard"]
    print("steps  runs  input full  brief  output  stopped early")
    for length in sorted({each["length"] for each in outcomes}):
        rows: list[list[int]] = []
        for each in outcomes:
            if each["length"] != length:
                continue
            full, brief = (run(each, segment, way, stop=False) for way in WORDINGS)
            cut = run(each, segment, "full", stop=True)
            asked = [sum(map(count.request, one.requests)) for one in (full, brief)]
            written = full.written(count)
            if (asked[0], written) != (each["input_tokens"], each["output_tokens"]):
                raise SystemExit(f"seed {each['seed']}: {asked[0]} and {written} tokens are not what was recorded")
            rows.append([*asked, written, cut.written(count)])
        means = [f"{fmean(column):.0f}" for column in zip(*rows, strict=True)]
        shown = " ".join(f"{mean:<{width}}" for mean, width in zip(means, (11, 6, 7, 13), strict=True))
        print(f"{length:<6} {len(rows):<5} {shown.rstrip()}")


if __name__ == "__main__":
    main()
