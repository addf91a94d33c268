"""``stepguard bench``: arguments, progress, table and files."""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepguard.cli.bench import COUNT, LENGTHS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stepguard.backends.base import Backend
    from stepguard.evaluation.arms import TaskOutcome
    from stepguard.evaluation.runner import Plan, TaskBackend
    from stepguard.testing import ModelSlips

_WIDE = 132
"""Columns that a table with all of its figures takes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    from stepguard.cli.arguments import add_limits

    add("--model", help="the model to measure: provider/model, or as --base-url names it (default: simulated)")
    add("--base-url", help="an OpenAI-compatible endpoint, such as http://127.0.0.1:8080/v1")
    add("--gguf", type=Path, help="a local GGUF file (needs the extra 'local')")
    add("--replay", type=Path, metavar="FILE", help="answer from the replies of an earlier run, without a model")
    add(
        "--profile",
        metavar="NAME",
        help="how the simulated model slips: as qwen2.5-coder-1.5b was recorded to (the default), or study: the "
        "averages of a published study",
    )
    add("--task", help="task family, with knobs as in arithmetic(look_back=7) (default: arithmetic)")
    add(
        "--data",
        type=Path,
        metavar="DIR",
        help="the folder with the items of a published benchmark, which --task names (planbench, bbh, procbench, "
        "receipts)",
    )
    add("--lengths", help=f"numbers of steps (default: {LENGTHS})")
    add(
        "-n",
        help=f"programs for each length, one number or one a length (default: {COUNT}); with --cases the first so "
        "many of them (default: all), with --data so many, drawn by --seed (default: all)",
    )
    add("--procedure", metavar="FILE", help="measure on a procedure of your own, with --cases")
    add(
        "--cases",
        type=Path,
        metavar="FILE",
        help='its cases as JSON lines, {"inputs": {...}, "expected": ...} each, or as .json or .csv',
    )
    add("--arms", default="cot,chunk,guard", help="what to compare (default: cot,chunk,guard)")
    add("--segment", type=int, default=10, help="steps a call in chunk and guard (default: 10)")
    add(
        "--prompts",
        choices=("full", "brief"),
        default="brief",
        help="how chunk and guard ask sums and products of whole numbers: brief, or in full (default: brief)",
    )
    add("--retries", type=int, help="so many plain retries a step in guard, in place of its ladder")
    add(
        "--learned",
        type=Path,
        metavar="FILE",
        help="a profile that 'stepguard run --learned' wrote: guard begins with it, and what it foretells is printed",
    )
    add("--timeout", type=float, default=1800.0, help="seconds for one request (default: 1800)")
    add(
        "--seed",
        type=int,
        default=0,
        help="seed of the first program, or with --cases of the simulated model (default: 0)",
    )
    add_limits(parser)
    add("--concurrency", type=int, help="programs at the same time (default: 8, with --gguf 1)")
    add(
        "--out",
        type=Path,
        help="folder for results.json, report.html, accuracy.svg, outcomes.jsonl and replies.sqlite (default: "
        "stepguard-bench, which must be new or hold a simulated run; with --json or --replay nothing is written by "
        "default)",
    )
    add("--resume", action="store_true", help="go on with what is in --out")
    add("--price", metavar="IN,OUT", help="what a million input and a million output tokens cost")
    add(
        "--max-cost",
        metavar="AMOUNT",
        help="stop before this much money is spent, now and without what an earlier run paid; needs --price",
    )
    add("--json", action="store_true", help="print results.json instead of a table")


def main(args: argparse.Namespace) -> int:
    """Run the benchmark, print its table, and return the exit code: 4 where --max-cost stopped it, 5 for errors."""
    from stepguard.cli.arguments import read_price
    from stepguard.cli.bench.folder import check_default_folder, check_folder, clear_folder
    from stepguard.cli.bench.plan import describe_configuration, describe_tasks, make_plan, version_of
    from stepguard.cli.bench.progress import BenchProgress
    from stepguard.cli.run import EXIT_CODES
    from stepguard.errors import ConfigError
    from stepguard.evaluation.meter import Meter
    from stepguard.evaluation.report.html_report import write_reports
    from stepguard.evaluation.report.results_file import make_forecasts, make_results
    from stepguard.evaluation.runner import SimulatedTasks, run_plan

    plan = make_plan(args)
    own = describe_tasks(args, plan)
    if "warning" in own:
        print(own["warning"], file=sys.stderr)
    price = read_price(args.price, args.max_cost)
    if args.max_cost is not None and args.replay is not None:
        raise ConfigError("--replay pays for nothing: leave out --max-cost", option="max_cost")
    new = args.out is None and not args.json and args.replay is None
    if new:
        args.out = check_default_folder()
    if args.out is not None:
        check_folder(args.out)
    simulated = args.model is None and args.base_url is None and args.gguf is None and args.replay is None
    if simulated:
        _check_answers(plan)
    if simulated and "program" in plan.arms:
        raise ConfigError("the arm 'program' needs a model: the simulated one writes no programs", option="arms")
    if simulated and "authors" in plan.arms:
        raise ConfigError("the arm 'authors' needs a model: the simulated one reads no prompts", option="arms")
    concurrency = args.concurrency if args.concurrency is not None else 1 if args.gguf is not None else 8
    backend, model = _backend(args)
    configuration = describe_configuration(args, plan, model)
    profile, slips = _profile(args.profile, simulated=simulated)
    if simulated:
        configuration["profile"] = profile
    asked: Backend | TaskBackend = SimulatedTasks(seed=args.seed, slips=slips) if simulated else backend
    meter = Meter(None if args.replay is not None else price, limit=args.max_cost)
    if args.replay is None:  # a replay pays for nothing
        asked = meter.over(asked)
    if new:
        clear_folder(args.out)
    with ExitStack() as stack:
        stack.enter_context(_telling_how_to_go_on(args.out))
        if callable(close := getattr(backend, "close", None)):
            stack.callback(close)
        progress = stack.enter_context(BenchProgress(plan, model, concurrency=concurrency, meter=meter))
        plan = replace(plan, options=replace(plan.options, observer=progress.performed))
        outcomes = asyncio.run(
            run_plan(
                plan,
                asked,
                configuration=configuration,
                concurrency=concurrency,
                folder=args.out,
                resume=args.resume,
                progress=progress,
                taken_over=progress.taken_over,
                damaged=progress.damaged,
            )
        )
    _complain_of_missing_replies(outcomes, args.replay)
    _complain_of_errors(outcomes)
    meta: dict[str, Any] = {
        **configuration,
        **own,
        "simulated": simulated,
        "concurrency": concurrency,
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "versions": {name: version_of(name) for name in ("stepguard", "openai", "instructor", "pydantic")},
        "date": time.strftime("%Y-%m-%d"),
    }
    if price is not None:
        given = {each.name: getattr(price, each.name) for each in fields(price)}
        meta["price"] = {name: str(amount) for name, amount in given.items() if amount is not None}
    stopped = None
    if meter.stopped:
        stopped = meta["stopped"] = (
            f"stopped before --max-cost {args.max_cost} was passed: {meter.spent:f} spent, "
            f"{len(outcomes)} of {plan.total} runs done"
        )
    results = make_results(outcomes, meta, price=price, fixed=bool(plan.items))
    if args.learned is not None:
        results["forecast"] = make_forecasts(plan, outcomes)
    text = json.dumps(results, indent=1, allow_nan=False)
    if args.out is not None:
        (args.out / "results.json").write_text(text + "\n", encoding="utf-8")
        write_reports(args.out, outcomes, meta, family=plan.family if own else None)
    if args.json:
        print(text)
    else:
        _print(results, simulated=simulated, out=args.out)
    if stopped is not None:
        may = ", and may spend as much again" if args.out is not None else ""
        print(f"{stopped}; {_how_to_go_on(args.out)}{may}", file=sys.stderr, flush=True)
        return EXIT_CODES["exhausted"]
    return EXIT_CODES["failed"] if any(outcome.error is not None for outcome in outcomes) else 0


def _how_to_go_on(folder: Path | None) -> str:
    """How a run that was not ended goes on."""
    if folder is None:
        return "pass --out to keep such a run, and go on with it"
    return f"what is done is kept: the same command with --out {folder} --resume goes on"


@contextmanager
def _telling_how_to_go_on(folder: Path | None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(f"{str(stop) or 'interrupted'}; {_how_to_go_on(folder)}") from stop


def _backend(args: argparse.Namespace) -> tuple[Backend, str]:
    """The model, or the replies of one, and what to call it."""
    from stepguard.backends.recorded import RecordedBackend
    from stepguard.cli.models import choose_backend
    from stepguard.errors import ConfigError

    if args.replay is None:
        backend, name = choose_backend(args)
        return backend, args.model or name.partition(" at ")[0]
    if args.model is not None or args.base_url is not None or args.gguf is not None:
        raise ConfigError("--replay asks no model: leave out --model, --base-url and --gguf", option="replay")
    replay = RecordedBackend(args.replay)
    return replay, replay.name


def _check_answers(plan: Plan) -> None:
    """Refuse steps in words that a simulated model would have to make up."""
    from stepguard.errors import ConfigError

    length, seed = plan.items[0] if plan.items else (next(iter(plan.cells)), plan.seed)
    task = plan.family.make(seed, length)
    unknown = [step.id for step in task.procedure.steps if step.expression is None and step.id not in task.solvers]
    if unknown:
        raise ConfigError(
            f"step {unknown[0]} is described in words, which the simulated model cannot carry out: name a model with "
            f'--model, --base-url or --gguf, or give its right value in every case ("steps": {{"{unknown[0]}": ...}})',
            option="model",
        )


def _complain_of_errors(outcomes: Sequence[TaskOutcome]) -> None:
    """Name what kept runs from being made, where any was."""
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if failed:
        print(
            f"{len(failed)} of {len(outcomes)} runs ended in an error and count as wrong; the first is "
            f"{failed[0].arm} at {failed[0].length} steps, seed {failed[0].seed}: {failed[0].error}",
            file=sys.stderr,
            flush=True,
        )


def _profile(name: str | None, *, simulated: bool) -> tuple[str, ModelSlips]:
    """The slips of the simulated model, and what they are called."""
    from stepguard.errors import ConfigError
    from stepguard.testing.profiles import PROFILES

    if name is not None and not simulated:
        raise ConfigError("--profile is for the simulated model: leave it out where a model is named", option="profile")
    chosen = name or next(iter(PROFILES))
    if chosen not in PROFILES:
        raise ConfigError(f"--profile is one of {', '.join(PROFILES)}, not {chosen!r}", option="profile")
    return chosen, PROFILES[chosen]


def _complain_of_missing_replies(outcomes: Sequence[TaskOutcome], replay: Path | None) -> None:
    from stepguard.errors import ReplyMissing

    missing = [outcome for outcome in outcomes if outcome.error is not None and ReplyMissing.__name__ in outcome.error]
    if missing:
        first = missing[0]
        raise ReplyMissing(
            f"{len(missing)} of {len(outcomes)} runs have no reply in {replay}; the first is {first.arm} at "
            f"{first.length} steps, seed {first.seed}: {first.error}. The tasks, arms, options or prompts of that run "
            "were others."
        )


def _print(results: dict[str, Any], *, simulated: bool, out: Path | None) -> None:
    from rich import box
    from rich.table import Table

    from stepguard.cli.console import ResultConsole
    from stepguard.cli.models import SIMULATED
    from stepguard.evaluation.report.results_file import assistance_texts, forecast_text, make_table

    console = ResultConsole()
    if not console.is_terminal:
        console.width = max(console.width, _WIDE)
    compared = results.get("whole", results)  # of items of many lengths, all together
    head, *rows = make_table(compared, narrow=console.width < _WIDE)
    table = Table(
        title=f"{results['meta']['task']} on {results['meta']['model']}",
        caption="95 % Wilson intervals",
        box=box.SIMPLE,
        padding=(0, 1, 0, 0),
    )
    for at, column in enumerate(head):
        table.add_column(column, justify="left" if at == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for pair in compared["paired"]:
        low, high = pair["interval"]
        recovered = "n/a" if pair["recovered"] is None else f"{pair['recovered']:.0%} of its errors recovered"
        console.print(
            f"guard - {pair['baseline']} at {pair['length']} steps: {pair['difference']:+.0%} "
            f"[{100 * low:+.0f}, {100 * high:+.0f}]{' (no width: all pairs are alike)' if pair['no_width'] else ''}, "
            f"{recovered}; rescued {pair['rescued']}, harmed {pair['harmed']}"
        )
    for line in assistance_texts(compared):
        console.print(line)
    for row in results.get("forecast", ()):
        console.print(forecast_text(row))
    for probe in results["probes"]["self_conditioning"]:
        if probe["slope"] is not None:
            low, high = probe["slope_interval"]
            console.print(
                f"self-conditioning at {probe['length']} steps {'with' if probe['guarded'] else 'without'} the guard: "
                f"{probe['slope']:+.2f} [{low:+.2f}, {high:+.2f}] of step accuracy for each unit of error share"
            )
    for fact in ("truth", "warning", "published"):
        if fact in results["meta"]:
            console.print({"truth": "right values: ", "published": "published: "}.get(fact, "") + results["meta"][fact])
    if simulated:
        console.print(f"{SIMULATED} It slips as the profile {results['meta']['profile']} says.")
    if out is not None:
        console.print(f"written: {out / 'results.json'}, {out / 'report.html'}")
