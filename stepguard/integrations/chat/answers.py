"""A result as an OpenAI-style chat completion, whole or in chunks.

An answer that is handed on is readable text: a line ``name = value`` for every step and ``answer: value`` at the end,
or the same as JSON. One that is not has no content at all: its ``refusal`` names the step, and its ``finish_reason`` is
``"length"`` where a budget ended the run and ``"content_filter"`` otherwise, which no client takes for a finished
answer. The refusal tells kinds of deviation and never what a checker knows, because chats are often given to a model
again; reasons and verified values stand in the field ``stepguard``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, Final

from stepguard.core.verdicts import Strength
from stepguard.errors import RunError
from stepguard.integrations.chat.requests import Job
from stepguard.language.values import Value, show_value
from stepguard.results import Result

_HIDDEN: Final[dict[str, Any]] = {
    **dict.fromkeys(("usage", "profile", "profiled", "ways", "error", "steps"), True),
    # Whole replies and the texts of errors may hold anything.
    "attempts": {"__all__": {"usage", "seconds", "finish_reason", "text", "error", "backend"}},
}
"""Parts of a result's JSON that the field ``stepguard`` leaves out."""


def shortfall(result: Result, *, at_least: Strength = "proved") -> RunError | None:
    """Why a result is not to be handed on as an answer, None where it is; see `Result.raise_for_status`."""
    try:
        result.raise_for_status(at_least=at_least)
    except RunError as error:
        return error
    return None


def refusal(result: Result, *, at_least: Strength = "proved") -> str:
    """Why a result is no answer, in one line that a model may be told: steps and kinds, no value and no reason."""
    problem = result.problem
    if problem is not None:
        kind = "" if problem.deviation is None else f" ({problem.deviation.kind})"
        where = f"stopped at step {problem.occurrence}{kind}"
    elif result.error is not None:
        where = type(result.error).__name__
    else:
        where = result.weakness(at_least)
    done = f"{result.completed} of {result.total} steps completed"
    if result.ways:  # how many would have followed is not known
        done = f"{result.completed} steps completed"
    return f"stepguard gives no answer: {result.procedure} {result.status}, {where}; {done} (run {result.run_id})"


def completion_body(
    result: Result,
    *,
    model: str,
    job: Job | None = None,
    as_json: bool = False,
    at_least: Strength = "proved",
    reasons: bool = True,
) -> dict[str, Any]:
    """The body of a chat completion; JSON data.

    Args:
        job: what was asked, for the field ``stepguard``.
        as_json: whether the content is a JSON object, with ``answer``, ``status``, ``weak`` and ``steps``.
        at_least: what is to stand behind every step; see `Result.raise_for_status`.
        reasons: whether the field ``stepguard`` tells, where there is no answer, why steps were not accepted. Reasons
            may name right values: without them it can be told to a model.

    Raises:
        ConfigError: `at_least` is no strength.
    """
    why = shortfall(result, at_least=at_least)
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    finish = "stop"
    if why is not None:
        message["refusal"] = refusal(result, at_least=at_least)
        # No client takes these two for a finished answer.
        finish = "length" if result.status == "exhausted" else "content_filter"
    else:
        message["content"] = _as_json(result) if as_json else _as_text(result)
    usage = result.usage
    return {
        "id": f"chatcmpl-stepguard-{result.run_id}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
        "usage": {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        },
        "stepguard": _facts(result, job, answered=why is None, reasons=reasons or why is None),
    }


def completion_chunks(body: dict[str, Any], *, include_usage: bool = False) -> Iterator[dict[str, Any]]:
    """The same as chunks of a stream, a line each; the last one with a choice holds the field ``stepguard``.

    Args:
        include_usage: whether a chunk without choices follows that holds the usage.
    """
    head = {name: body[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    if include_usage:
        head["usage"] = None
    (choice,) = body["choices"]
    message = choice["message"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]}

    yield chunk({"role": "assistant", "content": "" if message["refusal"] is None else None})
    for name in ("content", "refusal"):
        for line in (message[name] or "").splitlines(keepends=True):
            yield chunk({name: line})
    yield {**chunk({}, choice["finish_reason"]), "stepguard": body["stepguard"]}
    if include_usage:
        yield {**head, "choices": [], "usage": body["usage"]}


def _as_text(result: Result) -> str:
    kept_from = result.completed - len(result.steps)
    lines = [f"({kept_from} earlier steps are not kept)"] if kept_from else []
    lines += [f"{record.occurrence} = {_one_line(record.value)}{_mark(record.support)}" for record in result.steps]
    return "\n".join([*lines, f"answer: {_one_line(result.answer)}{_mark(result.strength)}"])


def _mark(support: Strength) -> str:
    """The note behind a value that is less than proved."""
    return "" if support == "proved" else f"  ({'not verified' if support == 'unverified' else support})"


def _as_json(result: Result) -> str:
    data = result.to_dict()
    steps = {record["step"]: record["value"] for record in data["steps"]}
    content = {name: data[name] for name in ("answer", "status", "weak")} | {"steps": steps}
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _one_line(value: Value | None) -> str:
    text = "" if value is None else show_value(value)
    # One value is one line: nothing in a text may look like a line of its own.
    return text if text.isprintable() else json.dumps(text)


def size_of_text(value: Value, told: object) -> object:
    """A value as an error shows it (elsewhere as `told`): a text, which may be a document, by its size alone."""
    return {"characters": len(value)} if isinstance(value, str) else told


def _facts(result: Result, job: Job | None, *, answered: bool, reasons: bool) -> dict[str, Any]:
    from stepguard.results.view import ResultView  # not worth the time of every import

    view = ResultView.model_validate(result).model_dump(exclude=_HIDDEN)
    if not reasons:
        deviations = [each for attempt in view["attempts"] for each in attempt["deviations"]]
        problem = [] if view["problem"] is None or view["problem"]["kind"] is None else [view["problem"]]
        for each in [*deviations, *problem]:
            each["reason"] = each["kind"]
    # The text of an error may hold content, its class does not.
    if view["problem"] is not None and result.error is not None:
        view["problem"]["reason"] = type(result.error).__name__
    if not answered:
        view["values"] = {name: size_of_text(result.values[name], value) for name, value in view["values"].items()}
    return {
        **view,
        "answered": answered,
        "found": None if job is None else job.found,
        "left_out": None if job is None else job.left_out,
        "calls": result.usage.calls,
    }
