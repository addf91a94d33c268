"""A model that insists on wrong steps, for the tests of the ladder."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from stepguard import Procedure
from stepguard.backends import Completion, Request
from stepguard.testing import SimulatedModel, Slips

MINUS = Procedure.parse("inputs: x, y\nt1 = x - y\nt2 = t1 * 3")
INPUTS = {"x": -96, "y": -106}


class Stubborn:
    """Right about everything, but for the steps named, which it gets wrong unless they are asked in one way."""

    def __init__(self, way: Callable[[Request], bool], *steps: str) -> None:
        self.way = way
        self.steps = steps or ("t1",)
        self.right = SimulatedModel(slips=Slips.none())
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Completion:
        self.requests.append(request)
        completion = self.right.complete(request)
        if request.reply_format is None or self.way(request):
            return completion
        said: dict[str, Any] = json.loads(completion.text or "")
        for step in self.steps:
            if step in said:
                work, _, value = said[step].rpartition(" = ")
                said[step] = f"{work} = {int(value) + 1}"
        return Completion(json.dumps(said), usage=completion.usage)


def never(request: Request) -> bool:
    return False


def said(*answers: str) -> list[dict[str, object]]:
    return [{"city": {"work": "", "value": answer}} for answer in answers]
