"""What the tools of the MCP server answer: data for a program, and a text for the model that called.

The caller is a model, and what it is told may end up in its next attempt. So none of this holds an expected value or
the reason of a check: verdicts, kinds, names of steps and lines only. The reports of an audit may hold both, where
whoever runs the server asks for it (`create_server(tell_reasons=True)`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal

from pydantic import BaseModel

from stepguard.auditing import Audit
from stepguard.auditing.view import AuditSummary, AuditView
from stepguard.checks import Judgement
from stepguard.core.verdicts import STRENGTHS, DeviationKind, Strength
from stepguard.integrations.chat.answers import completion_body
from stepguard.language.expressions import format_expression
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step
from stepguard.results import Result
from stepguard.results.view import JsonValue, ResultSummary, ResultView

_LINES: Final = 200
"""A text names at most so many mistakes."""
_FINDINGS: Final = 1000
"""The data holds at most so many of them."""


class StepCheck(BaseModel):
    """What `verify_step` says of one claim.

    Attributes:
        step: the step.
        verdict: whether the claim passed. Undecided is no pass: no check applies, or none could tell.
        kind: why it did not pass, None where it did.
        strength: what stands behind a value that passed; see `stepguard.core.verdicts.Strength`.
        working_checked: whether the working was judged too, and not the value alone.
        taken_as_given: the earlier steps whose values the check rests on. They were not checked here.
        told: the same in words.
    """

    step: str
    verdict: Literal["passed", "failed", "undecided"]
    kind: DeviationKind | None
    strength: Strength
    working_checked: bool
    taken_as_given: list[str]
    told: str


class RunReport(ResultSummary):
    """What `run_procedure` says of a run.

    Attributes:
        answered: whether the answer is handed on. Without it there is none, whatever else stands here.
        values: the values of the steps that are as strong as the server asks, by their places (``items[2].paid``).
        step: the step at which the run stopped, None where it completed.
        kind: the kind of deviation there, None where it was something else.
        error: the class of the error behind ``failed``.
        model: the model that was asked.
    """

    answered: bool
    values: dict[str, JsonValue]
    step: str | None
    kind: DeviationKind | None
    error: str | None
    model: str


class AuditReport(AuditSummary):
    """What `audit_transcript` says.

    Attributes:
        left_out: how many findings are behind those, where there are very many.
        told: the same in words.
    """

    left_out: int
    told: str


class InputDescription(BaseModel):
    """An input of a procedure and its type."""

    name: str
    type: str


class StepDescription(BaseModel):
    """A step: the variable it sets, its type, what it reads, and what is to be done."""

    id: str
    type: str
    reads: list[str]
    text: str


class ProcedureDescription(BaseModel):
    """A procedure that can be named."""

    name: str
    inputs: list[InputDescription]
    steps: list[StepDescription]
    answer: str


class ProcedureList(BaseModel):
    """The procedures that can be named."""

    procedures: list[ProcedureDescription]


def check_report(step: Step, judged: Judgement | DeviationKind, *, working: bool, given: Iterable[str]) -> StepCheck:
    """The report on one claim.

    Args:
        judged: what the checks said, or why there is no claim to judge.
        working: whether the working was judged.
        given: the earlier steps whose values were taken as they were given.
    """
    verdict = None if isinstance(judged, str) else judged.verdict
    kind: DeviationKind | None = None
    strength: Strength = "unverified"
    outcome: Literal["passed", "failed", "undecided"] = "undecided"
    if isinstance(judged, str):
        outcome, kind = "failed", judged
    elif verdict is None or verdict.outcome not in ("pass", "fail"):
        kind = "undecided"
    elif verdict.outcome == "fail":
        outcome, kind = "failed", verdict.kind or "wrong_value"
    else:
        outcome, strength = "passed", judged.strength
    rests = list(given)
    return StepCheck(
        step=step.id,
        verdict=outcome,
        kind=kind,
        strength=strength,
        working_checked=working,
        taken_as_given=rests,
        told=_check_in_words(step.id, outcome, kind, strength, working, rests),
    )


def _check_in_words(
    step: str, outcome: str, kind: DeviationKind | None, strength: Strength, working: bool, rests: list[str]
) -> str:
    if outcome == "failed":
        return f"{step} failed ({kind}): carry the step out again, from the values it reads."
    if outcome == "undecided":
        return f"{step} is undecided: no check could tell. This is not a pass, and the value is not verified."
    parts = [f"{step} passed: its value is {strength}"]
    if strength != "proved":
        parts.append("another value might pass as well")
    if not working:
        parts.append("the working was not checked")
    if rests:
        parts.append(f"taken as given and not checked here: {', '.join(rests)}")
    return "; ".join(parts) + "."


def _sized(value: Value, shown: object) -> object:
    """A value of a run without an answer: a text, which may be a document, by its size."""
    return f"(a text of {len(value)} characters)" if isinstance(value, str) else shown


def report_run(result: Result, *, model: str, at_least: Strength) -> tuple[RunReport, str]:
    """The report on a run, and what the caller is told: the steps and the answer, or that and where there is none."""
    body = completion_body(result, model=model, at_least=at_least)
    message, answered = body["choices"][0]["message"], body["stepguard"]["answered"]
    view = ResultView.model_validate(result)
    values = {
        shown.path: shown.value if answered else _sized(record.value, shown.value)
        for record, shown in zip(result.steps, view.steps, strict=True)
        if STRENGTHS.index(record.support) >= STRENGTHS.index(at_least)
    }
    error = None if view.error is None else view.error.type
    # The view holds the answer whatever stands behind it: it is told only where it is handed on.
    report = RunReport(
        **dict(view.model_copy(update={} if answered else {"answer": None})) | {"error": error, "values": values},
        answered=answered,
        step=None if view.problem is None else view.problem.step,
        kind=None if view.problem is None else view.problem.kind,
        model=model,
    )
    if answered:
        return report, str(message["content"])
    return report, f"{message['refusal']}{'' if error is None else f': {error}'}"


def report_audit(found: Audit, *, tell_reasons: bool) -> AuditReport:
    """The report on a transcript.

    Args:
        tell_reasons: whether reasons and expected values go with it, for people.
    """
    view = AuditView.model_validate(found)
    if not tell_reasons:
        view.findings = [replace(each, reason="") for each in view.findings]
        view.steps = [replace(each, reason="", expected=None) for each in view.steps]
    left_out = max(0, len(view.findings) - _FINDINGS)
    shown = dict(view) | {"findings": view.findings[:_FINDINGS]}
    report = AuditReport(**shown, left_out=left_out, told="")
    return report.model_copy(update={"told": _audit_in_words(report)})


def _audit_in_words(report: AuditReport) -> str:
    if report.ok:
        return f"all {len(report.steps)} steps are right, and nothing else is wrong."
    lines = []
    for each in report.findings[:_LINES]:
        where = "" if each.place is None else f"line {each.place.line}: "
        step = "" if each.step is None else f" at {each.step}"
        lines.append(f"{where}{each.kind}{step}{f': {each.reason}' if each.reason else ''}")
    total = len(report.findings) + report.left_out
    if total > _LINES:
        lines.append(f"and {total - _LINES} more")
    unknown = [each.step for each in report.steps if each.verdict == "not_judged"]
    if unknown:
        names = ", ".join(unknown[:_LINES]) + (" ..." if len(unknown) > _LINES else "")
        lines.append(f"could not be judged, which is no pass: {names}")
    return "\n".join(lines)


def describe(procedures: Mapping[str, Procedure]) -> ProcedureList:
    """The procedures that can be named, as far as a caller needs to know them."""
    return ProcedureList(
        procedures=[
            ProcedureDescription(
                name=name,
                inputs=[InputDescription(name=each.name, type=str(each.type)) for each in procedure.inputs],
                steps=[
                    StepDescription(id=step.id, type=str(step.type), reads=list(step.reads), text=_what(step))
                    for step in procedure.steps
                ],
                answer=procedure.answer,
            )
            for name, procedure in sorted(procedures.items())
        ]
    )


def _what(step: Step) -> str:
    if step.operation is not None:
        passed = ", ".join(f"{name}={format_expression(value)}" for name, value in step.arguments)
        return f"{step.performer} {step.operation}({passed})"
    return " ".join(filter(None, (step.instruction, step.formula and f"{step.id} = {step.formula}")))
