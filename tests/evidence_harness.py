"""Judgements on one document, and a model that a function speaks for, that several test modules share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from stepguard import Procedure, Step
from stepguard.backends import Completion, Request
from stepguard.checks import Cites
from stepguard.procedure import Input

POLICY = (
    "Opened goods are not taken back. Books are taken back within 30 days of the purchase. "
    "Toys that are broken are replaced at once."
)
CLAUSE = "Books are taken back within 30 days of the purchase"


class FunctionModel:
    """Replies what a function says of each step, and keeps the requests."""

    def __init__(self, answer: Callable[[Step, Request], object]) -> None:
        self.answer = answer
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Completion:
        """See `SyncBackend.complete`."""
        self.requests.append(request)
        return Completion(json.dumps({step.id: self.answer(step, request) for step in request.steps}))

    @property
    def prompts(self) -> list[str]:
        """The last message of each request."""
        return [request.messages[-1].content for request in self.requests]


def reply(value: object, work: str = "") -> dict[str, object]:
    """A claim in words."""
    return {"work": work, "value": value}


def verdict(kind: str, *checks: Any, question: str = "Is the book taken back?") -> Procedure:
    """A judgement on the policy, which has to quote it."""
    step = Step("ok", instruction=question, type=kind, reads=["policy"], checks=[Cites("policy"), *checks])
    return Procedure([step], inputs=[Input("policy", "text")])


SIZES = ["small", "medium", "large"]


def choice(*options: str, right: str) -> Procedure:
    """A choice on the policy, of which a check knows the right one."""
    step = Step(
        "size",
        instruction="Which size is it?",
        type=f"one_of({', '.join(options)})",
        reads=["policy"],
        checks=[lambda step, values, claim: values["size"] == right],
    )
    return Procedure([step], inputs=[Input("policy", "text")])
