"""LangChain: a middleware with which an agent carries out procedures guarded (``pip install "stepguard[langchain]"``).

::

    from langchain.agents import create_agent
    from stepguard.integrations.langchain.middleware import GuardMiddleware

    guard = GuardMiddleware(procedure=invoice, inputs=lambda request: request.runtime.context["order"])
    agent = create_agent("openai:gpt-4.1-mini", tools=[...], middleware=[guard], context_schema=dict)
    state = agent.invoke({"messages": [...]}, context={"order": {"price": "24.90", "quantity": 3}})
    state["messages"][-1].content     # every step and the answer, as text
    state["stepguard"]                # the `Result`

A call of the model for which a procedure is named runs guarded, and so does one of which a message is one, where the
host trusts its role (`stepguard.integrations.chat.trust.Trust`). All others are passed on as they came; the log events
``chat_guarded`` and ``chat_passed`` and `on_call` tell the two apart. The guard asks the agent's own model. No tools
are offered in guarded requests, and the agent's system prompt is not sent with them.

Place. Middleware that stands behind this one (later in the list) sees every single request of the guard, and what
stands in front of it sees one call. Put it last, but for what is to see single requests, such as a log or a limiter:
middleware that changes prompts would change the guard's.

Retries. One layer repeats requests that failed: the model itself (``max_retries``), and the guard does not, unless
`retry` says so; then give the model ``max_retries=0``. A `ModelRetryMiddleware` belongs in front of this one, where
it does not repeat a refusal by default. Behind it, give it ``on_failure="error"``: its error messages would be taken
for replies.

Streaming. ``stream_mode="messages"`` gives the finished answer as one message, and none of the replies it is made of.
``astream_events`` and tracers show every request, as they do for all that an agent does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Final, NotRequired, TypedDict, Unpack, get_args

from stepguard.backends.retry import RetryPolicy
from stepguard.core.arguments import check_callable, check_one_of
from stepguard.core.verdicts import Strength
from stepguard.errors import ConfigError, MissingExtraError, RunError
from stepguard.guard import Guard
from stepguard.guard.options import KeptKeywords, check_options
from stepguard.integrations.chat.answers import completion_body, shortfall
from stepguard.integrations.chat.calls import CallRules, ClientCall
from stepguard.integrations.chat.requests import Job, named_procedure
from stepguard.integrations.chat.trust import Trust, check_inputs
from stepguard.integrations.langchain.model import AsyncModelBackend, ModelBackend, ModelSettings, as_chat, model_name
from stepguard.integrations.langgraph import taken_over
from stepguard.integrations.openai.client import OnUnverified
from stepguard.integrations.support import check_support
from stepguard.procedure.procedure import Procedure
from stepguard.results import Result

try:
    from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import OmitFromSchema
    from langchain_core.exceptions import ModelRefusalError
    from langchain_core.messages import AIMessage
    from langgraph.channels import UntrackedValue
    from langgraph.types import Command
except ImportError as error:
    raise MissingExtraError("the LangChain middleware", extra="langchain") from error

ProcedureChoice = Procedure | str | None
"""The procedure of a call: a `Procedure`, its text, or a name among `procedures`; None for none."""

_FACTS: Final = (
    *("status", "strength", "run_id", "procedure", "answered", "found", "left_out", "completed", "total"),
    *("unverified", "weak", "assisted", "calls", "cost", "seconds"),
)


class GuardState(TypedDict):
    """What the middleware adds to the state of an agent."""

    stepguard: NotRequired[Annotated[Any, UntrackedValue, OmitFromSchema(input=True, output=False)]]
    """The `Result` of the last guarded call of this invocation; no checkpoint keeps it."""


class GuardedCallRefused(RunError, ModelRefusalError):  # type: ignore[misc, unused-ignore]
    """A guarded call has no answer to hand on. Its text names the step and no value: it may be told to a model.

    Attributes:
        result: all that was verified and spent; its ``status`` and ``error`` say why it stopped.
        raw_message: the refusal as a message.

    Its cause is the `RunError` of `Result.raise_for_status`. LangChain's retries leave it alone.
    """

    def __init__(self, message: str, *, result: Result, raw_message: AIMessage | None = None) -> None:
        super().__init__(message, result=result)
        self.raw_message = raw_message


class GuardMiddleware(AgentMiddleware[Any, Any, Any]):  # type: ignore[misc, unused-ignore]
    """Runs the procedures that an agent is given guarded, on the agent's own model.

    It does not change, and may be shared between agents, threads and event loops.

    Args:
        procedure: what every call carries out: a `Procedure`, its text, or a name among `procedures`. Or a function of
            LangChain's `ModelRequest` that says so for each call, from its ``state`` or ``runtime.context``. None, or
            None from it: a message of a trusted role, if any.
        inputs: the values of its inputs, or a function of the `ModelRequest` that returns them. None, or None from it:
            messages of trusted roles give them.
        procedures: procedures that can be named.
        trust: the roles of messages that may be a procedure, or give values of inputs; by default none.
        guarded_only: refuse a call that would be passed on, and say why.
        on_unverified: ``"raise"`` raises `GuardedCallRefused` where a result is no answer; ``"return"`` answers with a
            message whose content is one block ``{"type": "refusal", ...}`` that names the step.
        at_least: what is to stand behind every step of an answer; see `Result.raise_for_status`.
        on_call: called with every `ClientCall` when it is passed on, or when its run has ended, however it has; what it
            raises is logged and changes nothing.
        settings: what a request of the guard binds to the model, such as ``lambda request: {"temperature":
            request.temperature}``. By default the schema of the reply, its length and a temperature for `ChatOpenAI`
            and its kin, and nothing for models of other families, whose parameters differ.
        options: those of `stepguard.Guard`, for each call: a budget is that of one call. By default a failed request
            is not repeated, because the model repeats it itself.

    A guarded call raises `InputError`, `ProcedureError` or `ConfigError` where it cannot be understood, and
    `ConfigError` where the agent has a ``response_format``, which no guarded answer fills. Interrupts and cancellation
    propagate; a call that is resumed runs anew.

    Raises:
        ConfigError: an option cannot work.
        ProcedureError: the text is no procedure.
    """

    state_schema = GuardState

    def __init__(
        self,
        *,
        procedure: ProcedureChoice | Callable[[ModelRequest[Any]], ProcedureChoice] = None,
        inputs: Mapping[str, object] | Callable[[ModelRequest[Any]], Mapping[str, object] | None] | None = None,
        procedures: Mapping[str, Procedure] | None = None,
        trust: Trust | None = None,
        guarded_only: bool = False,
        on_unverified: OnUnverified = "raise",
        at_least: Strength = "proved",
        on_call: Callable[[ClientCall], object] | None = None,
        settings: ModelSettings | None = None,
        **options: Unpack[KeptKeywords],
    ) -> None:
        super().__init__()
        self.tools: Sequence[Any] = []
        check_one_of(on_unverified, get_args(OnUnverified), "on_unverified")
        check_callable(settings, "settings", optional=True)
        check_inputs(inputs, procedure)
        check_options(options, of="GuardMiddleware", allowed=KeptKeywords)
        self._rules: Final = CallRules.checked(
            procedures=procedures, trust=trust, guarded_only=guarded_only, at_least=at_least, on_call=on_call
        )
        if procedure is not None and (isinstance(procedure, Procedure) or not callable(procedure)):
            procedure = named_procedure(procedure, self._rules.procedures)
            check_support([procedure], at_least)
        if options.get("retry") is None:
            # The model repeats failed requests itself (`max_retries`): two layers would multiply.
            options["retry"] = RetryPolicy(retries=0)
        self._procedure: Final = procedure
        self._inputs: Final = inputs
        self._on_unverified: Final[OnUnverified] = on_unverified
        self._allowed: Final[Mapping[str, Any]] = {"at_least": at_least}
        self._settings: Final = settings
        self._options: Final = options
        options["ledger"] = Guard(lambda messages: "", **options).ledger  # what cannot work is told now

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:
        """Carry out one call of the model, guarded where it asks for a procedure; LangChain calls this."""
        job = self._job(request)
        if job is None:
            return handler(request)
        backend = ModelBackend(request, handler, self._settings)
        guard = Guard(backend, **self._options)
        run = guard.start(job.procedure, job.inputs, label=job.label)
        with self._rules.telling(model_name(request.model), job, run):
            result = guard.drive(run)
        return self._answer(backend, job, result)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        job = self._job(request)
        if job is None:
            return await handler(request)
        backend = AsyncModelBackend(request, handler, self._settings)
        guard = Guard(backend, **self._options)
        run = guard.start(job.procedure, job.inputs, label=job.label)
        with self._rules.telling(model_name(request.model), job, run):
            result = await guard.adrive(run)
        return self._answer(backend, job, result)

    def _job(self, request: ModelRequest[Any]) -> Job | None:
        """What a call asks the guard to do; None, and told so, for one that is to be passed on."""
        choose, inputs = self._procedure, self._inputs
        named = choose if choose is None or isinstance(choose, Procedure | str) else choose(request)
        given = inputs(request) if callable(inputs) and named is not None else inputs
        messages = as_chat([*([] if request.system_message is None else [request.system_message]), *request.messages])
        known = None if named is None or callable(given) else given
        job = self._rules.find(messages, model=model_name(request.model), named=named, inputs=known)
        if job is None:
            return None
        check_support([job.procedure], self._rules.at_least)
        if request.response_format is not None:
            raise ConfigError(
                "a guarded call cannot fill the agent's response_format: use an agent without one, and the values of "
                'state["stepguard"]',
                option="response_format",
            )
        return job

    def _answer(self, backend: ModelBackend | AsyncModelBackend, job: Job, result: Result) -> ExtendedModelResponse:
        """A result as the response of the model.

        Raises GuardedCallRefused: it is not to be handed on, and the middleware raises then.
        """
        # An interrupt of the graph is no failed run: LangGraph has to see its own exception.
        if (taken := taken_over(result.error)) is not None:
            raise taken
        body = completion_body(result, model=backend.name, job=job, **self._allowed)
        message = _message(backend, body)
        why = shortfall(result, **self._allowed)
        if why is not None and self._on_unverified == "raise":
            refused = body["choices"][0]["message"]["refusal"]
            raise GuardedCallRefused(refused, result=result, raw_message=message) from why
        return ExtendedModelResponse(ModelResponse([message]), Command(update={"stepguard": result}))


def _message(backend: ModelBackend | AsyncModelBackend, body: Mapping[str, Any]) -> AIMessage:
    """The body of a chat completion as a message, without what a model is not to be told."""
    (choice,) = body["choices"]
    content, refusal = choice["message"]["content"], choice["message"]["refusal"]
    usage, facts = body["usage"], body["stepguard"]
    problem = facts["problem"]
    metadata = {name: facts[name] for name in _FACTS} | {
        # Reasons and values stay out: state and messages may be shown to a model.
        "problem": None if problem is None else {"step": problem["step"], "kind": problem["kind"]},
        "attempts": [
            {**attempt, "deviations": [{name: each[name] for name in ("kind", "step")} for each in deviations]}
            for attempt in facts["attempts"]
            for deviations in [attempt["deviations"]]
        ],
    }
    return AIMessage(
        content=content if refusal is None else [{"type": "refusal", "refusal": refusal}],
        id=f"stepguard-{facts['run_id']}",
        name=backend.speaker,
        response_metadata={
            "model_name": body["model"],
            "finish_reason": choice["finish_reason"],
            "stepguard": metadata,
        },
        usage_metadata={
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"],
            "input_token_details": {"cache_read": usage["prompt_tokens_details"]["cached_tokens"]},
            "output_token_details": {"reasoning": usage["completion_tokens_details"]["reasoning_tokens"]},
        },
    )
