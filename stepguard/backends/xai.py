"""Asking xAI's own SDK: it speaks gRPC, begins a chat and then takes a sample of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def xai_sender(client: Any, awaited: bool) -> Callable[..., Any]:
    """A method that takes the parameters of a chat completion and gives the response of xAI's SDK."""

    def begin(parameters: dict[str, Any]) -> Any:
        form = parameters.pop("_xai_json_schema", None)
        messages = [_message(message) for message in parameters.pop("messages")]
        chat = client.chat.create(messages=messages, **parameters)
        if form is not None:
            _bind(chat, form["schema"])
        return chat

    def send(**parameters: Any) -> object:
        return begin(parameters).sample()

    async def asend(**parameters: Any) -> object:
        return await begin(parameters).sample()

    return asend if awaited else send


def _message(message: Mapping[str, str]) -> Any:
    from xai_sdk import chat

    return getattr(chat, message["role"])(message["content"])


def _bind(chat: Any, schema: Mapping[str, Any]) -> None:
    """Bind the reply to a schema, as the SDK does where it parses a reply itself."""
    import json

    from xai_sdk.proto import chat_pb2

    form = chat_pb2.ResponseFormat(format_type=chat_pb2.FORMAT_TYPE_JSON_SCHEMA, schema=json.dumps(schema))
    chat.proto.response_format.CopyFrom(form)
