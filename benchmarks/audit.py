"""How much of what goes wrong in transcripts the audit finds, and how often it is wrong itself; no model is needed.

    python benchmarks/audit.py [--each 240] [--seed 0] [--data DIR] [--out DIR]

Failures of every kind are planted in transcripts of twelve styles (`audit_planted.py`). Of each kind of finding the
table shows how many were to be found, how many were, and how many were no such thing, over all transcripts, with 95 %
Wilson intervals. With ``--data`` real transcripts are read as well (`audit_real.py`) and compared with labels.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from audit_planted import Expected, Planted, planted
from audit_real import real, recorded

from stepguard import audit
from stepguard.evaluation.statistics import wilson

LABELS = Path(__file__).parent / "results" / "audit" / "labels.json"


class Tally:
    """Findings against what was planted, by kind."""

    def __init__(self) -> None:
        self.planted: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.surplus: Counter[str] = Counter()
        self.transcripts: Counter[str] = Counter()
        self.clean: Counter[str] = Counter()
        self.verdicts: Counter[tuple[bool, str]] = Counter()
        self.confusions: Counter[str] = Counter()

    def add(self, case: Planted) -> None:
        """Audit one transcript and count."""
        found = audit(case.procedure, case.inputs, case.text)
        got: Expected = {(each.kind, each.step) for each in found.findings}
        missed = {wanted for wanted in case.expected if not any(_same(wanted, each) for each in got)}
        surplus = {each for each in got if not any(_same(wanted, each) for wanted in case.expected)}
        for kind, _ in case.expected:
            self.planted[kind] += 1
        for kind, _ in case.expected - missed:
            self.found[kind] += 1
        for kind, _ in surplus:
            self.surplus[kind] += 1
        self.transcripts[case.plant] += 1
        self.clean[case.plant] += not missed and not surplus
        if missed or surplus:
            kinds = [",".join(sorted({kind for kind, _ in each})) or "nothing" for each in (missed, surplus)]
            self.confusions[f"{case.plant} in {case.style}: missed {kinds[0]}, found {kinds[1]} instead"] += 1
        for step in found.steps:
            if step.verdict != "missing":
                self.verdicts[step.step in case.wrong, step.verdict] += 1

    def rows(self) -> list[dict[str, Any]]:
        """Precision and recall of every kind of finding."""
        rows: list[dict[str, Any]] = []
        for kind in sorted(self.planted | self.surplus):
            wanted, found, surplus = self.planted[kind], self.found[kind], self.surplus[kind]
            said = found + surplus
            rows.append(
                {
                    "kind": kind,
                    "planted": wanted,
                    "found": found,
                    "surplus": surplus,
                    "precision": found / said if said else None,
                    "precision_interval": wilson(found, said),
                    "recall": found / wanted if wanted else None,
                    "recall_interval": wilson(found, wanted),
                }
            )
        return rows

    def steps(self) -> dict[str, int]:
        """Verdicts on steps whose value is right, or wrong."""
        return {
            f"{'wrong' if wrong else 'right'}_value_called_{verdict}": count
            for (wrong, verdict), count in sorted(self.verdicts.items())
        }


def _same(wanted: tuple[str, str | None], found: tuple[str, str | None]) -> bool:
    return wanted[0] == found[0] and wanted[1] in (None, found[1])


def main() -> None:
    """Measure, print and write down."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=240, help="transcripts for every kind of failure")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, help="a folder with real transcripts")
    parser.add_argument("--out", type=Path, help="a folder for results.json")
    args = parser.parse_args()
    started = time.process_time()
    tally = Tally()
    for case in planted(args.seed, args.each):
        tally.add(case)
    seconds = time.process_time() - started
    results: dict[str, Any] = {
        "meta": {
            "command": f"python benchmarks/audit.py --each {args.each} --seed {args.seed}"
            + (" --data DIR" if args.data else ""),
            "seed": args.seed,
            "each": args.each,
            "transcripts": sum(tally.transcripts.values()),
            "python": sys.version.split()[0],
        },
        "rows": tally.rows(),
        "transcripts": {
            plant: {"n": n, "exactly_as_planted": tally.clean[plant]} for plant, n in tally.transcripts.items()
        },
        "steps": tally.steps(),
        "confusions": dict(tally.confusions.most_common()),
    }
    _print(results, seconds)
    results["recorded"] = recorded()
    print("recorded chains of thought of a real model:")
    for name, each in results["recorded"].items():
        print(f"  {name}: {each}")
    if args.data is not None:
        results["real"] = real(args.data, json.loads(LABELS.read_text(encoding="utf-8")))
        _print_real(results["real"])
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(results, indent=1, allow_nan=False)
        (args.out / "results.json").write_text(text + "\n", encoding="utf-8")


def _print(results: dict[str, Any], seconds: float) -> None:
    print(f"{results['meta']['transcripts']} transcripts with planted failures, {seconds:.0f} s of processor time")
    print(f"{'kind':18} {'planted':>7} {'found':>6} {'surplus':>7}  {'precision':22} recall")
    for row in results["rows"]:
        shares = [
            "n/a".ljust(22)
            if row[name] is None
            else f"{row[name]:7.2%} [{row[f'{name}_interval'][0]:.1%}, {row[f'{name}_interval'][1]:.1%}]".ljust(22)
            for name in ("precision", "recall")
        ]
        print(f"{row['kind']:18} {row['planted']:7} {row['found']:6} {row['surplus']:7}  {shares[0]} {shares[1]}")
    exact = sum(each["exactly_as_planted"] for each in results["transcripts"].values())
    print(f"exactly what was planted, and nothing else: {exact} of {results['meta']['transcripts']} transcripts")
    for name, count in results["steps"].items():
        print(f"  {name}: {count}")
    for name, count in results["confusions"].items():
        print(f"  {count} x {name}")


def _print_real(found: dict[str, Any]) -> None:
    for name in ("arithmetic", "school"):
        each = found[name]
        print(
            f"{name}: {each['transcripts']} transcripts, {each['links']} links: {each['true']} true, "
            f"{each['rounded']} rounded, {each['false']} false (in "
            f"{each['transcripts_with_false_links']} transcripts), {each['unread']} not judged"
        )
        for key, where in each["false_links"].items():
            print(f"  {key}: " + ", ".join(f"line {line}, sign {sign}" for line, sign in where))
    each = found["tracking"]
    print(f"tracking: {each['transcripts']} transcripts, {each['states']} states, {each['wrong_states']} wrong")
    for key, wrong in each["false_states"].items():
        print(f"  {key}: {', '.join(map(str, wrong))}")
    agreement = found["agreement"]
    print(
        f"labels: {agreement['transcripts']} transcripts, {agreement['compared']}, {agreement['labelled_false']} false"
    )
    print("disagreements: " + ("none" if not agreement["disagreements"] else ""))
    for each in agreement["disagreements"]:
        print(f"  {each}")


if __name__ == "__main__":
    main()
