"""Requests that run a procedure, and are answered by a verified run.

A request names its procedure by its model, ``NAME@MODEL``, or by the field ``procedure``: a name, or a text. The field
``inputs`` holds the values. Messages are read as far as the host trusts their roles.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from stepguard.backends.retry import RetryPolicy
from stepguard.core.usage import Usage
from stepguard.engine.run import Run
from stepguard.errors import ConfigError, UsageError
from stepguard.guard import Guard
from stepguard.guard.options import GuardOptions, check_options
from stepguard.integrations.chat.answers import completion_body
from stepguard.integrations.chat.requests import Job, find_job, why_passed
from stepguard.integrations.openai.calls import GuardedCall, WrapSettings
from stepguard.language.strict_json import JsonObject, decode
from stepguard.procedure.procedure import Procedure
from stepguard.results import Result
from stepguard.serve.call import HttpCall
from stepguard.serve.errors import cut, from_result, wrong_request
from stepguard.serve.kept import KeptRuns, ledger_problems
from stepguard.serve.limits import Limits
from stepguard.serve.metrics import Metrics
from stepguard.serve.shapes import AsciiJSON, ChatRequest, Finished, Parameters, Shape
from stepguard.serve.upstream import Upstream

_VERSION: Final = re.compile(r"latest|default|[0-9]{3,8}")
"""Versions that some providers write behind an @ of their own, as in ``some-model@20260601``."""
# Searching megabytes on the event loop would hold up every other request.
_LARGE: Final = 4 * 1024
"""Larger requests are searched in a thread."""
_LONGEST_VALUE: Final = 100
"""Longer values are given in errors by their size alone."""
OWN_FIELDS: Final = ("procedure", "inputs")
"""The fields of a request that are not the upstream's."""
_WORKING: Final = b": stepguard is working\n\n"
_EVENTS: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # nginx holds back what it proxies, unless it is told not to
}


def split_model(model: str, procedures: Mapping[str, Procedure]) -> tuple[str | None, str]:
    """The procedure and the model that ``NAME@MODEL`` names; no procedure where it is the name of a model alone.

    A name that no procedure has is refused: an upstream that does not care for names would answer it unguarded.

    Raises Problem: no procedure has this name, or no model is named.
    """
    name, at, rest = model.partition("@")
    if not at or not name:
        return None, model
    if name in procedures:
        if not rest.strip():
            raise wrong_request(
                f"{model!r} names no model: write {name}@MODEL", status=404, code="model_not_found", param="model"
            )
        return name, rest
    if _VERSION.fullmatch(rest):
        return None, model
    known = ", ".join(sorted(procedures)[:20]) or "none"
    raise wrong_request(
        cut(f"no procedure is named {name!r} (write NAME@MODEL); there are: {known}"),
        status=404,
        code="model_not_found",
        param="model",
    )


class GuardedRequests:
    """Runs procedures for requests.

    Args:
        settings: as of a wrapped client: the procedures by the names that requests use, whom to trust, the options of
            the guard and of its backend, what makes an answer. The client of each run comes with its request.
        reasons: whether errors tell why a step was not accepted.
        kept: keeps the runs that requests give a name; None where none are.

    Raises:
        ConfigError: an option of the guard cannot work.
    """

    def __init__(
        self, settings: WrapSettings, *, limits: Limits, reasons: bool, metrics: Metrics, kept: KeptRuns | None
    ) -> None:
        check_options(settings.guard, of="the guard of a server")
        options = {"retry": RetryPolicy(timeout=limits.upstream_seconds), **settings.guard}
        made = GuardOptions(**options)  # wrong options are named at the start
        if made.fallback is not None:  # each with one client for all requests
            options["fallback"] = made.fallbacks()
        self._settings: Final = replace(settings, guard=options)
        self._limits: Final = limits
        self._reasons: Final = reasons
        self._metrics: Final = metrics
        self._kept: Final = kept

    async def find(self, chat: ChatRequest, sent: bytes) -> tuple[Job, str] | None:
        """The job of a request and the model for it; None where it asks for no procedure.

        Raises Problem: it asks for one that cannot be run.
        """
        name, model = split_model(chat.model, self._settings.procedures)
        named = chat.body.get("procedure")
        if name is not None and named is not None:
            raise wrong_request("the model and the field procedure both name one", code="invalid_procedure")

        def find() -> Job | None:
            return find_job(
                chat.messages,
                procedures=self._settings.procedures,
                named=name if named is None else named,
                inputs=None if chat.body.get("inputs") is None else _exact_inputs(sent),
                trust=self._settings.trust,
            )

        try:
            job = find() if len(sent) < _LARGE else await asyncio.to_thread(find)
        except UsageError as error:
            param = getattr(error, "option", None) or ("messages" if chat.body.get("inputs") is None else "inputs")
            raise wrong_request(cut(str(error)), code="invalid_procedure", param=param) from error
        return None if job is None else (job, model)

    async def pass_reason(self, chat: ChatRequest, size: int) -> str:
        """Why a request is passed on of which `find` has said that it asks for no procedure.

        Raises Problem: only guarded requests are wanted.
        """

        def why() -> str:
            return why_passed(chat.messages, guarded_only=self._settings.guarded_only)

        try:
            return why() if size < _LARGE else await asyncio.to_thread(why)
        except ConfigError as error:
            raise wrong_request(cut(str(error)), code="not_guarded", param=error.option) from error

    async def run(
        self, call: HttpCall, upstream: Upstream, shape: Shape, chat: ChatRequest, job: Job, model: str
    ) -> Response:
        """Run a job, and answer with what came of it. Raises Problem: the run is no answer."""
        if not model.strip():
            raise wrong_request("the request names no model", code="invalid_model", param="model")
        if not isinstance(chat.body.get("stream"), bool | None):
            raise wrong_request("stream is true or false", code="unsupported_parameter", param="stream")
        call.answer_headers["x-stepguard"] = "guarded"
        parameters = shape.parameters({name: value for name, value in chat.body.items() if name not in OWN_FIELDS})
        run_id = None if self._kept is None else self._kept.run_id(call.request)
        guard = self._guard(upstream.client(call), job, model, parameters, kept=run_id is not None)
        form = parameters.arguments.get("response_format")
        as_json = isinstance(form, Mapping) and form.get("type") == "json_object"
        if run_id is None:
            run = guard.start(job.procedure, job.inputs, label=job.label)
        else:
            with ledger_problems():
                start = partial(guard.start, label=job.label, run_id=run_id)
                run = await asyncio.to_thread(start, job.procedure, job.inputs)
        earlier = run.result().usage
        call.answer_headers["x-stepguard-run"] = run.id

        def completion(result: Result) -> dict[str, Any]:
            body = completion_body(
                result,
                model=chat.model,
                job=job,
                as_json=as_json,
                at_least=self._settings.at_least,
                reasons=self._reasons,
            )
            spent = {name: getattr(result.usage, name) for name in Usage.__slots__}
            facts = body["stepguard"]
            facts |= {"usage": spent, "set_aside": list(parameters.set_aside)}
            if not facts["answered"]:
                texts = {each.name for each in job.procedure.inputs if each.type.kind == "text"}
                facts["values"] = {name: _sized(value, name in texts) for name, value in facts["values"].items()}
            return body

        def answer(result: Result) -> Finished:
            body = completion(result)
            if not body["stepguard"]["answered"]:
                raise from_result(result, body)
            return Finished(run.id, chat.model, body, result.usage, chat.include_usage)

        call.facts = lambda: completion(run.result())["stepguard"]
        driven = asyncio.create_task(guard.adrive(run), name=f"stepguard-run-{run.id}")
        # However the request ends: a run that nobody waits for must not go on spending.
        call.resources.push_async_callback(self._leave, driven, run, earlier)
        # A streamed answer begins only after this time: until then an error can still have a status of its own.
        done, _ = await asyncio.wait({driven}, timeout=self._limits.keep_alive_seconds if chat.stream else None)
        if done:
            call.answer_headers["x-stepguard-status"] = driven.result().status
            finished = answer(driven.result())
            if not chat.stream:
                return AsciiJSON(shape.answer(finished))
        call.last_event = shape.error_event

        async def events() -> AsyncIterator[bytes]:
            while not driven.done():
                yield _WORKING
                await asyncio.wait({driven}, timeout=self._limits.keep_alive_seconds)
            for event in shape.events(answer(driven.result())):
                yield event

        return StreamingResponse(events(), headers=_EVENTS)

    async def _leave(self, driven: asyncio.Task[Result], run: Run, earlier: Usage) -> None:
        """End a run with its request, and count it."""
        driven.cancel()
        try:
            await asyncio.wait({driven})
        finally:
            # The run's own state where its task failed: what it spent has to be counted all the same.
            ended = driven.done() and not driven.cancelled() and driven.exception() is None
            result = driven.result() if ended else run.result()
            self._metrics.run(run.label, result, earlier=earlier, cancelled=not ended)

    def _guard(self, client: object, job: Job, model: str, parameters: Parameters, *, kept: bool) -> Guard:
        options = self._settings.guard
        if kept and self._kept is not None:
            options = {**options, "ledger": self._kept.ledger}
        settings = replace(self._settings, client=client, guard=options)
        try:
            return GuardedCall(settings, job, {**parameters.arguments, "model": model}).guard
        except ConfigError as error:
            raise wrong_request(cut(str(error)), code="unsupported_parameter", param=error.option) from error


def _sized(value: Any, given: bool) -> Any:
    """A value as an error tells it: a text that was given, and whatever is long, by its size alone."""
    if isinstance(value, dict):  # it is told by its size already
        return value
    written = value if isinstance(value, str) else json.dumps(value)
    return {"characters": len(written)} if len(written) > _LONGEST_VALUE or (given and value is not None) else value


def _exact_inputs(sent: bytes) -> Any:
    """The field ``inputs`` of a body, with its numbers as they are written.

    Raises ConfigError: it stands there twice, or the body is no strict JSON.
    """
    try:
        body = decode(sent.decode("utf-8-sig"))
    except ValueError as error:
        raise ConfigError(f"the body is not JSON that can be read exactly: {error}", option="inputs") from None
    if not isinstance(body, JsonObject) or "inputs" in body.repeated:
        raise ConfigError("the field inputs is given twice: keep one", option="inputs")
    return body["inputs"]
