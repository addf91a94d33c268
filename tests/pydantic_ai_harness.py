"""What the tests of agents of pydantic-ai share: a double of a model, and an agent on it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage

from stepguard import Procedure
from stepguard.integrations.chat.trust import Trust

SUMS = Procedure.parse("name: sums\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3")
INPUTS = {"x": 12, "y": 7}
PROMPT = "inputs: x, y\nx = 12\ny = 7\nt2 = x + y\nt1 = t2 * 3\n"
TRUST = Trust(procedures=("system", "user"), inputs=("user",))
GOOD = {"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}
WRONG = {"t2": "12 + 7 = 19", "t1": "19 * 3 = 58"}
MENDED = {"t1": "19 * 3 = 57"}
ANSWER = "t2 = 19\nt1 = 57\nanswer: 57"


class Sums(BaseModel):
    t2: int
    t1: int


def said(messages: list[ModelMessage]) -> str:
    """What stands in messages: texts, arguments and requests to try again."""
    return " ".join(
        str(getattr(part, "content", None) or getattr(part, "args", "")) for each in messages for part in each.parts
    )


def run(agent: Agent[Any, Any], prompt: Any, **options: Any) -> Any:
    """One run on a loop of its own (the framework's `run_sync` leaves the loop that it makes open)."""
    return asyncio.run(agent.run(prompt, **options))


class Double:
    """A model by a script, the last reply again and again; it keeps all that it was given."""

    def __init__(self, *replies: Any, profile: ModelProfile | None = None, name: str | None = None) -> None:
        self.left = list(replies)
        self.asked: list[tuple[list[ModelMessage], AgentInfo]] = []
        self.model = FunctionModel(self.answer, profile=profile, model_name=name)

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.asked.append((list(messages), info))
        reply = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, ModelResponse):
            return reply
        usage = RequestUsage(input_tokens=10, output_tokens=5)
        if isinstance(reply, dict) and info.output_tools:
            names = list(info.output_tools[0].parameters_json_schema["properties"])
            reply = {"response": reply} if names == ["response"] and names != list(reply) else reply
            return ModelResponse([ToolCallPart(info.output_tools[0].name, json.dumps(reply))], usage=usage)
        return ModelResponse([TextPart(reply if isinstance(reply, str) else json.dumps(reply))], usage=usage)

    @property
    def told(self) -> str:
        """Everything the model was given, but for ids and times."""
        return " ".join(said(messages) for messages, _ in self.asked)


def agent(double: Double, *capabilities: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(double.model, capabilities=list(capabilities), **options)
