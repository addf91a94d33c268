"""pydantic-ai: an agent whose requests run guarded where they ask for a procedure, and one whose output is checked.

::

    guarded = GuardedProcedures(procedure=invoice, inputs=lambda ctx: ctx.deps)
    agent = Agent("openai:gpt-4.1-mini", deps_type=dict, capabilities=[guarded])
    answer = await agent.run(prompt, deps={"price": "24.90", "quantity": 3})
    result_of(answer)                    # the `Result`; None where nothing ran guarded

    agent = Agent("openai:gpt-4.1-mini", output_type=Invoice, capabilities=[VerifiedOutput(procedure, inputs=order)])
    answer = await agent.run(prompt)     # an output whose steps are right, or pydantic-ai's own error

The first has the guard ask the agent's model, segment by segment. The second leaves the asking to pydantic-ai and
checks what comes out (`stepguard.integrations.pydantic_ai.output`). Both need the extra ``pydantic-ai``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, Unpack, get_args

from stepguard.backends.retry import RetryPolicy
from stepguard.core.arguments import check_one_of
from stepguard.core.verdicts import Strength
from stepguard.errors import ConfigError, MissingExtraError, RunError, StepguardError
from stepguard.guard import Guard
from stepguard.guard.options import KeptKeywords, check_options
from stepguard.integrations.chat.answers import completion_body, refusal, shortfall
from stepguard.integrations.chat.calls import CallRules, ClientCall
from stepguard.integrations.chat.requests import Job, named_procedure
from stepguard.integrations.chat.trust import Trust, check_inputs
from stepguard.procedure.procedure import Procedure
from stepguard.results import Result

try:
    from pydantic_ai.capabilities import AbstractCapability, WrapModelRequestHandler
    from pydantic_ai.exceptions import UnexpectedModelBehavior
    from pydantic_ai.messages import ModelResponse, UserPromptPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import AgentDepsT, RunContext
except ImportError as error:
    raise MissingExtraError("guarding an agent of pydantic-ai", extra="pydantic-ai") from error

from stepguard.integrations.pydantic_ai.messages import AnswerShape, read_agent_messages
from stepguard.integrations.pydantic_ai.requests import AgentBackend, Mode
from stepguard.integrations.support import check_support

_KEY: Final = "stepguard"


class NotVerified(UnexpectedModelBehavior, RunError):  # type: ignore[misc, unused-ignore]
    """A guarded run gave nothing that may be handed on; `result` holds what was verified and spent.

    The message names steps and kinds of deviation alone. The cause is the `RunError` of `Result.raise_for_status`, with
    the reasons, which are for people: do not show them to a model.
    """

    def __init__(self, message: str, *, result: Result) -> None:
        UnexpectedModelBehavior.__init__(self, message)
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        return StepguardError.__reduce__(self)


class GuardedProcedures(AbstractCapability[AgentDepsT]):  # type: ignore[misc, unused-ignore]
    """Runs a model request guarded where it asks for a procedure, on the agent's own model.

    A request asks for one where `procedure` names one, or where a message (or the instructions, which are a system
    message) is one and the host trusts its role. Every other request goes on as it came; the log events
    ``chat_guarded`` and ``chat_passed``, `on_call` and `result_of` tell the two apart.

    The guard asks the agent's model itself: capabilities that stand behind this one see the requests that are passed
    on, and none of the guard's.

    In a guarded request the guard writes the messages. Instructions, history and tools of the agent are not sent; its
    model settings are (``temperature`` then holds for every call, ``max_tokens`` is the most one call may bring, and
    what is set to None is not sent). The response holds every step and the answer as text; with an `output_type` whose
    fields are called like steps, inputs or ``answer``, or of one value, it fills that. Its usage is the sum over all
    calls. A streamed request streams the finished answer.

    Every call of the guard counts as a request, before which the run's `UsageLimits` are checked. Repeating failed
    requests is left to the model (its SDK does so twice by default): `retry` has none unless you give one.
    An answer that the output type or a validator refuses is not worked out again: that is an error.

    What is not verified raises `NotVerified`; an error of the framework or the provider is raised as it came, with the
    `Result` as its attribute ``stepguard``. Where it is raised, what was spent stands in the run's usage as well.

    Args:
        procedures: procedures that can be named.
        procedure: the procedure of every request: a `Procedure`, its text, a name in `procedures`, or a function of
            the `RunContext` that returns one of them, or None for a request that names none. It may be async.
        inputs: values of inputs, or a function of the `RunContext` that returns them. None, or None from it: messages
            of trusted roles give them.
        trust: the roles of messages that may be a procedure, or give values of inputs; by default none.
        guarded_only: refuse a request that would go on as it came, and say why.
        at_least: what is to stand behind every step of an answer; see `Result.raise_for_status`.
        mode: how replies are bound to their form. By default a JSON schema where the model's profile knows it,
            otherwise a tool.
        on_call: called with every `ClientCall` when it is passed on, or when its run has ended, however it has; what it
            raises is logged and changes nothing.
        id: as in any capability; needed only to override this one in a run.
        options: those of `stepguard.Guard`, for each guarded request.

    Raises:
        ConfigError: an option cannot work.
        ProcedureError: the text of a procedure is none.
    """

    def __init__(
        self,
        procedures: Mapping[str, Procedure] | None = None,
        *,
        procedure: Procedure | str | Callable[[RunContext[AgentDepsT]], Any] | None = None,
        inputs: Mapping[str, object] | Callable[[RunContext[AgentDepsT]], Any] | None = None,
        trust: Trust | None = None,
        guarded_only: bool = False,
        at_least: Strength = "proved",
        mode: Mode | None = None,
        on_call: Callable[[ClientCall], object] | None = None,
        id: str | None = None,
        **options: Unpack[KeptKeywords],
    ) -> None:
        self.id = id
        self._rules: Final = CallRules.checked(
            procedures=procedures, trust=trust, guarded_only=guarded_only, at_least=at_least, on_call=on_call
        )
        self._procedure: Final = (
            procedure
            if procedure is None or callable(procedure)
            else named_procedure(procedure, self._rules.procedures)
        )
        check_inputs(inputs, procedure)
        if isinstance(self._procedure, Procedure):
            if isinstance(inputs, Mapping):
                self._procedure.accept_inputs(inputs)
            check_support([self._procedure], at_least)
        check_one_of(mode, get_args(Mode), "mode", optional=True)
        check_options(options, of="GuardedProcedures", allowed=KeptKeywords)
        self._inputs: Final = inputs
        self._allowed: Final[dict[str, Any]] = {"at_least": at_least}
        self._mode: Final[Mode | None] = mode
        self._options: Final[KeptKeywords] = {**options}
        if self._options.get("retry") is None:
            self._options["retry"] = RetryPolicy(retries=0)
        self._options["ledger"] = Guard(_silent_model, **self._options).ledger  # what cannot work is told now

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: it is not made from a file."""
        return None

    async def wrap_model_request(
        self, ctx: RunContext[AgentDepsT], *, request_context: ModelRequestContext, handler: WrapModelRequestHandler
    ) -> ModelResponse:
        """Run the request guarded where it asks for a procedure; pass it on otherwise.

        Raises:
            NotVerified: nothing may be handed on.
            UsageError: the request asks for a procedure that cannot be run; see
            `stepguard.integrations.chat.requests.find_job`.
        """
        # First, and before any cost: the framework repeats a request whose answer it has refused.
        _refuse_again(request_context)
        messages = read_agent_messages(request_context)
        named = await _resolved(self._procedure, ctx)
        inputs = None if named is None else await _resolved(self._inputs, ctx)
        job = self._rules.find(messages, model=request_context.model.model_name, named=named, inputs=inputs)
        if job is None:
            return await handler(request_context)
        check_support([job.procedure], self._rules.at_least)
        if (request_context.model_settings or {}).get("stop_sequences"):
            raise ConfigError("a guarded request takes no stop_sequences: they would cut replies off", option="stop")
        shape = AnswerShape(request_context.model_request_parameters, job.procedure)
        return await self._run(job, shape, AgentBackend(ctx, request_context, mode=self._mode), request_context)

    async def _run(
        self, job: Job, shape: AnswerShape, backend: AgentBackend, context: ModelRequestContext
    ) -> ModelResponse:
        options: KeptKeywords = {**self._options}
        seed = (context.model_settings or {}).get("seed")
        if seed is not None:
            options["seed"] = seed
        guard = Guard(backend, **options)
        run = guard.start(job.procedure, job.inputs, label=job.label)
        told: list[Result] = []
        try:
            with self._rules.telling(backend.name, job, run) as told:
                await guard.adrive(run)
            return self._response(told[0], job, shape, backend)
        except BaseException as error:
            backend.charge()
            vars(error)[_KEY] = told[0]
            raise

    def _response(self, result: Result, job: Job, shape: AnswerShape, backend: AgentBackend) -> ModelResponse:
        if backend.failure is not None and result.error is backend.failure[0]:
            raise backend.failure[1]
        why = shortfall(result, **self._allowed)
        if why is not None:
            raise NotVerified(refusal(result, at_least=self._allowed["at_least"]), result=result) from why
        body = completion_body(result, model=backend.name, job=job, **self._allowed)
        parts = shape.parts(result, body["choices"][0]["message"]["content"])
        last = backend.last
        return ModelResponse(
            parts,
            usage=backend.answered(),
            model_name=backend.name if last is None else last.model_name,
            provider_name=None if last is None else last.provider_name,
            provider_url=None if last is None else last.provider_url,
            finish_reason="stop",
            metadata={_KEY: _Facts(body["stepguard"], result)},
        )


def result_of(found: object) -> Result | None:
    """The result behind what an agent returned (or its last response), or behind an error; None where there is none.

    A response that was stored as JSON and read again holds the facts in ``metadata["stepguard"]``, and no `Result`.
    """
    seen: set[int] = set()
    while isinstance(found, BaseException) and id(found) not in seen:
        seen.add(id(found))
        for held in (getattr(found, _KEY, None), getattr(found, "result", None)):
            if isinstance(held, Result):
                return held
        found = found.__cause__ or found.__context__
    response = found if isinstance(found, ModelResponse) else getattr(found, "response", None)
    held = (getattr(response, "metadata", None) or {}).get(_KEY)
    return held.result if isinstance(held, _Facts) else None


class _Facts(dict[str, Any]):
    """The facts of a result as JSON data, so that a message history can be stored; and the result itself."""

    def __init__(self, facts: Mapping[str, Any], result: Result) -> None:
        super().__init__(facts)
        self.result: Final = result

    def __reduce__(self) -> tuple[Any, ...]:
        return _Facts, (dict(self), self.result)


def _silent_model(messages: list[dict[str, str]]) -> str:
    return ""


async def _resolved(given: Any, ctx: RunContext[Any]) -> Any:
    if not callable(given):
        return given
    found = given(ctx)
    return await found if inspect.isawaitable(found) else found


def _refuse_again(context: ModelRequestContext) -> None:
    """End a run whose verified answer was refused: working it out again costs the same and gives the same."""
    answered = next((each for each in reversed(context.messages) if isinstance(each, ModelResponse)), None)
    result = result_of(answered)
    last = context.messages[-1]
    if result is None or isinstance(last, ModelResponse):
        return
    if not any(isinstance(part, UserPromptPart) for part in last.parts):  # how it asks again differs between releases
        error = UnexpectedModelBehavior(
            f"the answer of {result.procedure} was refused by the agent's output type or one of its validators; it is "
            f"{result.status}, and to ask again would give the same (run {result.run_id})"
        )
        vars(error)[_KEY] = result
        raise error
