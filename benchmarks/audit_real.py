"""Real transcripts: every link of chains of arithmetic, every state of object tracking, compared with labels.

The material is not part of this project. Expected in a folder: ``bbh_arithmetic_transcripts.jsonl`` and
``bbh_tracking7_transcripts.jsonl`` (made from suzgunmirac/BIG-Bench-Hard) and ``gsm8k_solutions.jsonl`` (made from
openai/grade-school-math): one JSON object a line, with ``id``, ``question`` and ``transcript``, or ``reference`` and
``solutions``. Nothing of their text is written down, only ids, positions and counts.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stepguard import audit
from stepguard.auditing import Link, check_links
from stepguard.evaluation.families import Arithmetic

__all__ = ["real", "recorded"]

RECORDED = Path(__file__).parent / "results" / "qwen2.5-coder-1.5b-arithmetic" / "outcomes.jsonl"

ARITHMETIC = "bbh_arithmetic_transcripts.jsonl"
TRACKING = "bbh_tracking7_transcripts.jsonl"
SCHOOL = "gsm8k_solutions.jsonl"

_STATE = re.compile(r"^\((\d+)\) (?:At the start|(\w+) and (\w+) [^:\n]*): (.*)\.$", re.MULTILINE)
_HELD = re.compile(r"(\w+): ([^,]+)")


def real(folder: Path, labels: Mapping[str, Any]) -> dict[str, Any]:
    """Everything found in the material, and how it agrees with the labels."""
    arithmetic = dict(_arithmetic(folder / ARITHMETIC))
    school = dict(_school(folder / SCHOOL))
    states = dict(_tracking(folder / TRACKING))
    return {
        "arithmetic": {
            **_counts(arithmetic),
            "false_links": {key: where for key, found in arithmetic.items() if (where := _positions(*found))},
        },
        "school": {
            **_counts(school),
            "false_links": {key: where for key, found in school.items() if (where := _positions(*found))},
        },
        "tracking": {
            "transcripts": len(states),
            "states": sum(total for total, _ in states.values()),
            "wrong_states": sum(len(wrong) for _, wrong in states.values()),
            "false_states": {key: wrong for key, (_, wrong) in states.items() if wrong},
        },
        "agreement": _agreement(labels, arithmetic, school, states),
    }


def recorded() -> dict[str, Any]:
    """The free chains of thought of a real model that the benchmark recorded: verdicts against the generator's truth.

    The truth says only whether a value is right; ``right_value_called_wrong`` are those that the audit refuses for
    their working.
    """
    verdicts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    refused: list[str] = []
    transcripts = answers = 0
    for row in _rows(RECORDED):
        if row.get("arm") != "cot":
            continue
        task = Arithmetic().make(row["seed"], row["length"])
        found = audit(task.procedure, task.inputs, row["texts"][0])
        transcripts += 1
        answers += (found.answer_right, found.answer_right_lenient) == (row["right"], row["right_lenient"])
        kinds.update({each.kind for each in found.findings})
        for step in found.steps:
            if step.verdict == "missing":
                verdicts["missing"] += 1
                continue
            right = step.claimed is not None and step.claimed == str(task.truth[step.step])
            verdicts[f"{'right' if right else 'wrong'}_value_called_{step.verdict}"] += 1
            if right and step.verdict == "wrong":
                refused.append(f"{row['length']} steps, seed {row['seed']}, {step.step}: {step.kind}")
    return {
        "transcripts": transcripts,
        "answers_judged_as_recorded": answers,
        "verdicts": dict(sorted(verdicts.items())),
        "right_values_refused": refused,
        "transcripts_with": dict(sorted(kinds.items())),
    }


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


Found = tuple[str, tuple[Link, ...]]


def _arithmetic(path: Path) -> Iterator[tuple[str, Found]]:
    for row in _rows(path):
        yield str(row["id"]), (row["transcript"], check_links(row["transcript"]))


def _school(path: Path) -> Iterator[tuple[str, Found]]:
    for row in _rows(path):
        texts = {"reference": row["reference"], **{name: each["text"] for name, each in row["solutions"].items()}}
        for name, text in texts.items():
            yield f"{row['id']}/{name}", (text, check_links(text))


def _positions(text: str, links: tuple[Link, ...]) -> list[list[int]]:
    """The false links as line and number of the equals sign in that line."""
    found: list[list[int]] = []
    for link in links:
        if link.verdict == "false":
            line_start = text.rfind("\n", 0, link.place.start) + 1
            found.append([link.place.line, text.count("=", line_start, link.place.end)])
    return found


def _counts(found: Mapping[str, Found]) -> dict[str, Any]:
    verdicts = Counter(link.verdict for _, links in found.values() for link in links)
    affected = sum(any(link.verdict == "false" for link in links) for _, links in found.values())
    return {
        "transcripts": len(found),
        "links": sum(verdicts.values()),
        **{verdict: verdicts[verdict] for verdict in ("true", "rounded", "false", "unread")},
        "transcripts_with_false_links": affected,
    }


def _tracking(path: Path) -> Iterator[tuple[str, tuple[int, list[int]]]]:
    """How many states follow another one, and those that do not follow from it."""
    for row in _rows(path):
        before: dict[str, str] | None = None
        total = 0
        wrong: list[int] = []
        for number, one, other, held in _STATE.findall(row["transcript"]):
            state = {name: thing.strip() for name, thing in _HELD.findall(held)}
            if before is not None and one in before and other in before:
                total += 1
                expected = {**before, one: before[other], other: before[one]}
                if state != expected:
                    wrong.append(int(number))
            before = state
        yield str(row["id"]), (total, wrong)


def _agreement(
    labels: Mapping[str, Any],
    arithmetic: Mapping[str, Found],
    school: Mapping[str, Found],
    states: Mapping[str, tuple[int, list[int]]],
) -> dict[str, Any]:
    disagreements: list[str] = []
    compared: Counter[str] = Counter()
    labelled: Counter[str] = Counter()
    for key, wanted in labels["arithmetic"].items():
        found = _positions(*arithmetic[key])
        compared["arithmetic_links"] += sum(link.verdict != "unread" for link in arithmetic[key][1])
        labelled["arithmetic"] += len(wanted)
        disagreements += [f"arithmetic {key}: missed {each}" for each in wanted if each not in found]
        disagreements += [f"arithmetic {key}: false alarm {each}" for each in found if each not in wanted]
    for key, count in labels["school"].items():
        found = _positions(*school[key])
        compared["school_links"] += sum(link.verdict != "unread" for link in school[key][1])
        labelled["school"] += count
        if len(found) != count:
            disagreements.append(f"school {key}: {len(found)} false links, labelled {count}")
    for key, steps in labels["tracking"].items():
        compared["tracking_states"] += states[key][0]
        labelled["tracking"] += len(steps)
        if states[key][1] != steps:
            disagreements.append(f"tracking {key}: {states[key][1]}, labelled {steps}")
    return {
        "transcripts": sum(len(labels[name]) for name in ("arithmetic", "school", "tracking")),
        "compared": dict(compared),
        "labelled_false": dict(labelled),
        "disagreements": disagreements,
    }
