"""A million dependent steps on a simulated model: none may be wrong, and memory stays flat.

    python benchmarks/million.py                        # 1,048,575 steps, as many as Hanoi takes with 20 discs
    python benchmarks/million.py --steps 20000 --segment 1

`sum` is a chain of additions and subtractions, each of the value before. `hanoi` is the Towers of Hanoi, the state of
the pegs being the value of each step; it runs twice, with checks of different knowledge:

* `hanoi-rule`: the move must be the one that the instruction says;
* `hanoi-legal`: the move must be legal. Legal moves that are not the one asked for pass; they are counted.

The model slips in 0.22 % of its steps: the rate that was published for gpt-4.1-mini on Hanoi (arXiv 2511.09030), which
without a checker took a vote on every step. On Hanoi half of its slips are other legal moves.

The run goes on in parts, each a lazy procedure of its own that begins with the last verified value; after each part its
state is written to `--state`, and the same command goes on from there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import resource
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from stepguard import Claim, Guard, Input, Procedure, Segments, Step
from stepguard.backends import Completion, Request
from stepguard.core.usage import Usage
from stepguard.engine.actions import Action, Commit, Event
from stepguard.language.values import Value
from stepguard.testing import SimulatedModel, Slips
from stepguard.testing.working import completion_of

STEPS: Final = 2**20 - 1
ERROR: Final = 0.0022
PART: Final = 2**14
DISCS: Final = 20
PEGS: Final = "ABC"
TASKS: Final = ("sum", "hanoi-rule", "hanoi-legal")


# A chain of sums


def running(index: int) -> int:
    """The value after so many steps of the chain: it jumps about between -300 and 300."""
    return index * 7919 % 601 - 300 if index else 0


def sum_step(index: int) -> Step:
    """The step that makes `running(index)` of the value before."""
    change = running(index) - running(index - 1)
    return Step(f"s{index}", f"s{index - 1} {'-' if change < 0 else '+'} {abs(change)}")


# The Towers of Hanoi: a state names the peg of every disc, the smallest first


def legal(before: str, after: str) -> bool:
    """Whether one disc has moved, with no smaller one above it or where it is put."""
    moved = [disc for disc, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]
    if len(after) != len(before) or not set(after) <= set(PEGS) or len(moved) != 1:
        return False
    disc = moved[0]
    return before[disc] not in before[:disc] and after[disc] not in before[:disc]


def moves(state: str) -> list[str]:
    """The states that one legal move leads to."""
    found: list[str] = []
    for disc in range(len(state)):
        if state[disc] not in state[:disc]:
            found += [
                state[:disc] + peg + state[disc + 1 :] for peg in PEGS if peg != state[disc] and peg not in state[:disc]
            ]
    return found


def right_move(index: int, state: str) -> str:
    """The state after move `index`, counted from 1: the smallest disc goes round, then the only other move is made."""
    if index % 2:
        way = 1 if len(state) % 2 == 0 else 2
        return PEGS[(PEGS.index(state[0]) + way) % 3] + state[1:]
    others = [each for each in moves(state) if each[0] == state[0]]
    return others[0] if others else state


def at_move(index: int, discs: int) -> str:
    """The state after so many moves, by the closed form: what vouches for the chain of moves itself."""
    pegs: list[str] = []
    for disc in range(discs):
        turns = (index + (1 << disc)) >> (disc + 1)
        way = 1 if (discs - disc) % 2 == 0 else 2
        pegs.append(PEGS[turns * way % 3])
    return "".join(pegs)


@dataclass(frozen=True, slots=True)
class LegalMove:
    """The check that knows the rules of the game, and not the plan."""

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        return legal(str(values[step.reads[0]]), str(values[step.id]))


@dataclass(frozen=True, slots=True)
class RightMove:
    """The check that knows which move is asked for."""

    index: int

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        return str(values[step.id]) == right_move(self.index, str(values[step.reads[0]]))


def hanoi_step(index: int, rule: bool) -> Step:
    """Move `index`, counted from 1."""
    if index % 2:
        words = "Move the smallest disc one peg on, from C to A."
    else:
        words = "Make the only legal move that does not touch the smallest disc."
    return Step(
        f"s{index}",
        instruction=f"{words} Give the peg of every disc, the smallest first.",
        reads=[f"s{index - 1}"],
        checks=[RightMove(index) if rule else LegalMove()],
    )


@dataclass(frozen=True, slots=True)
class HanoiModel:
    """Makes the moves that it is asked for, and slips: half of the time to another legal move."""

    seed: int

    name = "simulated"

    def complete(self, request: Request) -> Completion:
        """Answer a request."""
        drawn = request.seed if request.temperature else 0
        asked = request.messages[-1].content
        digest = hashlib.blake2b(f"{self.seed} {drawn} {asked}".encode(), digest_size=8).digest()
        chance = random.Random(digest)
        known = {name: str(value) for name, value in request.values.items()}
        fields: dict[str, object] = {}
        for step in request.steps:
            state = known[step.reads[0]]
            after = right_move(int(step.id[1:]), state)
            if chance.random() < ERROR:
                others = [each for each in moves(state) if each != after]
                after = chance.choice(others) if others and chance.random() < 0.5 else f"{state[1:]}{state[0]}"
            known[step.id] = after
            fields[step.id] = {"work": "", "value": after}
        return completion_of(request, json.dumps(fields))


# The run


@dataclass(frozen=True, slots=True)
class State:
    """How far a run has come."""

    task: str
    segment: int | None
    discs: int
    done: int = 0
    value: str = ""
    usage: Usage = field(default_factory=Usage)
    wrong: int = 0
    broken: int = 0
    again: int = 0
    seconds: float = 0.0

    @classmethod
    def load(cls, path: Path | None, begun: State) -> State:
        """The state that was written for the same run, or its beginning."""
        if path is None or not path.exists():
            return begun
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = cls(**{**data, "usage": Usage(**data["usage"])})
        same = (found.task, found.segment, found.discs) == (begun.task, begun.segment, begun.discs)
        if not same:
            raise SystemExit(f"{path} is of another run: {found.task}, segment {found.segment}")
        return found


@dataclass(slots=True)
class Truth:
    """Compares what is committed with what it must be, by other means than the checks."""

    task: str
    discs: int
    last: str
    wrong: int = 0
    broken: int = 0
    again: int = 0
    _read: list[int] = field(default_factory=list)

    def __call__(self, action: Action, event: Event) -> None:
        if not isinstance(action, Commit):
            return
        for record in action.records:
            index, value = int(record.occurrence.step[1:]), str(record.value)
            self.again += record.tries - 1
            if self.task == "sum":
                self.wrong += value != str(running(index))
            else:
                self.wrong += value != at_move(index, self.discs)
                self.broken += value != right_move(index, self.last)
            self.last = value


def run_part(state: State, steps: int, seed: int) -> State:
    """The next steps of a run."""
    begin, hanoi = state.done, state.task != "sum"
    value = state.value or ("A" * state.discs if hanoi else "0")

    def step_at(index: int) -> Step:
        if hanoi:
            return hanoi_step(begin + index + 1, state.task == "hanoi-rule")
        return sum_step(begin + index + 1)

    first = Input(f"s{begin}", "text" if hanoi else "number")
    procedure = Procedure.lazy(step_at, steps, look_back=1, inputs=[first], name=state.task)
    slips = replace(Slips.none(), wrong_value=ERROR, systematic=0.0)
    model = HanoiModel(seed) if hanoi else SimulatedModel(seed, slips=slips)
    truth = Truth(state.task, state.discs, value)
    guard = Guard(
        model, segment=Segments(state.segment), history=100, check_timeout=None, seed=seed + begin, observer=truth
    )
    begun = time.perf_counter()
    result = guard.run(procedure, {first.name: value})
    if result.problem is not None:
        raise SystemExit(f"{state.task}: {result.status} at {result.problem}")
    return replace(
        state,
        done=begin + steps,
        value=str(result.answer),
        usage=state.usage + result.usage,
        wrong=state.wrong + truth.wrong,
        broken=state.broken + truth.broken,
        again=state.again + truth.again,
        seconds=state.seconds + time.perf_counter() - begun,
    )


def run_all(begun: State, steps: int, *, seed: int = 0, part: int = PART, path: Path | None = None) -> State:
    """Carry a run to its end, from where it stopped."""
    state = State.load(path, begun)
    while state.done < steps:
        state = run_part(state, min(part, steps - state.done), seed)
        if path is not None:
            written = path.with_suffix(".new")
            written.write_text(json.dumps(asdict(state)), encoding="utf-8")
            written.replace(path)
    return state


def main() -> None:
    """Run the tasks and print what they took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--task", choices=TASKS, action="append", help="by default all of them")
    parser.add_argument("--segment", type=int, action="append", help="by default 1 and the length that is found (0)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, help="a folder that keeps how far each run has come")
    args = parser.parse_args()
    if args.state is not None:
        args.state.mkdir(parents=True, exist_ok=True)
    print("task          segment  steps      wrong  off the rule  calls a step  asked again  s     peak MiB")
    for task in args.task or TASKS:
        for segment in args.segment or [1, 0]:
            begun = State(task, segment or None, DISCS)
            path = None if args.state is None else args.state / f"{task}-{segment}.json"
            state = run_all(begun, args.steps, seed=args.seed, path=path)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(
                f"{task:<13} {segment or 'found':<8} {state.done:<10} {state.wrong:<6} "
                f"{'-' if task == 'sum' else state.broken:<13} {state.usage.calls / state.done:<13.4f} "
                f"{state.again:<12} {state.seconds:<5.0f} {peak}",
                flush=True,
            )


if __name__ == "__main__":
    main()
