"""`VerifiedOutput`: the output of an agent, checked step by step before anybody gets it.

How an output holds steps is in `stepguard.integrations.outputs.checker`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import AgentRunError, ModelRetry
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.output import OutputContext
from pydantic_ai.tools import AgentDepsT, RunContext

from stepguard.core.verdicts import DeviationKind, Strength
from stepguard.errors import ConfigError, StepguardError
from stepguard.integrations.chat.requests import named_procedure
from stepguard.integrations.outputs.checker import ANSWER, OutputChecker
from stepguard.integrations.outputs.judging import OutputCheck
from stepguard.integrations.pydantic_ai.messages import ONE_VALUE
from stepguard.language.strict_json import JsonObject, decode, decode_at, same
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step

_MOST_OBJECTS: Final = 100  # each brace of a long text could begin one


class OutputNotVerified(AgentRunError, StepguardError):  # type: ignore[misc, unused-ignore]
    """An output may not be handed on, and no other output of the model could; `check` says why.

    The message names steps and kinds of deviation alone.
    """

    def __init__(self, message: str, *, check: OutputCheck) -> None:
        # No UnexpectedModelBehavior: the framework takes that for a retry, and may pass over it.
        AgentRunError.__init__(self, message)
        self.check = check

    def __reduce__(self) -> tuple[Any, ...]:
        return StepguardError.__reduce__(self)


class _Deviates(ModelRetry):  # type: ignore[misc, unused-ignore]
    """The request for another output. Its message reaches the model: steps and kinds, no value and no reason."""

    def __init__(self, check: OutputCheck) -> None:
        what = "The output" if check.step is None else f"The value of {check.step}"
        super().__init__(f"{what} is not accepted ({check.kind}). Give the whole output again, every step of it.")
        self.check = check


class VerifiedOutput(AbstractCapability[AgentDepsT]):  # type: ignore[misc, unused-ignore]
    """Hands on an output of the agent only where every step in it is verified.

    A step that is not accepted asks the model for another output, as often as the agent's ``retries`` allow; when they
    are used up, pydantic-ai's own `UnexpectedModelBehavior` arises, and `check_of` finds what was wrong in it. Nothing
    else is asked again, and the model is told steps and kinds of deviation, never a value. (pydantic-ai keeps the
    refused output in the conversation; with `GuardedProcedures` the guard asks in a clean context instead.)

    One response may hold several outputs: in two calls of output tools, or in a call and in the text beside it.
    pydantic-ai hands on the first call that is valid. Where the others say something else, the response is refused.

    Outputs are checked before an output function gets them. Of a streamed run only accepted outputs are given by
    ``stream_output()``, and partial ones are not; plain text cannot be streamed, because pydantic-ai gives that out
    unchecked.

    Args:
        procedure: what is carried out: a `Procedure`, its text, or a single `Step`.
        inputs: the values of its inputs, or a function of the `RunContext` that returns them; it may be async.
        steps: the steps that an output with fields must hold; by default all that the model performs. The others are
            checked where they are given.
        ignore: names of fields that are no steps, and are handed on as they are (``explanation``, say). Any other
            one of a dictionary is a deviation, and one of a model or dataclass an error.
        at_least: what is to stand behind every step; see `Result.raise_for_status`.
        check_timeout: seconds that one check of yours may take; None waits for as long as it takes.
        on_check: called with every `OutputCheck`; what it raises is logged and changes nothing.
        id: as in any capability; needed only to override this one in a run.

    Raises:
        ConfigError: an option cannot work, or a step cannot be verified at all.
    """

    def __init__(
        self,
        procedure: Procedure | Step | str,
        *,
        inputs: Mapping[str, object] | Callable[[RunContext[AgentDepsT]], Any] | None = None,
        steps: Iterable[str] | None = None,
        ignore: Iterable[str] = (),
        at_least: Strength = "proved",
        check_timeout: float | None = 60.0,
        on_check: Callable[[OutputCheck], object] | None = None,
        id: str | None = None,
    ) -> None:
        self.id = id
        performed = procedure if isinstance(procedure, Step) else named_procedure(procedure)
        if steps is None and isinstance(performed, Procedure) and performed.look_back is None:
            steps = [step.id for step in performed.steps if step.performer == "model"]
        self._checker: Final = OutputChecker(
            performed,
            inputs=None if callable(inputs) else inputs,
            steps=steps,
            ignore=ignore,
            at_least=at_least,
            check_timeout=check_timeout,
            on_check=on_check,
        )
        if not callable(inputs):
            self._checker.accept()
        self._inputs: Final = inputs if callable(inputs) else None

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: it is not made from a file."""
        return None

    async def before_model_request(
        self, ctx: RunContext[AgentDepsT], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Refuse what could not be checked in time.

        Raises:
            ConfigError: plain text is to be streamed.
        """
        if request_context.streaming and request_context.model_request_parameters.output_mode == "text":
            raise ConfigError(
                "text that is streamed is given out unchecked: use run(), or an output_type with the steps as fields",
                option="output_type",
            )
        return request_context

    async def after_model_request(
        self, ctx: RunContext[AgentDepsT], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Refuse a response whose outputs differ.

        Raises:
            ModelRetry: they do.
        """
        tools = {tool.name for tool in request_context.model_request_parameters.output_tools}
        if (kind := self._conflict(response, tools)) is not None:
            reason = "the response holds several outputs that differ, or a field of one twice"
            raise _Deviates(self._checker.rejected(kind, reason))
        return response

    async def before_output_process(
        self, ctx: RunContext[AgentDepsT], *, output_context: OutputContext, output: Any
    ) -> Any:
        """Check an output; text, which is never validated, comes by here as well.

        Raises:
            ModelRetry: a step is not accepted.
            OutputNotVerified: no output could be accepted.
            ConfigError: the output is of a type that does not hold steps.
        """
        # Half an output cannot be verified, and must not be given out by a stream.
        if ctx.partial_output:
            raise ModelRetry("The output is not complete.")  # the framework passes over it
        inputs = None if self._inputs is None else self._inputs(ctx)
        values = self._checker.accept(await inputs if inspect.isawaitable(inputs) else inputs)
        if (misfit := self._checker.misfit(output)) is not None:
            raise ConfigError(misfit, option="output_type")
        check = await self._checker.check(output, values)
        if check.verified:
            return output
        if check.retry:
            raise _Deviates(check)
        raise OutputNotVerified(f"stepguard hands on no output: {check.procedure}, {check.summary()}", check=check)

    def _conflict(self, response: ModelResponse, tools: set[str]) -> DeviationKind | None:
        calls: list[object] = []
        for part in response.parts:
            if isinstance(part, ToolCallPart) and part.tool_name in tools:
                try:
                    found = decode(part.args) if isinstance(part.args, str) else part.args
                except ValueError:
                    return None  # the framework refuses it
                if isinstance(found, Mapping) and list(found) == [ONE_VALUE] and not _repeats(found):
                    found = found[ONE_VALUE]
                calls.append(found)
        if any(map(_repeats, calls)):
            return "duplicate_step"
        texts = [part.content for part in response.parts if isinstance(part, TextPart)]
        known = self._checker.ids | {ANSWER}
        answers = [each for each in _objects("\n".join(texts)) if not known.isdisjoint(each)]
        first = calls[0] if calls else answers[0] if answers else None
        if any(not _agree(each, first) for each in calls[1:]):
            return "malformed"
        if isinstance(first, Mapping) and any(
            not _agree(each[name], first[name]) for each in answers for name in each if name in known and name in first
        ):
            return "malformed"
        return None


def check_of(error: BaseException) -> OutputCheck | None:
    """The check of the last output behind the error that ended an agent's run; None where no output was at fault."""
    # Causes and contexts may form a ring.
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if isinstance(check := getattr(found, "check", None), OutputCheck):
            return check
        found = found.__cause__ or found.__context__
    return None


def _objects(text: str) -> Iterator[JsonObject]:
    at = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if at < 0:
            return
        try:
            found, end = decode_at(text, at)
        except ValueError:
            end = at + 1
        else:
            if isinstance(found, JsonObject):
                yield found
        at = text.find("{", end)


def _repeats(decoded: object) -> bool:
    """Whether a name stands twice in an object, or in one inside it."""
    left = [decoded]
    while left:
        found = left.pop()
        if isinstance(found, JsonObject) and found.repeated:
            return True
        left += found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    return False


def _agree(one: object, other: object) -> bool:
    """Whether two decoded answers say the same."""
    return same(one, other) or (not isinstance(one, JsonObject | list) and str(one) == str(other))
