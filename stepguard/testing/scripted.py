"""A model that answers with what a test wrote down."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Self

from stepguard.backends.base import Completion, Request
from stepguard.testing.completions import completion_of

__all__ = ["ScriptedBackend"]

Scripted = str | Mapping[str, object] | Completion | Exception | Callable[[Request], "str | Completion"]


class ScriptedBackend:
    """Answers each request with the next entry of a script, and keeps the requests.

    Args:
        script: for each call in turn: text; a mapping, sent as JSON; a `Completion`; an exception, which is raised;
            or a function of the request. Usage is counted at four characters a token unless a `Completion` says
            otherwise.

    With `Guard.arun` entries are taken in the order in which the calls are started; functions run on the event loop.

    Used as a context manager it asserts on leaving that the whole script was used::

        with ScriptedBackend({"t1": "12 + 7 = 19"}) as backend:
            result = Guard(backend).run(procedure, {"x": 12, "y": 7})
    """

    def __init__(self, *script: Scripted) -> None:
        self._script: list[Scripted] = list(script)
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Completion:
        """The next entry of the script.

        Raises:
            AssertionError: the script is used up.
        """
        number = len(self.requests)
        self.requests.append(request)
        if number >= len(self._script):
            asked = ", ".join(step.id for step in request.steps)
            raise AssertionError(f"call {number + 1} ({asked}) is not in the script of {len(self._script)} replies")
        entry = self._script[number]
        if isinstance(entry, Exception):
            raise entry
        if isinstance(entry, Completion):
            return entry
        if isinstance(entry, Mapping):
            return completion_of(request, json.dumps(entry))
        if isinstance(entry, str):
            return completion_of(request, entry)
        found = entry(request)
        return found if isinstance(found, Completion) else completion_of(request, found)

    async def acomplete(self, request: Request) -> Completion:
        """See `complete`."""
        return self.complete(request)

    def assert_finished(self) -> None:
        """Assert that every entry of the script was used.

        Raises:
            AssertionError: some were not.
        """
        left = len(self._script) - len(self.requests)
        assert left <= 0, f"{left} of {len(self._script)} scripted replies were never asked for"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.assert_finished()
