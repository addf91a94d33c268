"""What ``stepguard bench`` is to run, from its arguments."""

from __future__ import annotations

import argparse
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from stepguard.backends.retry import RetryPolicy
from stepguard.cli.arguments import load_file
from stepguard.cli.bench import COUNT, LENGTHS
from stepguard.core.arguments import check_count
from stepguard.core.profile import Profile
from stepguard.errors import ConfigError
from stepguard.evaluation.arms import ArmOptions, arm_named
from stepguard.evaluation.cases.cases import CaseFamily, load_cases
from stepguard.evaluation.families import Family, Task, family_named
from stepguard.evaluation.knobs import split_names
from stepguard.evaluation.published import PUBLISHED, FixedFamily, is_published, published_named
from stepguard.evaluation.runner import Plan, hash_prompts
from stepguard.repair.ladder import Ladder
from stepguard.repair.rungs import FIRST, Resample

_MOST: Final = 1_000_000
"""Steps of a program, and programs of a length: all of them are made before the first is run."""


def make_plan(args: argparse.Namespace) -> Plan:
    """The plan that the arguments mean. Raises ConfigError: they do not go together, or name what does not exist."""
    family: Family
    items: list[tuple[int, int]] = []
    if args.data is not None or is_published(args.task or ""):
        family, items = _published(args)
        cells = dict(sorted(Counter(length for length, _ in items).items()))
    elif args.procedure is None and args.cases is None:
        family, cells = family_named(args.task if args.task is not None else "arithmetic"), _cells(args)
    else:
        family, cells = _cases(args)
    arms = [arm_named(name).name for name in split_names(args.arms)]
    if not arms or len(set(arms)) != len(arms):
        raise ConfigError(f"--arms takes names of arms, each once, not {args.arms!r}", option="arms")
    check_count(args.concurrency, "concurrency", name="--concurrency", optional=True)
    if args.resume and args.out is None:
        raise ConfigError("--resume goes with --out, the folder to go on in", option="resume")
    repair = Ladder() if args.retries is None else args.retries
    if args.learned is not None and not args.learned.exists():
        raise ConfigError(f"there is no profile {args.learned}: stepguard run --learned writes one", option="learned")
    learned = None if args.learned is None else Profile.load(args.learned)
    if learned is not None and not learned.tells:
        raise ConfigError(f"the profile {args.learned} has seen no calls: it foretells nothing", option="learned")
    options = ArmOptions(
        segment=args.segment,
        repair=repair,
        prompts=args.prompts,
        profile=learned,
        retry=RetryPolicy(timeout=args.timeout),
    )
    # Cases are numbered from 0 on; --seed is the simulated model's alone then.
    seed = args.seed if args.cases is None else 0
    return Plan(family=family, cells=cells, arms=arms, seed=seed, options=options, items=items)


def _cells(args: argparse.Namespace) -> dict[int, int]:
    """How many programs of which lengths."""
    lengths = _numbers(args.lengths if args.lengths is not None else LENGTHS, "lengths")
    counts = _numbers(args.n if args.n is not None else COUNT, "n")
    if len(counts) == 1:
        counts *= len(lengths)
    if len(counts) != len(lengths):
        raise ConfigError(
            f"-n has {len(counts)} numbers for {len(lengths)} lengths: give one, or one a length", option="n"
        )
    return dict(zip(lengths, counts, strict=True))


def _published(args: argparse.Namespace) -> tuple[FixedFamily, list[tuple[int, int]]]:
    """The items of a published benchmark, and which of them are run."""
    for option in ("procedure", "cases", "lengths"):
        if getattr(args, option) is not None:
            raise ConfigError(
                f"--{option} does not go with --data, whose items are fixed, procedures and lengths included: leave "
                "one out",
                option=option,
            )
    if args.task is None:
        raise ConfigError(
            f"--data holds the items of a published benchmark: name it with --task {', '.join(PUBLISHED)}",
            option="task",
        )
    family = published_named(args.task, args.data)
    count = None
    if args.n is not None:
        counts = _numbers(args.n, "n")
        if len(counts) != 1 or counts[0] > len(family.lengths):
            raise ConfigError(
                f"-n takes how many of the {len(family.lengths)} items of {family.name} to draw, not {args.n}",
                option="n",
            )
        count = counts[0]
    return family, family.sample(count, args.seed)


def _cases(args: argparse.Namespace) -> tuple[Family, dict[int, int]]:
    """The user's own cases, and how many of them."""
    for option in ("procedure", "cases"):
        if getattr(args, option) is None:
            raise ConfigError(
                f"--{option} is missing: --procedure FILE goes with --cases FILE, its inputs and expected answers",
                option=option,
            )
    for option in ("task", "lengths"):
        if getattr(args, option) is not None:
            raise ConfigError(
                f"--{option} says what to make up, but --procedure brings its own: leave one out", option=option
            )
    procedure = load_file(args.procedure)
    family = load_cases(procedure, args.cases)
    count = len(family.cases)
    if args.n is not None:
        counts = _numbers(args.n, "n")
        if len(counts) != 1 or counts[0] > count:
            raise ConfigError(
                f"-n takes how many of the {count} cases in {args.cases} to run, not {args.n}", option="n"
            )
        count = counts[0]
    return family, {family.length: count}


def describe_tasks(args: argparse.Namespace, plan: Plan) -> dict[str, Any]:
    """What a report says of the user's own cases, or of the items of others; nothing where tasks are made up."""
    if isinstance(plan.family, FixedFamily):
        return plan.family.describe()
    if not isinstance(plan.family, CaseFamily):
        return {}
    about = plan.family.describe(sum(plan.cells.values()))
    return {"procedure": Path(args.procedure).name, "cases": args.cases.name, **about}


def _numbers(text: str, option: str) -> list[int]:
    try:
        numbers = [int(piece) for piece in text.split(",")]
    except ValueError:
        numbers = []
    dashes = "-" if len(option) == 1 else "--"
    if option == "lengths" and len(set(numbers)) != len(numbers):
        raise ConfigError(f"--lengths {text}: a length stands twice; keep one, and set -n for more runs", option=option)
    if not numbers or min(numbers) < 1:
        raise ConfigError(
            f"{dashes}{option} takes whole numbers above 0, separated by commas, not {text!r}", option=option
        )
    if max(numbers) > _MOST:
        raise ConfigError(f"{dashes}{option} takes numbers up to {_MOST:,}, not {max(numbers):,}", option=option)
    return numbers


def describe_configuration(args: argparse.Namespace, plan: Plan, model: str) -> dict[str, Any]:
    """Everything that shapes a reply, so that unlike outcomes are never mixed."""
    own = plan.family if isinstance(plan.family, CaseFamily) else None
    fixed = plan.family if isinstance(plan.family, FixedFamily) else None
    first = own.length if own is not None else None if fixed is None else fixed.lengths[0]
    sample = _sample(plan) if first is None else plan.family.make(0, first)
    return {
        "model": model,
        "task": plan.family.name,
        **({} if own is None else own.fingerprint()),
        **({} if fixed is None else {"items_hash": fixed.digest}),
        "seed": args.seed,
        "segment": args.segment,
        **({} if args.prompts == "full" else {"prompts": args.prompts}),
        "retries": args.retries,
        "ladder": [rung.name for rung in Ladder().rungs] if args.retries is None else None,
        "learned": None if plan.options.profile is None else plan.options.profile.to_dict(),
        "temperature": {"first": FIRST.temperature, "retry": Resample().temperature},
        "prompt_hash": hash_prompts(sample, plan.options),
        "stepguard": version_of("stepguard"),
    }


def _sample(plan: Plan) -> Task:
    """A task whose prompts are hashed: the same one whatever the lengths, wherever the family has one so short."""
    try:
        return plan.family.make(0, 2)
    except ConfigError:
        return plan.family.make(plan.seed, min(plan.cells))


def version_of(name: str) -> str:
    """The version of an installed package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
