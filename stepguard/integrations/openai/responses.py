"""``client.responses`` of a wrapped client: create, parse and stream run guarded where they ask for a procedure.

Parameters mean what they mean to chat completions (`stepguard.integrations.openai.calls`): ``instructions`` and
``input`` are the messages, ``max_output_tokens`` bounds one request of the run, ``text`` may ask for the answer as
JSON. What builds on another response, runs in the background or names a prompt of OpenAI's is refused; ``reasoning``,
``store`` and all others are sent as they are with every request of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stepguard.errors import ConfigError
from stepguard.integrations.openai.calls import GuardedCall, WrapSettings, given_parameters, read_twice
from stepguard.results import Result

_REFUSED: Final[Mapping[str, str]] = {
    "previous_response_id": "it builds on nothing else",
    "conversation": "it builds on nothing else",
    "prompt": "the guard writes its own prompts",
    "background": "it is waited for",
    "include": "the answer is put together from several replies",
    "max_tool_calls": "steps are answered by the model alone",
}
_OWN_PARAMETERS: Final = ("input", "instructions", "max_output_tokens", "stream_options", "text", "text_format")


class ResponsesCall(GuardedCall):
    """One call of ``client.responses`` that asks for a procedure.

    Raises ConfigError: a parameter cannot be honoured.
    """

    def __init__(self, settings: WrapSettings, job: Any, arguments: Mapping[str, Any]) -> None:
        arguments = given_parameters(arguments)
        for name, why in _REFUSED.items():
            if arguments.get(name) not in (None, False, []):
                raise ConfigError(f"a guarded call takes no {name}: {why}", option=name)
        if "text_format" in arguments:
            raise ConfigError(
                "a guarded call cannot fill a schema of yours: use text={'format': {'type': 'json_object'}}, or the "
                "values of `response.stepguard`",
                option="text_format",
            )
        # What both APIs share is judged by the parent class; the rest is given under its name there.
        chat = {
            name: value for name, value in arguments.items() if name not in _OWN_PARAMETERS and name not in _REFUSED
        }
        text = arguments.get("text")
        text = dict(text) if isinstance(text, Mapping) else {}
        given = {
            "max_completion_tokens": arguments.get("max_output_tokens"),
            "response_format": text.pop("format", None),
            "text": text or None,
        }
        super().__init__(
            settings,
            job,
            {**chat, **{name: value for name, value in given.items() if value is not None}},
            api="responses",
        )

    def answer(self, result: Result, *, awaited: bool, parsed: bool = False) -> Any:
        """The return value of a method for a result.

        Raises RunError: the result is not to be handed on, and the client raises then.
        """
        from stepguard.integrations.chat.response_shapes import response_body
        from stepguard.integrations.openai.types import AsyncResponseEvents, ResponseEvents, make_response

        body = response_body(self.body(result), id=f"stepguard-{result.run_id}")
        if not self.stream:
            return make_response(body, result, parsed=parsed)
        return (AsyncResponseEvents if awaited else ResponseEvents)(body, result)


class ResponseManager:
    """The context manager of ``stream``: entered, it runs the procedure and yields the events of the answer."""

    def __init__(self, call: ResponsesCall) -> None:
        call.stream = True
        self._call: Final = call
        self._events: Any = None

    def __enter__(self) -> Any:
        self._events = self._call.answer(self._call.run(), awaited=False)
        return self._events

    def __exit__(self, *how: object) -> None:
        self._events.close()

    async def __aenter__(self) -> Any:
        self._events = self._call.answer(await self._call.arun(), awaited=True)
        return self._events

    async def __aexit__(self, *how: object) -> None:
        await self._events.close()


def input_messages(arguments: dict[str, Any]) -> Any:
    """The messages of a call of ``client.responses``; an input that can be read only once becomes a list."""
    given = read_twice(arguments, "input")
    words = arguments.get("instructions")
    if isinstance(body := arguments.get("extra_body"), Mapping):  # the SDK sends these instead
        given, words = body.get("input", given), body.get("instructions", words)
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if isinstance(messages, list):  # what else a model has done stands between the messages
        messages = [each for each in messages if not isinstance(each, Mapping) or "role" in each]
    if isinstance(words, str) and (messages is None or isinstance(messages, list)):
        return [{"role": "system", "content": words}, *(messages or [])]
    return messages
