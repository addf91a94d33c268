"""An MCP server: agents verify the steps they take, have procedures run by the guard, and have transcripts audited.

::

    server = create_server({"mini": "openai/gpt-4.1-mini"}, procedures="procedures/")
    server.run("stdio")                    # or ``stepguard mcp --model openai/gpt-4.1-mini --procedures procedures/``

====================  ==========================================================================================
``verify_step``       is this value right for this step, from these values? Exact; no model is asked
``run_procedure``     carry a procedure out on a model, step by verified step
``audit_transcript``  what is wrong with a text in which a procedure was carried out
``list_procedures``   the procedures that can be named, where the server has some
====================  ==========================================================================================

The caller is a model. It is told verdicts, kinds of deviation, steps and lines, and never an expected value or a
reason. Values are exact: text, or JSON numbers of at most 15 digits where the transport has made floats of them;
`stepguard.integrations.mcp.wire` serves over stdio and HTTP without that.

``run_procedure`` asks the models that the server was given, and the client's own model (sampling) where it was given
none and the client offers it. A run that is not verified is a tool error without an answer. The guard repeats what is
not right; a client that calls again spends the budget of another run.

Needs the extra ``mcp``.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel

from stepguard.auditing import audit
from stepguard.backends.making import as_backend
from stepguard.core.arguments import check_count, check_instance, check_mapping
from stepguard.core.verdicts import Strength
from stepguard.engine.budget import Budget
from stepguard.errors import ConfigError, MissingExtraError, StepguardError
from stepguard.guard import Guard
from stepguard.guard.options import DropInKeywords, check_options
from stepguard.integrations.chat.requests import IN_PROMPT, named_procedure
from stepguard.integrations.mcp.claims import accept_values, judge_claim
from stepguard.integrations.mcp.parameters import (
    ModelAsked,
    ProcedureText,
    RunName,
    ValueClaimed,
    ValuesGiven,
    WorkingShown,
)
from stepguard.integrations.mcp.reports import (
    AuditReport,
    ProcedureList,
    RunReport,
    StepCheck,
    check_report,
    describe,
    report_audit,
    report_run,
)
from stepguard.integrations.mcp.runs import Progress, plain_conflicts, to_its_end
from stepguard.integrations.support import check_support
from stepguard.ledger import Ledger
from stepguard.procedure.folder import load_procedures
from stepguard.procedure.procedure import Procedure
from stepguard.results import Result
from stepguard.telemetry.hooks import as_observers
from stepguard.telemetry.logging import call_safely, log_event

try:
    import anyio.to_thread
    from mcp.server.mcpserver import Context, MCPServer
    from mcp_types import CallToolResult, TextContent, ToolAnnotations

    from stepguard.integrations.mcp.sampling import SamplingBackend, can_sample
except ImportError:
    raise MissingExtraError("the MCP server", extra="mcp") from None

DEFAULT_BUDGET: Final = Budget(calls=60, tokens=200_000, seconds=300.0)
"""The default budget of one run."""

_INSTRUCTIONS: Final = (
    "Carry a procedure out step by step. Check every step with verify_step before you use its value; where it does not "
    "pass, do the step again from the values it reads. 'undecided' is no pass. Write numbers as text, such as "
    '"24.90", so that nothing rounds them.'
)
_RUN: Final[Mapping[bool, str]] = {
    True: (
        "Carry a procedure out on a model, every step of it proved right; it costs model calls. The answer is given "
        "only then. Otherwise this is an error that names the step and the kind of mistake."
    ),
    False: (
        "Carry a procedure out on a model, its steps checked as far as they can be; it costs model calls. The answer "
        "names the steps that are less than proved. Where a check did not pass, this is an error that names the step "
        "and the kind of mistake."
    ),
}
_CHECK_SECONDS: Final = 60.0
_T = TypeVar("_T")


def create_server(
    models: Mapping[str, object] | None = None,
    *,
    procedures: Mapping[str, Procedure] | str | Path | None = None,
    accept_texts: bool | None = None,
    guard: DropInKeywords | None = None,
    tell_reasons: bool = False,
    at_least: Strength = "proved",
    max_procedure: int = 100_000,
    max_transcript: int = 200_000,
    max_runs: int = 16,
    ledger: str | Path | Ledger | None = None,
    on_result: Callable[[Result], object] | None = None,
) -> MCPServer[Any]:
    """An `MCPServer` with the tools of stepguard; `run` it, or mount its application, as its library says.

    Args:
        models: what ``run_procedure`` may ask, by the names that callers use, the first one by default. Each is a
            backend, a callable, or a name such as ``"openai/gpt-4.1-mini"``. None: the model of the client, where it
            offers that.
        procedures: procedures that can be named; or a folder whose files each hold one, named as the file.
        accept_texts: whether a caller may write a procedure of its own, as text: it may have read it anywhere. None:
            only where `procedures` has none to name.
        guard: options of `Guard` for every run. Without a budget in it, `DEFAULT_BUDGET` is that of every run.
        tell_reasons: whether ``audit_transcript`` tells reasons and expected values: where people read it, and no
            model that is to do better next time.
        at_least: what is to stand behind every step of an answer; see `Result.raise_for_status`.
        max_procedure: the longest text of a procedure, and of all values together, in characters.
        max_transcript: the longest transcript, in characters.
        max_runs: how many runs may go on at once; a call beyond that is an error.
        ledger: where runs are kept to which a caller gives a ``run_id``: the path of a file, or a
            `stepguard.ledger.Ledger`. The same run again gives its result without asking a model, or goes on.
        on_result: called with the `Result` of every run, cancelled ones included; what it raises is logged and changes
            nothing.

    Raises:
        ConfigError: an argument cannot work.
        ProcedureError: a file holds no procedure; the message names it.
        LedgerError: the ledger cannot be opened.
    """
    limits = {"procedure": max_procedure, "transcript": max_transcript, "runs": max_runs}
    for name, limit in limits.items():
        check_count(limit, f"max_{name}")
    check_mapping(models, "models", what='a mapping such as {"mini": "openai/gpt-4.1-mini"}', optional=True)
    options = dict(guard or {})
    check_options(options, of="a guard here")
    if options.get("budget") is None:
        options["budget"] = DEFAULT_BUDGET
    named = load_procedures(procedures)
    check_support(named.values(), at_least)
    backends = {name: as_backend(each) for name, each in (models or {}).items()}
    for backend in backends.values() or [as_backend(lambda _: "")]:
        Guard(backend, **options)  # type: ignore[arg-type]  # what cannot work is told now
    check_instance(ledger, (str, Path, Ledger), "ledger", what="the path of a file, or a Ledger", optional=True)
    tools = _Tools(
        models=backends,
        procedures=named,
        accept_texts=not named if accept_texts is None else bool(accept_texts),
        options=options,
        tell_reasons=tell_reasons,
        at_least=at_least,
        limits=limits,
        ledger=Ledger(ledger) if isinstance(ledger, str | Path) else ledger,
        on_result=on_result,
    )
    server: MCPServer[Any] = MCPServer("stepguard", instructions=_INSTRUCTIONS, log_level="WARNING")
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    server.add_tool(tools.verify_step, annotations=reads)
    server.add_tool(
        tools.run_procedure if ledger is None else tools.run_kept,
        name="run_procedure",
        description=_RUN[at_least == "proved"],
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=True),
    )
    server.add_tool(tools.audit_transcript, annotations=reads)
    if named:
        server.add_tool(tools.list_procedures, annotations=reads)
    return server


@dataclass(slots=True, eq=False)
class _Tools:
    """The tools; what their first lines say is what callers read."""

    models: Mapping[str, object]
    procedures: Mapping[str, Procedure]
    accept_texts: bool
    options: Mapping[str, Any]
    tell_reasons: bool
    at_least: Strength
    limits: Mapping[str, int]
    ledger: Ledger | None
    on_result: Callable[[Result], object] | None
    running: int = 0

    async def verify_step(
        self,
        procedure: ProcedureText,
        step: str,
        values: ValuesGiven,
        value: ValueClaimed,
        working: WorkingShown = None,
    ) -> Annotated[CallToolResult, StepCheck]:
        """Check one step of a procedure exactly: is this its value, given the values of what it reads?

        `values` holds the inputs and earlier steps that the step reads. The verdict is passed, failed (with the kind
        of mistake) or undecided, which is no pass. The right value is never told.
        """

        async def work() -> CallToolResult:
            self._limit("procedure", str(value), working or "", *(f"{key}{each}" for key, each in values.items()))
            parsed = await self._procedure(procedure)
            given = accept_values(parsed, step, values)
            judged, worked = await judge_claim(given, value, working, timeout=_CHECK_SECONDS)
            report = check_report(given.step, judged, working=worked, given=() if given.wrong else given.unchecked)
            if given.wrong is not None:
                told = f"{step} failed (wrong_operand): the value given for {given.wrong} is not that of its step."
                report = report.model_copy(update={"told": told})
            return _tool_result(report, report.told)

        return await _answered(work())

    async def run_procedure(
        self, procedure: ProcedureText, inputs: ValuesGiven, ctx: Context[Any, Any], model: ModelAsked = None
    ) -> Annotated[CallToolResult, RunReport]:
        return await self.run_kept(procedure, inputs, ctx, model)

    # A tool of its own: callers read its parameters, and without a ledger a `run_id` would promise what is not kept.
    async def run_kept(
        self,
        procedure: ProcedureText,
        inputs: ValuesGiven,
        ctx: Context[Any, Any],
        model: ModelAsked = None,
        run_id: RunName = None,
    ) -> Annotated[CallToolResult, RunReport]:
        async def work() -> CallToolResult:
            self._limit("procedure", *(f"{key}{each}" for key, each in inputs.items()))
            name, backend = self._model(model, ctx)
            parsed = await self._procedure(procedure)
            check_support([parsed], self.at_least)
            if self.running >= self.limits["runs"]:
                raise ConfigError(f"{self.running} runs go on already: call again when one has ended", option="runs")
            result = await self._run(parsed, inputs, backend, ctx, found=procedure in self.procedures, run_id=run_id)
            report, told = report_run(result, model=name, at_least=self.at_least)
            return _tool_result(report, told, error=not report.answered)

        return await _answered(work())

    async def audit_transcript(
        self, procedure: ProcedureText, inputs: ValuesGiven, transcript: str
    ) -> Annotated[CallToolResult, AuditReport]:
        """Say what is wrong with a text in which a procedure was carried out: kind of mistake, step and line of each.

        What could not be judged is named, and is no pass.
        """

        async def work() -> CallToolResult:
            self._limit("procedure", *(f"{key}{each}" for key, each in inputs.items()))
            self._limit("transcript", transcript)
            parsed = await self._procedure(procedure)
            judge = functools.partial(audit, parsed, inputs, transcript, check_timeout=_CHECK_SECONDS)
            report = report_audit(await _in_thread(judge), tell_reasons=self.tell_reasons)
            return _tool_result(report, report.told)

        return await _answered(work())

    async def list_procedures(self) -> ProcedureList:
        """List the procedures that can be named: their inputs, their steps and their answer."""
        return describe(self.procedures)

    async def _procedure(self, text: str) -> Procedure:
        self._limit("procedure", text)
        if not self.accept_texts and text not in self.procedures:
            known = ", ".join(sorted(self.procedures)[:20])
            raise ConfigError(f"this server runs its own procedures alone, by name: {known}", option="procedure")
        return await _in_thread(functools.partial(named_procedure, text, self.procedures))

    def _limit(self, what: str, *texts: str) -> None:
        size, limit = sum(map(len, texts)), self.limits[what]
        if size > limit:
            raise ConfigError(f"this is too long: {size} characters, and at most {limit} are read", option=what)

    def _model(self, name: str | None, ctx: Context[Any, Any]) -> tuple[str, object]:
        if name is None and self.models:
            return next(iter(self.models.items()))
        if name is not None:
            if name in self.models:
                return name, self.models[name]
            known = ", ".join(self.models) or "none"
            raise ConfigError(f"this server has no model {name[:60]!r}: it has {known}", option="model")
        if can_sample(ctx):
            return "the client's model", SamplingBackend(ctx)
        raise ConfigError(
            "this server has no model: start it with --model NAME (or --base-url URL), or create_server(models=...); "
            "the client offers none of its own (sampling)",
            option="model",
        )

    async def _run(
        self,
        procedure: Procedure,
        inputs: Mapping[str, object],
        backend: object,
        ctx: Context[Any, Any],
        *,
        found: bool,
        run_id: str | None,
    ) -> Result:
        progress = Progress(ctx, len(procedure) if procedure.straight else None)
        observers = [*as_observers(self.options.get("observer")), progress.observe]
        options = {**self.options, "observer": observers, "ledger": None if run_id is None else self.ledger}
        label = procedure.name if found else IN_PROMPT
        guard = Guard(backend, **options)
        start = functools.partial(guard.start, procedure, inputs, label=label, run_id=run_id)
        with plain_conflicts():
            run = start() if run_id is None else await _in_thread(start)
        log_event("chat_guarded", run_id=run.id, procedure=run.label, found="named" if found else "prompt", left_out=0)
        self.running += 1
        try:
            async with progress:
                return await to_its_end(guard.adrive(run))
        finally:
            self.running -= 1
            if self.on_result is not None:
                call_safely(self.on_result, run.result(), about=f"run {run.id}")


async def _in_thread(work: Callable[[], _T]) -> _T:
    # What is abandoned goes on to its end, which is bounded by the limits on sizes.
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)


async def _answered(work: Awaitable[CallToolResult]) -> CallToolResult:
    """Await a tool's answer; what the caller can mend becomes an error of the tool, which the library does not log."""
    try:
        return await work
    except StepguardError as error:
        return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)


def _tool_result(report: BaseModel, text: str, *, error: bool = False) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=report.model_dump(mode="json"), is_error=error
    )
