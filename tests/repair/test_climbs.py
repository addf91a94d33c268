"""The default ladder from its foot to its end: what is asked of a model that is never right, and in which order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count, groupby

import pytest
from tables import all_rows

from stepguard import Guard, Procedure, Result
from stepguard.backends import Completion, Request
from stepguard.testing import SimulatedModel, Slips

pytestmark = pytest.mark.once


class Liar:
    """Works out each step, and ends every working on another wrong number; in words it has always one more to say."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._right = SimulatedModel(slips=Slips.none())
        self._numbers = count(1_000_003)

    def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        completion = self._right.complete(request)
        if request.reply_format is None:
            return completion
        said: Mapping[str, object] = json.loads(completion.text or "")
        return Completion(json.dumps({step: self._turned(claim) for step, claim in said.items()}))

    def _turned(self, claim: object) -> object:
        if not isinstance(claim, str):
            return {"work": "", "value": f"word {next(self._numbers)}"}
        working, _, value = claim.rpartition(" = ")
        truth = {"true": "false", "false": "true"}
        return f"{working} = {truth.get(value) or next(self._numbers)}"


def climb(procedure: Procedure, inputs: Mapping[str, object]) -> tuple[list[str], Result]:
    """What was asked by which rung, how warm, and how often in a row."""
    model = Liar()
    result = Guard(model, segment=1).run(procedure, inputs)
    assert len(model.requests) == len(result.attempts)
    lines = []
    for request, attempt in zip(model.requests, result.attempts, strict=True):
        asked = ", ".join(str(step.formula or step.id) for step in request.steps)
        question = "? " if "Key: " in request.messages[-1].content else " "
        draft = " (free text)" if request.reply_format is None else ""
        lines.append(f"{attempt.rung} {request.temperature:g}{question}{asked}{draft}")
    found = [(line, len(list(equal))) for line, equal in groupby(lines)]
    return [line if times == 1 else f"{line} ({times} times)" for line, times in found], result


CLIMBS: dict[str, tuple[str, dict[str, object], list[str]]] = {
    "a difference of negative numbers": (
        "inputs: x, y\nt = x - y",
        {"x": -96, "y": -106},
        [
            "ask 0 x - y",
            "resample 0.8 x - y",
            "rewrite 0 106 - 96",
            "split 0 106 - 90, p1 - 6",
            "question 0? x - y",
            "draft 0 x - y (free text)",
            "draft 0 x - y",
            "question 0.8? x - y",
            "rewrite 0.8 106 - 96",
            "split 0.8 106 - 90, p1 - 6 (2 times)",
            "split 0 106 - 100, p1 + 4",
            "resample 1 x - y (3 times)",
            "split 0.8 106 - 90, p1 - 6",
            "split 0 1 - 1, 6 + 4, p1 * 100, p3 + p2",
            "split 0.8 1 - 1, 6 + 4, p1 * 100, p3 + p2 (2 times)",
            "split 0? 1 - 1",
        ],
    ),
    "an amount": (
        "inputs: x, y\nt: money(EUR) = x * y",
        {"x": "39.92", "y": "4.5"},
        [
            "ask 0 x * y",
            "resample 0.8 x * y",
            "split 0 39.92 * 4, 39.92 * 0.5, p1 + p2",
            "question 0? x * y",
            "rewrite 0.8 4.5 * 39.92",
            "draft 0 x * y (free text)",
            "draft 0 x * y",
            "question 0.8? x * y",
            "split 0.8 0.5 * 39.92, 4 * 39.92, p1 + p2 (2 times)",
            "split 0 4.5 * 40, 4.5 * 0.08, p1 - p2",
            "resample 1 x * y (3 times)",
            "split 0.8 39.92 * 4, 39.92 * 0.5, p1 + p2",
            "split 0 3992 * 45",
            "split 0 39 * 40, 39 * 5, p1 + p2, 92 * 40, 92 * 5, p4 + p5, p3 * 100, p7 + p6",
            "split 0.8 39 * 40, 39 * 5, p1 + p2, 92 * 40, 92 * 5, p4 + p5, p3 * 100, p7 + p6 (2 times)",
            "split 0? 39 * 40",
        ],
    ),
    "a share": (
        "inputs: x, y\nt: percent = x / y",
        {"x": 3, "y": 4},
        [
            "ask 0 x / y",
            "rewrite 0 3 / 4",
            "rewrite 0.8 3 / 4",
            "resample 0.8 x / y",
            "question 0? x / y",
            "draft 0 x / y (free text)",
            "draft 0 x / y",
            "question 0.8? x / y",
            "resample 1 x / y (3 times)",
        ],
    ),
    "a decision": (
        "inputs: x, y\nt: boolean = x > y + 2",
        {"x": 4, "y": 3},
        ["ask 0 x > y + 2", "split 0 3 + 2, 4 - p1", "split 0.8 3 + 2, p1 - 4 (2 times)", "split 0.8 3 + 2, 4 - p1"],
    ),
    "a span between dates": (
        "inputs: x: date, y: date\nt: duration = x - y",
        {"x": "2026-03-05", "y": "2026-01-09"},
        [
            "split 0 22 + 28 + 5",
            "split 0.8 22 + 28, p1 + 5 (2 times)",
            "split 0.8 22 + 28 + 5",
            "resample 0.8 t",
            "question 0? t",
            "resample 1 t (3 times)",
            "draft 0 t (free text)",
            "draft 0 t",
            "question 0.8? t",
        ],
    ),
    "words of a document": (
        'inputs: letter: text\nt: text = "Copy the name." (reads letter)  check: grounded(letter)',
        {"letter": "Anna Berg asked.\nBob paid."},
        [
            "ask 0 t",
            "resample 0.8 t",
            "passage 0 passage",
            "question 0? t",
            "question 0.8? t",
            "draft 0 t (free text)",
            "draft 0 t",
            "resample 1 t (3 times)",
        ],
    ),
}


@all_rows("text, inputs, asked", CLIMBS.values())
def test_a_step_that_comes_right_in_no_way_is_asked_in_all_of_them(
    text: str, inputs: dict[str, object], asked: list[str]
) -> None:
    """Each rung that asks anything of a step is used, and then the step is named."""
    found, result = climb(Procedure.parse(text), inputs)
    assert found == asked
    assert (result.status, result.problem and result.problem.occurrence.step) == ("abstained", "t")
