"""Certification: wrong steps that must be refused, right steps that must pass, foreign text that must do no harm.

    python benchmarks/certify.py [--seed 0] [--each 150] [--fuzz 1000000] [--only PART] [--json OUT]

Prints what was counted and exits with 1 where a promise is broken:

- no wrong step is accepted: wrong steps of every kind are planted in right traces, and the whole reply goes through a
  guard as text. What is wrong is decided by arithmetic of the benchmark's own (`certification/truth.py`);
- of right steps, written in the many ways in which models write them, at most 0.1 % are refused;
- the same of the claims of every other check (`certification/families.py`): dates, units, documents, formulas ...;
  wrong and right ones about the same problem, and what neither passes nor fails is counted as undecided;
- no words that change whether, when or how often a formula of a procedure applies are taken for its description, and
  no plain description is refused;
- of fuzzed text, nothing but values and errors of the package comes out, no item takes over 50 ms, no value differs
  from an independent one, and what passes a check is true.

Kinds are registered in ``certification/``: of steps in `steps`, of wrong entries in `wrong_entries` and `statements`,
of wrong replies in `wrong_replies`, of ways of writing in `right_ways` and `right_replies`, of claims of other checks
in the modules ``check_*``, of words in procedures in `procedures`.

``--only PART`` makes one part of the figures; where the file of ``--json`` has the others, they are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from certification import kinds as _kinds
from certification.families import certify_checks
from certification.fuzzing import EXPRESSIONS, fuzz
from certification.procedures import certify_procedures
from certification.right_replies import RIGHT_REPLIES
from certification.right_ways import REFUSED_WAYS, RIGHT_WAYS
from certification.running import ladder_runs, refused_ways, right_steps, stand_ins, stubborn_runs, wrong_steps
from certification.tallies import Tally
from certification.traces import STEP_KINDS
from certification.wrong_entries import WRONG_ENTRIES
from certification.wrong_replies import WRONG_REPLIES

assert _kinds

REFUSED_AT_MOST = 0.001


PARTS = ("arithmetic", "checks", "procedures")


def certify(seed: int, each: int, expressions: int, limit_ms: float = 50, *, only: str | None = None) -> dict[str, Any]:
    """All figures of one certification, or those of one part, and the promises that they break."""
    found: dict[str, Any] = {
        "meta": {
            "command": f"python benchmarks/certify.py --seed {seed} --each {each} --fuzz {expressions}",
            "seed": seed,
            "each": each,
            "limit_ms": limit_ms,
            "stepguard": _version(),
            "python": sys.version.split()[0],
            "bounds": "upper_bound: exact one-sided 95 % bound of the share; about 3/n where nothing was counted",
        }
    }
    if only in (None, "arithmetic"):
        found |= _arithmetic(seed, each, expressions, limit_ms)
    if only in (None, "checks"):
        found["checks"] = certify_checks(seed, each)
    if only in (None, "procedures"):
        found["procedures"] = certify_procedures(seed, each)
    return {**found, "broken": broken(found)}


def _arithmetic(seed: int, each: int, expressions: int, limit_ms: float) -> dict[str, Any]:
    wrong: dict[str, dict[str, Any]] = {}
    steps = dict.fromkeys(STEP_KINDS, 0)
    for kind in (*WRONG_ENTRIES, *WRONG_REPLIES):
        tally, seen = wrong_steps(seed, each, kind)
        wrong[kind] = tally.to_dict()
        for name, count in seen.items():
            steps[name] += count
    right = {way: right_steps(seed, each, way).to_dict() for way in RIGHT_WAYS}
    refused = {way: refused_ways(seed, max(each // 4, 1), way).to_dict() for way in REFUSED_WAYS}
    ladder = ladder_runs(seed, each)
    fuzzed = (
        {target: found.to_dict() for target, found in fuzz(seed, expressions, limit_ms / 1000).items()}
        if expressions
        else {}
    )
    return {
        "wrong_steps": {"all": _sum(wrong), "kinds": wrong, "planted_by_kind_of_step": steps},
        "right_steps": {"all": _sum(right), "ways": right, "wrapped_in": list(RIGHT_REPLIES)},
        "refused_by_documentation": {"all": _sum(refused), "ways": refused},
        "ladder": ladder,
        "stubborn": stubborn_runs(seed, each // 15 + 1),
        "stand_ins": stand_ins(seed, each),
        "fuzzed": {
            "expressions": sum(fuzzed[target]["n"] for target in EXPRESSIONS if fuzzed),
            "items": sum(part["n"] for part in fuzzed.values()),
            "targets": fuzzed,
        },
    }


def _version() -> str:
    try:
        return version("stepguard")
    except PackageNotFoundError:  # run from a checkout
        return "not installed"


def _sum(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return Tally(sum(part["n"] for part in parts.values()), sum(part["bad"] for part in parts.values())).to_dict()


def broken(found: Mapping[str, Any]) -> list[str]:
    """The promises that these figures break."""
    return [
        *(_broken_arithmetic(found) if "wrong_steps" in found else ()),
        *(_broken_checks(found["checks"]) if "checks" in found else ()),
        *(_broken_procedures(found["procedures"]) if "procedures" in found else ()),
    ]


def _broken_arithmetic(found: Mapping[str, Any]) -> list[str]:
    said: list[str] = []
    wrong, right = found["wrong_steps"], found["right_steps"]
    if wrong["all"]["bad"]:
        said.append(f"{wrong['all']['bad']} wrong steps were accepted")
    if right["all"]["bad"] > REFUSED_AT_MOST * right["all"]["n"]:
        said.append(f"{right['all']['bad']} of {right['all']['n']} right steps were refused")
    if found["ladder"]["untrue_steps"]:
        said.append(f"{found['ladder']['untrue_steps']} untrue steps were committed up the ladder")
    if found["stubborn"]["untrue_steps"]:
        said.append(f"{found['stubborn']['untrue_steps']} untrue steps were committed from a stubborn model")
    if found["stand_ins"]["untrue"]:
        said.append(f"{found['stand_ins']['untrue']} steps were rewritten or split into what is something else")
    parts = {**wrong["kinds"], **right["ways"], **found["refused_by_documentation"]["ways"]}
    said += [f"nothing could be made of {name!r}" for name, part in parts.items() if not part["n"]]
    passing = [name for name, part in found["refused_by_documentation"]["ways"].items() if part["bad"]]
    said += [f"{name!r} passes, against its documentation" for name in passing]
    for target, part in found["fuzzed"]["targets"].items():
        for what in ("escapes", "disagreements", "too_slow"):
            if part[what]:
                said.append(f"{target}: {len(part[what])} {what.replace('_', ' ')}, such as {part[what][0]}")
    return said


def _broken_checks(found: Mapping[str, Any]) -> list[str]:
    said: list[str] = []
    wrong, right, refused = found["wrong"], found["right"], found["refused"]
    said += [f"{name}: {row['bad']} wrong claims were accepted" for name, row in wrong["checks"].items() if row["bad"]]
    if right["all"]["bad"] > REFUSED_AT_MOST * right["all"]["n"]:
        said.append(f"{right['all']['bad']} of {right['all']['n']} right claims were refused")
    for part in (wrong, right, refused):
        for name, kinds in part["kinds"].items():
            said += [f"{name}: nothing could be made of {kind!r}" for kind, row in kinds.items() if not row["n"]]
    for name, kinds in refused["kinds"].items():
        passing = [kind for kind, row in kinds.items() if row["bad"]]
        said += [f"{name}: {kind!r} passes, against its documentation" for kind in passing]
    return said


def _broken_procedures(found: Mapping[str, Any]) -> list[str]:
    said = [f"{kind}: {row['bad']} were taken for a description" for kind, row in found["wrong"].items() if row["bad"]]
    return said + [
        f"{kind}: {row['bad']} descriptions were refused" for kind, row in found["right"].items() if row["bad"]
    ]


def main() -> int:
    """Certify, print, write down."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=150, help="steps of every kind of wrong and of right ones")
    parser.add_argument("--fuzz", type=int, default=1_000_000, help="fuzzed expressions")
    parser.add_argument("--limit-ms", type=float, default=50, help="what a fuzzed item may take of processor time")
    parser.add_argument("--only", choices=PARTS, help="one part of the figures")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    args = parser.parse_args()
    started = time.process_time()
    found = certify(args.seed, args.each, args.fuzz, args.limit_ms, only=args.only)
    _print(found, time.process_time() - started)
    if args.json is not None:
        if args.only and args.json.exists():
            found = {**json.loads(args.json.read_text(encoding="utf-8")), **found}
            found["broken"] = broken(found)
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return 1 if found["broken"] else 0


def _print(found: Mapping[str, Any], seconds: float) -> None:
    print(f"{found['meta']['command']}  ({seconds:.0f} s of processor time)\n")
    if "wrong_steps" in found:
        _print_arithmetic(found)
    if "checks" in found:
        _print_checks(found["checks"])
    if "procedures" in found:
        _print_procedures(found["procedures"])
    for line in found["broken"]:
        print(f"BROKEN: {line}")


def _print_checks(found: Mapping[str, Any]) -> None:
    titles = (("wrong", "accepted"), ("right", "refused"), ("refused", "accepted"))
    for part, bad in titles:
        print(f"\n{'claims, by check: ' + part:78} {'n':>6} {bad:>9} {'undecided':>9}")
        for name, kinds in found[part]["kinds"].items():
            for kind, row in kinds.items():
                print(f"  {name + ': ' + kind:76} {row['n']:6} {row['bad']:9} {row.get('undecided', 0):9}")
                for example in row.get("examples", ())[:3]:
                    print(f"      {example}")
    print()
    for part, bad in titles:
        row = found[part]["all"]
        bound = f"(95 %: below {row['upper_bound']:.4%})"
        print(f"{part} claims: {row['bad']} of {row['n']} {bad} {bound}, {row['undecided']} undecided")
    for name, reason in found["skipped"].items():
        print(f"skipped: {name}: {reason}")


def _print_procedures(found: Mapping[str, Any]) -> None:
    for part, title, bad in (("wrong", "words that change a step", "accepted"), ("right", "descriptions", "refused")):
        for kind, row in found[part].items():
            print(f"  {kind:76} {row['n']:6} {row['bad']:9}")
            for example in row.get("examples", ())[:3]:
                print(f"      {example}")
        whole = _sum(found[part])
        print(f"{title}: {whole['bad']} of {whole['n']} {bad} (95 %: below {whole['upper_bound']:.4%})")


def _print_arithmetic(found: Mapping[str, Any]) -> None:
    titles = (
        ("wrong_steps", "kinds", "wrong steps", "accepted"),
        ("right_steps", "ways", "right steps, by way of writing", "refused"),
        ("refused_by_documentation", "ways", "ways that are refused", "accepted"),
    )
    for part, inside, title, bad in titles:
        print(f"{title:78} {'n':>6} {bad:>9}")
        for name, row in found[part][inside].items():
            print(f"  {name:76} {row['n']:6} {row['bad']:9}")
            for example in row.get("examples", ())[:3]:
                print(f"      {example}")
    print("\nfuzzed         n  escapes  disagreements  too slow    slowest")
    for target, row in found["fuzzed"]["targets"].items():
        counts = [len(row[name]) for name in ("escapes", "disagreements", "too_slow")]
        print(f"  {target:8} {row['n']:7} {counts[0]:7} {counts[1]:14} {counts[2]:11} {row['slowest_ms']:8.1f} ms")
    wrong, right = found["wrong_steps"]["all"], found["right_steps"]["all"]
    ladder = found["ladder"]
    print(
        f"\nwrong steps: {wrong['bad']} of {wrong['n']} accepted (95 %: below {wrong['upper_bound']:.4%})\n"
        f"right steps: {right['bad']} of {right['n']} refused (95 %: below {right['upper_bound']:.4%})\n"
        f"up the ladder: {ladder['untrue_steps']} of {ladder['steps_committed']} committed steps untrue, "
        f"{ladder['replies_with_deviations']} of {ladder['attempts']} replies deviated\n"
        f"wrong replies said again on every rung: {found['stubborn']['untrue_steps']} untrue steps in "
        f"{found['stubborn']['runs']} runs\n"
        f"rewritten or split: {found['stand_ins']['untrue']} of {found['stand_ins']['stand_ins']} stand-ins untrue\n"
        f"fuzzed expressions: {found['fuzzed']['expressions']}"
    )


if __name__ == "__main__":
    sys.exit(main())
