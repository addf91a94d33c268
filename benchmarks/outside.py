"""Material that nobody here wrote: generated problems with their answers and states, and transcripts of models.

    python benchmarks/outside.py [--data DIR] [--size 200] [--seed 0] [--json OUT]

- nine generators of the reasoning-gym package, three with intermediate states, go through a guard: their answers must
  come out, their states must be accepted, and nothing that was made wrong (`outside_generators.py`);
- with ``--data``, every ``<<expression=value>>`` of school-maths solutions, every link of chains of arithmetic and
  every state of object tracking is judged by the package and independently; disagreements get a reason
  (`outside_links.py`; what the folder holds, `audit_real.py` says).

What is not there is skipped, and named. Exits with 1 where a disagreement is not explained or something wrong was
accepted. Of the material nothing is written down but ids, positions and counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from audit_real import ARITHMETIC, SCHOOL, TRACKING
from outside_generators import GENERATORS, generated
from outside_links import chains, notes, tracking

PARTS: Mapping[str, tuple[str, Callable[[Path], dict[str, Any]]]] = {
    "annotations": (SCHOOL, notes),
    "chains": (ARITHMETIC, chains),
    "tracking": (TRACKING, tracking),
}

SHOWN = 40


def outside(data: Path | None, size: int, seed: int) -> dict[str, Any]:
    """All figures, what was skipped, and what is wrong with them."""
    skipped: list[str] = []
    found: dict[str, Any] = {
        "meta": {
            "command": f"python benchmarks/outside.py --size {size} --seed {seed}{' --data DIR' if data else ''}",
            "seed": seed,
            "size": size,
            "python": sys.version.split()[0],
        }
    }
    try:
        found["generators"] = {name: generated(name, size, seed) for name in GENERATORS}
        found["meta"]["reasoning_gym"] = version("reasoning_gym")
    except ImportError:
        skipped.append("generators: reasoning-gym is not installed (pip install reasoning-gym)")
        found["generators"] = {}
    for name, (file, judge) in PARTS.items():
        if data is None or not (data / file).is_file():
            skipped.append(f"{name}: no {file} in {'the folder' if data else 'no folder, see --data'}")
        else:
            found[name] = judge(data)
    return {**found, "skipped": skipped, "broken": _broken(found)}


def _broken(found: Mapping[str, Any]) -> list[str]:
    said: list[str] = []
    for name, each in found["generators"].items():
        said += [f"{name}: {line}" for line in each["disagreements"]]
        if each.get("wrong_steps_accepted"):
            said.append(f"{name}: {each['wrong_steps_accepted']} wrong steps were accepted")
        if each["right_steps_accepted"] != each["right_steps"]:
            said.append(f"{name}: {each['right_steps'] - each['right_steps_accepted']} right steps were refused")
    for name in PARTS:
        part = found.get(name, {})
        for each in (part, part.get("as_steps", {})):
            said += [f"{name}: {line}" for line in each.get("disagreements_unexplained", ())]
    return said


def main() -> int:
    """Judge, print, write down."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="a folder with transcripts")
    parser.add_argument("--size", type=int, default=200, help="problems of every generator")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="a file for all figures")
    args = parser.parse_args()
    found = outside(args.data, args.size, args.seed)
    _print(found)
    if args.json is not None:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(found, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return 1 if found["broken"] else 0


def _print(found: Mapping[str, Any]) -> None:
    print(f"{'generator':26} problems  right steps  refused  wrong steps  accepted")
    for name, each in found["generators"].items():
        right, passed = each["right_steps"], each["right_steps_accepted"]
        print(
            f"  {name:24} {each['problems']:8} {right:12} {right - passed:8} {each['wrong_steps']:12} "
            f"{each['wrong_steps_accepted']:9}"
        )
    for name, each in found["generators"].items():
        for key, count in each.items():
            if key.startswith("answers_"):
                print(f"  {name}: {count} {key.replace('_', ' ')}")
    for name in PARTS:
        part = found.get(name)
        if part is None:
            continue
        print(f"\n{name}")
        for key, value in part.items():
            if key in ("false_links", "false_states"):
                print(f"  {key}: {sum(map(len, value.values()))} in {len(value)} texts")
                print("    " + "; ".join(f"{where}: {places}" for where, places in value.items()))
            elif isinstance(value, dict):
                print(f"  {key}:")
                for inner, count in value.items():
                    print(f"    {inner}: {count}")
            else:
                print(f"  {key}: {value}")
    print()
    for line in found["skipped"]:
        print(f"skipped: {line}")
    for line in found["broken"][:SHOWN]:
        print(f"BROKEN: {line}")
    if len(found["broken"]) > SHOWN:
        print(f"BROKEN: and {len(found['broken']) - SHOWN} more")


if __name__ == "__main__":
    sys.exit(main())
