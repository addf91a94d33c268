"""Read an agent's messages, and the shape in which it wants its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic_ai.messages import (
    CachePoint,
    ModelResponse,
    ModelResponsePart,
    SpeechPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from stepguard.errors import ConfigError
from stepguard.procedure.procedure import Procedure
from stepguard.results import Result

ONE_VALUE: Final = "response"
"""The framework's name of the field that it wraps around an output which is no object."""


def read_agent_messages(context: ModelRequestContext) -> list[dict[str, object]]:
    """The messages of an agent as `stepguard.integrations.chat.requests` reads them.

    What tools returned, and what the framework asks to be mended, is nothing that the user says.
    """
    instructions = context.model_request_parameters.instruction_parts or ()
    # Each by itself: what a function of the agent adds is not to become part of another.
    converted: list[dict[str, object]] = [{"role": "system", "content": part.content} for part in instructions]
    for message in context.messages:
        if isinstance(message, ModelResponse):
            converted.append({"role": "assistant", "content": message.text or ""})
            continue
        for part in message.parts:
            if isinstance(part, SystemPromptPart):
                converted.append({"role": "system", "content": part.content})
            elif isinstance(part, UserPromptPart):
                converted.append({"role": "user", "content": _content(part)})
            elif isinstance(part, SpeechPart):
                converted.append({"role": "user", "content": [{"type": "audio"}]})
            else:  # of a tool, or of the framework, whose parts differ between releases
                converted.append({"role": "tool", "content": ""})
    return converted


def _content(part: UserPromptPart) -> str | list[dict[str, str]]:
    if isinstance(part.content, str):
        return part.content
    texts = [item.content if isinstance(item, TextContent) else item for item in part.content]
    kept = [item for item in texts if not isinstance(item, CachePoint)]
    return [{"type": "text", "text": item} if isinstance(item, str) else {"type": "file"} for item in kept]


class AnswerShape:
    """How an agent wants its answer: as text, as JSON, or as a call of its output tool.

    Args:
        parameters: what the agent would have asked of its model.

    Raises:
        ConfigError: the output type wants what the procedure does not give.
    """

    def __init__(self, parameters: ModelRequestParameters, procedure: Procedure) -> None:
        self._procedure: Final = procedure
        self._tool: ToolDefinition | None = None
        self._names: tuple[str, ...] | None = None
        self._whole = False
        schemas: list[tuple[ToolDefinition | None, Mapping[str, Any]]] = []
        mode = parameters.output_mode
        if mode in ("native", "prompted") and parameters.output_object is not None:
            schemas.append((None, parameters.output_object.json_schema))
        elif mode == "auto" or not parameters.allow_text_output:
            schemas += [(tool, tool.parameters_json_schema) for tool in parameters.output_tools]
        if not schemas and parameters.allow_text_output:
            return
        for tool, schema in schemas:
            if (names := self._fillable(schema)) is not None:
                self._tool, self._names = tool, names
                return
        raise ConfigError(
            f"the output type of the agent wants what {procedure.name} does not give: use str, one value (the answer), "
            "or a type whose fields are called like steps, inputs or answer",
            option="output_type",
        )

    def parts(self, result: Result, text: str) -> list[ModelResponsePart]:
        """The parts of the response that hold an answer; `text` is the answer as text."""
        if self._names is None:
            return [TextPart(text)]
        data = result.to_dict()
        answer: object = data["answer"]
        if self._whole:
            answer = {step.id: data["values"][step.id] for step in self._procedure.steps if step.id in data["values"]}
        values = {ONE_VALUE: answer, "answer": data["answer"], **data["values"]}
        filled = json.dumps({name: values[name] for name in self._names if name in values}, ensure_ascii=False)
        return [TextPart(filled) if self._tool is None else ToolCallPart(self._tool.name, filled)]

    def _fillable(self, schema: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The properties of a schema that can be filled; None where one that is required cannot."""
        properties = list(schema.get("properties", ()))
        known = {each.name for each in self._procedure.inputs} | {"answer"}
        lazy = self._procedure.look_back is not None  # its values are not kept
        if not lazy:
            known |= {step.id for step in self._procedure.steps}
        if properties == [ONE_VALUE]:
            kind = schema["properties"][ONE_VALUE].get("type")
            self._whole = kind == "object"
            return None if kind == "array" or (lazy and self._whole) else (ONE_VALUE,)
        if not known.issuperset(schema.get("required", ())):
            return None
        return tuple(name for name in properties if name in known) or None
