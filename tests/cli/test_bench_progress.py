"""What a benchmark says while it runs, and the money it spends: time left, cost, and a limit that is not passed."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from tables import all_rows

from stepguard import Price, Usage
from stepguard.backends import Backend, Completion, Message, Request
from stepguard.cli import main
from stepguard.cli.bench.progress import BenchProgress, TimeLeft, span_of_time
from stepguard.cli.progress import make_display
from stepguard.engine.actions import Commit
from stepguard.errors import ConfigError
from stepguard.evaluation.arms import ArmOptions, TaskOutcome
from stepguard.evaluation.families import Arithmetic
from stepguard.evaluation.meter import Meter
from stepguard.evaluation.runner import Plan, run_plan
from stepguard.testing import SimulatedModel, Slips

pytestmark = pytest.mark.once

PLAN = Plan(family=Arithmetic(), cells={5: 2, 50: 2}, arms=("cot", "guard"), seed=0, options=ArmOptions())
PRICE = Price(input=1, output=2)
(DONE,) = asyncio.run(
    run_plan(
        replace(PLAN, cells={5: 1}, arms=("cot",)), SimulatedModel(slips=Slips.none()), configuration={}, concurrency=1
    )
)


def ended(arm: str, length: int, seconds: float, seed: int = 0) -> TaskOutcome:
    return replace(DONE, arm=arm, length=length, seconds=seconds, seed=seed)


# Time left


def test_nothing_is_known_before_a_run_has_ended() -> None:
    """Without any ended run there is no forecast; with all of them there is nothing left."""
    forecast = TimeLeft(PLAN.jobs(), concurrency=1)
    assert forecast.seconds is None
    for arm, length, seed in PLAN.jobs():
        forecast.ended(ended(arm, length, 1.0, seed))
    assert forecast.seconds == 0.0


def test_time_left_is_weighed_by_arm_and_length() -> None:
    """Runs of 5 steps tell what those of 50 steps of their arm will take; an arm without one takes what others do."""
    forecast = TimeLeft(PLAN.jobs(), concurrency=1)
    forecast.ended(ended("cot", 5, 1.0))
    # 0.2 seconds a step: one run of 5 steps and two of 50 of either arm, and one more of 5.
    assert forecast.seconds == pytest.approx(0.2 * (3 * 5 + 4 * 50))
    forecast.ended(ended("guard", 5, 4.0))
    assert forecast.seconds == pytest.approx((0.2 + 0.8) * (5 + 2 * 50))


def test_time_left_is_shared_by_those_who_work() -> None:
    """Four at a time are four times as fast, but no faster than the longest run."""
    forecast = TimeLeft(PLAN.jobs(), concurrency=4)
    for arm in ("cot", "guard"):
        forecast.ended(ended(arm, 5, 1.0))
    assert forecast.seconds == pytest.approx(0.2 * 2 * (5 + 2 * 50) / 4)
    for arm, length, seed in (("cot", 5, 1), ("guard", 5, 1), ("cot", 50, 0), ("cot", 50, 1), ("guard", 50, 0)):
        forecast.ended(ended(arm, length, length / 5, seed))
    assert forecast.seconds == pytest.approx(10.0)


@all_rows(
    "seconds, said",
    [(0.4, "0 s"), (99.4, "99 s"), (100, "2 min"), (5400, "90 min"), (6000, "1 h 40 min"), (400_000, "5 days")],
)
def test_a_span_of_time_is_said_as_exactly_as_it_is_known(seconds: float, said: str) -> None:
    """Seconds, minutes, hours or days, whatever fits."""
    assert span_of_time(seconds) == said


# What is shown


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *, meter: Meter | None = None) -> str:
    """What a benchmark of eight runs says, one of which had ended before; every six seconds one."""
    clock = [0.0]
    monkeypatch.setattr("stepguard.cli.bench.progress.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("CI", "")
    monkeypatch.setenv("TERM", "xterm")
    (first, *others) = PLAN.jobs()
    with BenchProgress(PLAN, "m", concurrency=1, meter=meter or Meter()) as progress:
        progress.taken_over([ended(first[0], first[1], 1.0, first[2])])
        for done, (arm, length, seed) in enumerate(others, 2):
            clock[0] += 6
            progress(done, 8, ended(arm, length, length / 5, seed))
    return stream.getvalue()


def test_plain_lines_tell_runs_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no terminal a few whole lines say how many runs are done and how long the others will take."""
    lines = shown(monkeypatch, io.StringIO()).splitlines()
    assert lines[0] == "arithmetic on m: 8 runs"
    assert "arithmetic on m: 3 of 8 runs, 12 s, about 41 s left" in lines
    assert lines[-1] == "arithmetic on m: 8 of 8 runs, 42 s"
    assert len(lines) == 9


def test_a_long_silence_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no run ends for a while, lines go on to say what is verified and how many calls were made."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    facts = ["120 steps verified", "31 calls"]
    display = make_display("long", 1, "run", facts=lambda: facts, silence=0.01)
    display.open()
    while stream.getvalue().count("\n") < 3:
        pass
    display.close()
    assert stream.getvalue().splitlines()[2] == "long: 0 of 1 run, 120 steps verified, 31 calls"


def test_accepted_steps_are_counted_while_a_run_goes_on() -> None:
    """A guarded run of many steps is seen to go on, long before it ends."""
    steps: list[int] = []
    options = ArmOptions(
        observer=lambda action, event: steps.append(len(action.records)) if isinstance(action, Commit) else None
    )
    plan = replace(PLAN, cells={50: 1}, arms=("guard",), options=options)
    asyncio.run(run_plan(plan, SimulatedModel(slips=Slips.none()), configuration={}, concurrency=1))
    assert len(steps) > 3
    assert sum(steps) == 50


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal one line is drawn again and again."""
    text = shown(monkeypatch, Terminal())
    assert "\x1b[" in text
    assert "8/8" in text
    assert "8 of 8 runs" not in text


def test_money_is_shown_where_there_is_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a price the lines say what is spent, and of how much where there is a limit."""
    assert "0.0000 spent" in shown(monkeypatch, io.StringIO(), meter=Meter(PRICE))
    assert "0.0000 of 0.5 spent" in shown(monkeypatch, io.StringIO(), meter=Meter(PRICE, limit="0.5"))


def test_an_interruption_says_how_far_it_had_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with the number of runs that are kept."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    def interrupted() -> None:
        with BenchProgress(PLAN, "m", concurrency=1, meter=Meter()) as progress:
            progress(3, 8, DONE)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="interrupted after 3 of 8 runs"):
        interrupted()


# Money


class Paid:
    """A model that is right, counts its calls, and costs 100 tokens in and 50 out for each."""

    name = "paid"
    signature = {"model": "paid"}  # noqa: RUF012

    def __init__(self) -> None:
        self.calls = self.most = self.now = 0
        self._right = SimulatedModel(slips=Slips.none())

    async def acomplete(self, request: Request) -> Completion:
        self.calls += 1
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return replace(self._right.complete(request), usage=Usage(calls=1, input_tokens=100, output_tokens=50))


CALL = PRICE.of(Usage(calls=1, input_tokens=100, output_tokens=50))


@all_rows("concurrency", [1, 8])
@all_rows("limit", ["0", "0.004", "0.006", "0.01"])
def test_a_limit_on_the_cost_is_never_passed(limit: str, concurrency: int) -> None:
    """However many run at once, the plan ends before the limit, and keeps the runs that ended."""
    model, meter = Paid(), Meter(PRICE, limit=limit)
    plan = replace(PLAN, cells={5: 60})
    outcomes = asyncio.run(run_plan(plan, meter.over(model), configuration={}, concurrency=concurrency))
    assert meter.stopped
    assert meter.spent == model.calls * CALL <= Decimal(limit)
    assert len(outcomes) < plan.total
    assert all(each.error is None and each.right for each in outcomes)
    # What is left would not have paid for a call at its worst: 2,000 bytes and 500 tokens.
    assert Decimal(limit) - meter.spent < Decimal("0.004")


def test_calls_wait_for_what_others_do_not_use() -> None:
    """Where the money is enough for one call at its worst, calls come one after another instead of not at all."""
    model, meter = Paid(), Meter(PRICE, limit="0.0065")
    request = Request((Message("user", "x" * 3000),), max_tokens=1000)

    async def ten() -> None:
        await asyncio.gather(*(meter.complete(model, request) for _ in range(5)))

    asyncio.run(ten())
    assert (model.calls, model.most, meter.stopped) == (5, 1, False)


def test_without_a_limit_a_meter_only_counts() -> None:
    """The outcomes are those of the model alone, and a reply that arms share is paid once."""
    plan = replace(PLAN, arms=("chunk", "guard"))
    model, meter = Paid(), Meter(PRICE)
    metered = asyncio.run(run_plan(plan, meter.over(model), configuration={}, concurrency=2))
    alone = asyncio.run(run_plan(plan, Paid(), configuration={}, concurrency=2))
    assert [replace(each, seconds=0) for each in metered] == [replace(each, seconds=0) for each in alone]
    assert meter.usage.calls == model.calls == sum(each.calls for each in alone) / 2


# The command


@pytest.fixture
def paid(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Paid]:
    """Make a model that costs money stand behind --model; each call of this gives a new one."""
    models: list[Paid] = []

    def choose(options: object) -> tuple[Backend, str]:
        return models[-1], "paid"

    monkeypatch.setattr("stepguard.cli.models.choose_backend", choose)

    def new() -> Paid:
        models.append(Paid())
        return models[-1]

    return new


COMMAND = ["bench", "--model", "paid", "--lengths", "5", "-n", "6", "--arms", "cot,guard"]


def test_the_bench_command_says_what_runs_cost(
    paid: Callable[[], Paid], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a price every row has its exact cost, and the price stands beside the results."""
    paid()
    assert main([*COMMAND, "--price", "1,2", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "12 of 12 runs" in printed.err
    assert "0.0024 spent" in printed.err
    assert "cost" in printed.out
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert results["meta"]["price"] == {"input": "1", "output": "2"}
    assert [Decimal(row["cost"]) for row in results["rows"]] == [6 * CALL, 6 * CALL]


def test_the_bench_command_stops_before_it_costs_too_much(
    paid: Callable[[], Paid], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stopped by --max-cost it ends with exit code 4 and says how to go on; with --resume it pays for nothing twice."""
    first = paid()
    limited = [*COMMAND, "--price", "1,2", "--out", str(tmp_path)]
    assert main([*limited, "--max-cost", "0.0035"]) == 4
    printed = capsys.readouterr()
    assert "stopped before --max-cost 0.0035 was passed" in printed.err
    assert "--resume" in printed.err
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert "of 12 runs done" in results["meta"]["stopped"]
    assert 0 < first.calls < 12
    second = paid()
    assert main([*limited, "--resume"]) == 0
    assert first.calls + second.calls == 12
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert "stopped" not in results["meta"]
    assert [row["n"] for row in results["rows"]] == [6, 6]


def test_the_bench_command_tells_of_damaged_outcomes(
    paid: Callable[[], Paid], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What stood in a damaged line is run again from its reply, which is not paid for twice, and stderr says so."""
    first = paid()
    assert main([*COMMAND, "--out", str(tmp_path)]) == 0
    assert first.calls == 12
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    path = tmp_path / "outcomes.jsonl"
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:3], b"\xff" * 40, *lines[4:], b""]))
    capsys.readouterr()
    again = paid()
    assert main([*COMMAND, "--out", str(tmp_path), "--resume"]) == 0
    assert again.calls == 0
    assert "1 line is damaged among the outcomes" in capsys.readouterr().err
    rows = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["rows"]
    assert [(row["arm"], row["n"]) for row in rows] == [(row["arm"], row["n"]) for row in results["rows"]]


def test_a_limit_is_money() -> None:
    """A limit on the cost that is no amount is refused, by name."""
    with pytest.raises(ConfigError) as caught:
        Meter(PRICE, limit="-1")
    assert caught.value.option == "max_cost"
