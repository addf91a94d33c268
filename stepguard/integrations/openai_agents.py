"""The OpenAI Agents SDK: a procedure as a tool of an agent, and outputs of other tools checked before it reads them.

::

    agent = Agent(name="clerk", tools=[procedure_tool(procedure, guard)])

    @function_tool(tool_output_guardrails=[verified_output(procedure)])
    def invoice(price: str, quantity: int) -> str: ...

What an agent is told of a value that is not verified is the name of a step and a kind of deviation: never the value,
the reason, or what the checker knows. Everything else of it is in the `Result` or `OutputCheck` of the application.

One layer repeats requests: the guard repeats those that it makes, and the SDK repeats none of a tool's. An agent may
call a tool again that has refused, which ``Runner.run(max_turns=...)`` bounds; what one call may spend is the guard's
`Budget`. Tracing and logging are the SDK's own, and nothing here turns them on or off: with tracing on, the SDK sends
arguments and outputs of tools to where its exporter points (``RunConfig(trace_include_sensitive_data=False)``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Literal, get_args
from weakref import WeakKeyDictionary

from stepguard.core.arguments import check_callable, check_instance, check_one_of
from stepguard.core.usage import Usage
from stepguard.core.verdicts import Strength
from stepguard.errors import ConfigError, InputError, MissingExtraError
from stepguard.guard import Guard
from stepguard.integrations.chat.answers import refusal, shortfall
from stepguard.integrations.chat.requests import named_procedure
from stepguard.integrations.outputs.checker import OutputChecker
from stepguard.integrations.outputs.judging import OutputCheck
from stepguard.integrations.support import check_support
from stepguard.integrations.tool_arguments import arguments_schema, read_arguments, shown_value
from stepguard.language.strict_json import JsonObject, decode
from stepguard.language.value_types import TEXT
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step
from stepguard.results import Result
from stepguard.telemetry.logging import call_safely, log_event

try:
    import agents
    from agents.exceptions import AgentsException
    from agents.tool_context import ToolContext
except ImportError as error:
    raise MissingExtraError("A tool for the OpenAI Agents SDK", extra="agents") from error

__all__ = ["OnWrong", "OutputCheck", "ProcedureNotVerified", "ToolOnUnverified", "procedure_tool", "verified_output"]

ToolOnUnverified = Literal["refuse", "raise"]
"""How a procedure's tool acts without a verified answer.

======  ===================================================================================================
refuse  tells the agent which step failed, and in which way; the run of the agent goes on
raise   raises `ProcedureNotVerified`, which ends the run of the agent
======  ===================================================================================================

Where the output of a tool is that of the agent (``tool_use_behavior="stop_on_first_tool"``), take ``"raise"``.
"""

OnWrong = Literal["reject", "raise"]
"""What happens to an output that is not verified.

======  ===================================================================================================
reject  the agent is told so in its place, and goes on
raise   the SDK raises ``ToolOutputGuardrailTripwireTriggered``; its ``output.output_info`` is the `OutputCheck`
======  ===================================================================================================
"""

_BLOCKS: Final = ("text", "input_text", "output_text")
"""The SDK's types of the text blocks that it wraps around outputs."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")  # as the API takes names of tools


class ProcedureNotVerified(AgentsException):  # type: ignore[misc, unused-ignore]
    """A procedure that an agent called gave no verified answer. `result` is its result; the cause says why."""

    def __init__(self, message: str, *, result: Result) -> None:
        super().__init__(message)
        self.message = message
        self.result = result


def procedure_tool(
    procedure: Procedure | str,
    guard: Guard,
    *,
    name: str | None = None,
    description: str | None = None,
    values: Collection[str] | None = None,
    on_unverified: ToolOnUnverified = "refuse",
    at_least: Strength = "proved",
    on_result: Callable[[Result], object] | None = None,
) -> agents.FunctionTool:
    """A tool that carries out a procedure, guarded.

    Its arguments are the inputs of the procedure, as a strict JSON Schema. What it returns to the agent is JSON with
    ``answer``, ``values`` and ``status``, or text that says why there is none. Arguments that do not fit are answered
    with what is wrong with them, and no model is asked.

    The tokens of all attempts are added to the usage of the agent's run, also where it is cancelled or times out. The
    id of the run is in ``custom_data["stepguard"]`` of the SDK's output item. The tool may be shared between agents,
    threads and event loops as far as the guard may. It is a dataclass: ``dataclasses.replace(tool,
    needs_approval=True, timeout_seconds=60)`` sets what else the SDK knows.

    Args:
        procedure: what to carry out: a `Procedure`, or its text.
        guard: the guard, with a model of its own; it may be the agent's or another one.
        name: the name of the tool; by default from that of the procedure.
        description: what the agent reads of it; by default its inputs, its answer and when to call it.
        values: which steps are told beside the answer; None: all of them. Of a lazy procedure the answer alone is.
        on_unverified: see `ToolOnUnverified`.
        at_least: what is to stand behind every step of an answer; see `Result.raise_for_status`.
        on_result: called with the `Result` of every run when it has ended, however it has; what it raises is logged
            and changes nothing.

    Raises:
        ProcedureError: the text is no procedure.
        ConfigError: an option cannot work.
    """
    wanted = named_procedure(procedure)
    check_instance(guard, Guard, "guard", what="a Guard such as Guard('openai/gpt-4.1-mini')")
    # An agent would be given unverified values as the tool's answer.
    if guard.observing:
        raise ConfigError("an observing guard takes wrong steps as they are: leave observe out", option="guard")
    check_one_of(on_unverified, get_args(ToolOnUnverified), "on_unverified")
    check_support([wanted], at_least)
    check_callable(on_result, "on_result", optional=True)
    types = {} if wanted.look_back is not None else {step.id: step.type for step in wanted.steps}
    if unknown := sorted(set(values or ()) - types.keys()):
        raise ConfigError(f"{wanted.name} has no step {unknown[0]!r}", option="values")
    included = types.keys() if values is None else set(values)
    answer_type = {each.name: each.type for each in wanted.inputs} | types
    of_answer = answer_type.get(wanted.answer, wanted.steps[len(wanted) - 1].type if wanted.straight else TEXT)
    # Weak: a tool lives as long as its agent, and the context of a call should not.
    runs: WeakKeyDictionary[object, str] = WeakKeyDictionary()

    def done(context: ToolContext[Any], result: Result) -> None:
        runs[context] = result.run_id
        context.usage.add(_usage(result))
        log_event("chat_guarded", run_id=result.run_id, procedure=result.procedure, found="named", left_out=0)
        if on_result is not None:
            call_safely(on_result, result, about=f"run {result.run_id}")

    def answer(result: Result) -> str:
        why = shortfall(result, at_least=at_least)
        if why is not None:
            if on_unverified == "raise":
                raise ProcedureNotVerified(refusal(result, at_least=at_least), result=result) from why
            return (
                f"{refusal(result, at_least=at_least)}. Do not work the values out yourself, and do not call this "
                "again with the same arguments: say that there is no verified answer."
            )
        assert result.answer is not None
        content: dict[str, object] = {"answer": shown_value(of_answer, result.answer)}
        content["values"] = {
            name: shown_value(types[name], value) for name, value in result.values.items() if name in included
        }
        content["status"] = result.status
        if result.weak:
            content["weak"] = dict(result.weak)
        return json.dumps(content, ensure_ascii=False, allow_nan=False)

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        try:
            run = guard.start(wanted, read_arguments(wanted, arguments))
        except InputError as error:
            return f"Not run: {error}"
        try:
            result = await guard.adrive(run)
        except BaseException:  # it is cancelled, say: what was verified and paid for is told
            done(context, run.result())
            raise
        done(context, result)
        return answer(result)

    def custom_data(given: agents.FunctionToolCustomDataContext) -> Mapping[str, Any] | None:
        run_id = runs.get(given.tool_context)
        return None if run_id is None else {"stepguard": {"run_id": run_id}}

    return agents.FunctionTool(
        name=_tool_name(wanted, name),
        description=_description(wanted, at_least) if description is None else description,
        params_json_schema=arguments_schema(wanted.inputs),
        on_invoke_tool=invoke,
        custom_data_extractor=custom_data,
    )


def verified_output(
    procedure: Procedure | Step | str,
    *,
    inputs: Mapping[str, object] | None = None,
    steps: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    read: Callable[[Any], object] | None = None,
    on_wrong: OnWrong = "reject",
    at_least: Strength = "proved",
    check_timeout: float | None = 60.0,
    on_check: Callable[[OutputCheck], object] | None = None,
) -> agents.ToolOutputGuardrail[Any]:
    """A guardrail for a tool whose output claims the values of a step or of a procedure.

    The output is checked against the arguments of the call, whose names are those of the inputs, before the agent
    reads it: it passes where the answer is in it and all that it holds is verified. What cannot be decided does not
    pass, and neither does an error message in the place of an output. What an output may look like is described in
    `stepguard.integrations.outputs.checker`. No model is asked.

    It is given to ``function_tool(tool_output_guardrails=[...])``, or to an MCP server of the SDK. The `OutputCheck`
    of every call is among ``tool_output_guardrail_results`` of the SDK's result, as ``output.output_info``.

    Args:
        procedure: what the tool claims to have carried out: a `Procedure`, its text, or a single `Step`.
        inputs: values of inputs that are not among the arguments of the tool.
        steps: the steps that an output with fields must hold; by default the answer alone. The others are checked
            where they are given, and computed where they are not.
        ignore: names in an output that are not looked at; anything else that is no step makes it wrong.
        read: from an output to what it claims: a value, or a mapping of values by step.
        on_wrong: see `OnWrong`.
        at_least: what is to stand behind every step.
        check_timeout: seconds after which a check of yours is given up; the output is undecided then. None waits for
            as long as it takes.
        on_check: called with every `OutputCheck`; what it raises is logged and changes nothing.

    Raises:
        ProcedureError: the text is no procedure.
        ConfigError: an option cannot work, or the answer cannot be verified at all.
    """
    check_one_of(on_wrong, get_args(OnWrong), "on_wrong")
    check_callable(read, "read", optional=True)
    checker = OutputChecker(
        procedure if isinstance(procedure, Step) else named_procedure(procedure),
        inputs=inputs,
        steps=steps,
        ignore=ignore,
        read=lambda output: _unwrapped(output if read is None else read(output), checker),
        at_least=at_least,
        check_timeout=check_timeout,
        on_check=on_check,
    )

    async def check(data: agents.ToolOutputGuardrailData) -> agents.ToolGuardrailFunctionOutput:
        try:
            values = _inputs(data.context.tool_arguments, checker)
        except InputError as error:
            found = checker.rejected("undecided", str(error), step=error.name)
        else:
            found = await checker.check(data.output, values)
        if found.verified:
            return agents.ToolGuardrailFunctionOutput.allow(found)
        if on_wrong == "raise":
            return agents.ToolGuardrailFunctionOutput.raise_exception(found)
        return agents.ToolGuardrailFunctionOutput.reject_content(
            f"stepguard withholds the output of {data.context.tool_name}: {found.summary()}. Do not work the values "
            "out yourself: say that there is no verified value.",
            found,
        )

    return agents.ToolOutputGuardrail(guardrail_function=check, name=f"verified_output({checker.name})")


def _inputs(arguments: str, checker: OutputChecker) -> dict[str, Value]:
    """The inputs behind an output, from the arguments of the call as the JSON text that came.

    Raises InputError: they are not all among them, or in a form that says nothing certain.
    """
    try:
        found = decode(arguments.strip() or "{}")
    except ValueError:
        found = None
    if not isinstance(found, JsonObject):
        raise InputError("the arguments of the call are no JSON object")
    if twice := found.repeated & checker.inputs:
        raise InputError(f"the argument {min(twice)!r} is given twice", name=min(twice))
    return checker.accept({name: value for name, value in found.items() if name in checker.inputs})


def _unwrapped(output: object, checker: OutputChecker) -> object:
    """An output without the block of text that the SDK wraps around it."""
    if isinstance(output, list | tuple) and len(output) == 1:
        output = output[0]
    block = output.model_dump() if isinstance(output, agents.ToolOutputText) else output
    if isinstance(block, Mapping) and block.get("type") in _BLOCKS and isinstance(block.get("text"), str):
        rest = [value for name, value in block.items() if name not in ("type", "text")]
        if not any(rest) and checker.ids.isdisjoint(block):
            return block["text"]
    return output


def _tool_name(procedure: Procedure, name: str | None) -> str:
    if name is None:
        return re.sub(r"[^A-Za-z0-9_-]+", "_", procedure.name).strip("_")[:64] or "procedure"
    if not isinstance(name, str) or not _NAME.match(name):
        raise ConfigError(
            f"{name!r:.80} cannot be the name of a tool: use 1 to 64 letters, digits, _ and -", option="name"
        )
    return name


def _description(procedure: Procedure, at_least: Strength) -> str:
    checked = "each of them proved right" if at_least == "proved" else "and names those that are less than proved"
    given = ", ".join(each.name for each in procedure.inputs)
    steps = f"{len(procedure)} steps{'' if procedure.straight else ' with branches or loops'}"
    return (
        f"Works out {procedure.answer}{f' from {given}' if given else ''} by the procedure {procedure.name!r}, "
        f"{steps}, {checked}. Call it rather than working the values out. It gives JSON "
        "with the answer and the values of its steps, or says why there is no verified answer."
    )


def _usage(result: Result) -> agents.Usage:
    """The usage of a run, as the SDK counts it."""
    entries = agents.Usage()
    for attempt in result.attempts:
        entries.add(_one_usage(attempt.usage))
    whole = _one_usage(result.usage)
    whole.request_usage_entries = entries.request_usage_entries
    return whole


def _one_usage(usage: Usage) -> agents.Usage:
    from openai.types.completion_usage import CompletionTokensDetails, PromptTokensDetails

    details: dict[str, Any] = {  # the SDK makes its own of them, whose fields differ between versions
        "input_tokens_details": PromptTokensDetails(cached_tokens=usage.cached_tokens),
        "output_tokens_details": CompletionTokensDetails(reasoning_tokens=usage.reasoning_tokens),
    }
    return agents.Usage(
        requests=usage.calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.tokens,
        **details,
    )
