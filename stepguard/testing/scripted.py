"""Models that answer with what a test wrote down: call after call, or step by step."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Final, Self

from stepguard.backends.base import Completion, Request
from stepguard.errors import ConfigError, UnexpectedRequest
from stepguard.procedure.steps import Step
from stepguard.replies.formats import EquationFormat
from stepguard.testing.working import completion_of

Scripted = str | Mapping[str, object] | Completion | Exception | Callable[[Request], "str | Completion"]
Answer = str | int | float | bool | Mapping[str, object] | None

_FORMAT: Final = EquationFormat()


class _Script(ABC):
    """What both scripts share: the requests that came, and a ``with`` block that asserts that all was used."""

    requests: list[Request]
    """The requests, in the order in which they came."""

    def __init__(self) -> None:
        self.requests = []
        self._lock: Final = threading.Lock()

    @abstractmethod
    def complete(self, request: Request) -> Completion:
        """The scripted reply to a request."""

    async def acomplete(self, request: Request) -> Completion:
        return self.complete(request)

    @abstractmethod
    def assert_finished(self) -> None:
        """Assert that the whole script was used."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.assert_finished()


class ScriptedBackend(_Script):
    """Answers each request with the next entry of a script, and keeps the requests.

    For replies as a whole, just as a server would send them. `ScriptedSteps` answers step by step, whatever is asked
    together.

    Args:
        script: for each call in turn: text; a mapping, sent as JSON; a `Completion`; an exception, which is raised;
            or a function of the request. Usage is counted at four characters a token unless a `Completion` says
            otherwise.

    With `Guard.arun` entries are taken in the order in which the calls are started; functions run on the event loop.
    It may be shared between threads; no two calls get the same entry.

    Used as a context manager it asserts on leaving that the whole script was used::

        with ScriptedBackend({"t1": "12 + 7 = 19"}) as backend:
            result = Guard(backend).run(procedure, {"x": 12, "y": 7})
    """

    def __init__(self, *script: Scripted) -> None:
        super().__init__()
        for number, entry in enumerate(script, 1):
            if not isinstance(entry, str | Mapping | Completion | Exception) and not callable(entry):
                raise ConfigError(
                    f"reply {number} of the script is a {type(entry).__name__}, not text, a mapping, a Completion, an "
                    "exception or a function; replies stand one after the other: ScriptedBackend('...', '...')",
                    option="script",
                )
        self._script: Final = script

    def complete(self, request: Request) -> Completion:
        """The next entry of the script.

        Raises UnexpectedRequest: the script is used up.
        """
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
        if number >= len(self._script):
            asked = ", ".join(step.id for step in request.steps)
            raise UnexpectedRequest(f"call {number + 1} ({asked}) is not in the script of {len(self._script)} replies")
        entry = self._script[number]
        if isinstance(entry, Exception):
            raise entry
        if isinstance(entry, Completion):
            return entry
        if isinstance(entry, Mapping):
            return completion_of(request, json.dumps(entry))
        if isinstance(entry, str):
            return completion_of(request, entry)
        reply = entry(request)
        return reply if isinstance(reply, Completion) else completion_of(request, reply)

    def assert_finished(self) -> None:
        """Assert that every entry of the script was used.

        Raises AssertionError: some were not.
        """
        left = len(self._script) - len(self.requests)
        assert left <= 0, f"{left} of {len(self._script)} scripted replies were never asked for"


class ScriptedSteps(_Script):
    """Answers each step with what a script holds for it, put together for whatever steps are asked at once.

    A test written with it does not depend on the segment length, on `parallel` or on the order of retries: the first
    answer stands until the guard does not accept it, then the second is given, and so on::

        script = {"t1": ["12 + 7 = 18", "12 + 7 = 19"], "t2": "19 * 3 = 57", "city": "Lyon"}
        with ScriptedSteps(script) as backend:
            result = Guard(backend).run(procedure, {"x": 12, "y": 7})

    Which try it is, the request says (`Request.attempt`), so one script serves any number of runs and threads.

    Args:
        script: by step id: one answer, or a list of answers for the first try, the second ... An answer is the entry
            of the step in the reply: text, or other JSON data. Text for a step that only words describe is its value
            alone. An exception is raised instead of a reply, once, before the answer that follows it.

    Used as a context manager it asserts on leaving that the whole script was used.

    Raises:
        ConfigError: the script holds no answer for a step, or something that is none.
    """

    def __init__(self, script: Mapping[str, object]) -> None:
        super().__init__()
        self._answers: Final[dict[str, list[Answer]]] = {}
        self._errors: Final[dict[tuple[str, int], list[Exception]]] = {}  # by step and the number of answers before
        self._used: Final[set[tuple[str, int]]] = set()
        for step_id, given in script.items():
            entries = list(given) if isinstance(given, list | tuple) else [given]
            if not entries:
                raise ConfigError(f"the script holds no answer for {step_id!r}: leave the step out", option="script")
            answers = self._answers[step_id] = []
            for entry in entries:
                if isinstance(entry, Exception):
                    self._errors.setdefault((step_id, len(answers)), []).append(entry)
                    continue
                if not isinstance(entry, str | int | float | Mapping | None):
                    found = type(entry).__name__
                    raise ConfigError(
                        f"{step_id!r} is answered by text, other JSON data or an exception, not {found}",
                        option="script",
                    )
                answers.append(entry)

    def complete(self, request: Request) -> Completion:
        """The answers of the steps that are asked, as one JSON object.

        Raises UnexpectedRequest: a step is asked that the script does not hold, or more often than it has answers.
        """
        # A step that was not accepted leads the next request about it: the others are at their first try.
        turns = [(step.id, 0 if place else request.attempt - 1) for place, step in enumerate(request.steps)]
        with self._lock:
            self.requests.append(request)
            for turn in turns:
                if turn[0] not in self._answers:
                    known = ", ".join(self._answers) or "no steps"
                    raise UnexpectedRequest(f"step {turn[0]!r} is asked and not in the script (it holds {known})")
                if self._errors.get(turn):
                    raise self._errors[turn].pop(0)
            for step_id, at in turns:
                count = len(self._answers[step_id])
                if at >= count:
                    raise UnexpectedRequest(f"step {step_id!r} is asked for try {at + 1}, and its script holds {count}")
            self._used.update(turns)
        entries = {
            step.id: _entry(request, step, self._answers[step_id][at])
            for step, (step_id, at) in zip(request.steps, turns, strict=True)
        }
        return completion_of(request, json.dumps(entries))

    def assert_finished(self) -> None:
        """Assert that every answer was given and every exception raised.

        Raises AssertionError: some were not; it names their steps.
        """
        left: list[str] = []
        with self._lock:
            for step_id, answers in self._answers.items():
                unused = [at for at in range(len(answers)) if (step_id, at) not in self._used]
                errors = sum(len(self._errors.get((step_id, at), ())) for at in range(len(answers) + 1))
                if errors:
                    left.append(f"{step_id!r} (exceptions: {errors})")
                if unused:
                    left.append(f"{step_id!r} (answers: {len(unused)} of {len(answers)})")
        assert not left, f"the script was not used up: {', '.join(left)}"


def _entry(request: Request, step: Step, answer: Answer) -> object:
    """The entry of a step; the value alone of a step in words becomes what the reply format asks for."""
    if step.expression is None and isinstance(answer, str):
        return (request.reply_format or _FORMAT).answer(step, "", answer)
    return answer
