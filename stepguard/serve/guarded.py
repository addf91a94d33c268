"""Requests that run a procedure, and are answered by a verified run.

A request names its procedure by its model, ``NAME@MODEL``, or by the field ``procedure``: a name, or a text. The field
``inputs`` holds the values. Messages are read as far as the host trusts their roles.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

from stepguard.backends.retry import RetryPolicy
from stepguard.core.usage import Usage
from stepguard.core.verdicts import Strength
from stepguard.errors import ConfigError, UsageError
from stepguard.guard import Guard
from stepguard.integrations.chat.answers import completion_body
from stepguard.integrations.chat.requests import Job, find_job, why_passed
from stepguard.integrations.chat.trust import Trust
from stepguard.integrations.openai.calls import GuardedCall, Settings
from stepguard.language.strict_json import JsonObject, decode
from stepguard.options import GuardOptions, check_options
from stepguard.procedure.procedure import Procedure
from stepguard.results import Result
from stepguard.run import Run
from stepguard.serve.errors import cut, from_result, wrong_request
from stepguard.serve.exchange import Exchange
from stepguard.serve.limits import Limits
from stepguard.serve.metrics import Metrics
from stepguard.serve.shapes import Asked, Finished, Parameters, Shape
from stepguard.serve.upstream import Upstream

__all__ = ["Guarded", "split_model"]

_VERSION: Final = re.compile(r"latest|default|[0-9]{3,8}")
"""What some providers write behind an @ of their own, as in ``some-model@20260601``."""
_LARGE: Final = 64 * 1024
"""Bytes of a request from which on it is searched in a thread."""
_OURS: Final = ("procedure", "inputs")
"""The fields of a request that are not the upstream's."""
_WORKING: Final = b": stepguard is working\n\n"


def split_model(model: str, procedures: Mapping[str, Procedure]) -> tuple[str | None, str]:
    """The procedure and the model that ``NAME@MODEL`` names; no procedure where it is the name of a model alone.

    A name that no procedure has is refused: an upstream that does not care for names would answer it unguarded.

    Raises:
        Problem: no procedure has this name, or no model is named.
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


class Guarded:
    """Runs procedures for requests.

    Args:
        procedures: by the names that requests use.
        options: of `Guard`.
        backend: of `OpenAIBackend`.
        limits: what bounds a run.
        trust: the roles of messages that may be a procedure, or give values of inputs.
        guarded_only: whether a request that would be passed on is refused.
        at_least: what is to stand behind every step of an answer; see `Result.raise_for_status`.
        reasons: whether errors tell why a step was not accepted.
        metrics: told of every run.

    Raises:
        ConfigError: an option of the guard cannot work.
    """

    def __init__(
        self,
        procedures: Mapping[str, Procedure],
        options: Mapping[str, Any],
        *,
        backend: Mapping[str, Any],
        limits: Limits,
        trust: Trust,
        guarded_only: bool,
        at_least: Strength,
        reasons: bool,
        metrics: Metrics,
    ) -> None:
        self._procedures: Final = dict(procedures)
        self._options: Final = {"retry": RetryPolicy(timeout=limits.upstream_seconds), **options}
        self._backend: Final = {name: value for name, value in backend.items() if value is not None}
        self._limits: Final = limits
        self._trust: Final = trust
        self._guarded_only: Final = guarded_only
        self._at_least: Final = at_least
        self._reasons: Final = reasons
        self._metrics: Final = metrics
        check_options(options, of="the guard of a server")
        GuardOptions(**self._options)  # wrong options are named at the start

    async def find(self, asked: Asked, sent: bytes) -> tuple[Job, str] | None:
        """The job of a request and the model for it; None where it asks for no procedure.

        Raises:
            Problem: it asks for one that cannot be run.
        """
        name, model = split_model(asked.model, self._procedures)
        named = asked.body.get("procedure")
        if name is not None and named is not None:
            raise wrong_request("the model and the field procedure both name one", code="invalid_procedure")

        def find() -> Job | None:
            return find_job(
                asked.messages,
                procedures=self._procedures,
                named=name if named is None else named,
                inputs=None if asked.body.get("inputs") is None else _exact_inputs(sent),
                trust=self._trust,
            )

        try:
            job = find() if len(sent) < _LARGE else await asyncio.to_thread(find)
        except UsageError as error:
            param = getattr(error, "option", None) or "messages"
            raise wrong_request(cut(str(error)), code="invalid_procedure", param=param) from error
        return None if job is None else (job, model)

    async def pass_reason(self, asked: Asked, size: int) -> str:
        """Why a request is passed on of which `find` has said that it asks for no procedure.

        Raises:
            Problem: only guarded requests are wanted.
        """

        def why() -> str:
            return why_passed(asked.messages, guarded_only=self._guarded_only)

        try:
            return why() if size < _LARGE else await asyncio.to_thread(why)
        except ConfigError as error:
            raise wrong_request(cut(str(error)), code="not_guarded", param=error.option) from error

    async def run(
        self, exchange: Exchange, upstream: Upstream, shape: Shape, asked: Asked, job: Job, model: str
    ) -> None:
        """Run a job, and answer with what came of it.

        Raises:
            Problem: the run is no answer.
        """
        if not model.strip():
            raise wrong_request("the request names no model", code="invalid_model", param="model")
        exchange.told["x-stepguard"] = "guarded"
        parameters = shape.parameters({name: value for name, value in asked.body.items() if name not in _OURS})
        guard = self._guard(upstream.client(exchange), job, model, parameters)
        form = parameters.arguments.get("response_format")
        as_json = isinstance(form, Mapping) and form.get("type") == "json_object"
        run = guard.start(job.procedure, job.inputs, label=job.label)
        exchange.told["x-stepguard-run"] = run.id

        def completion(result: Result) -> dict[str, Any]:
            body = completion_body(
                result,
                model=asked.model,
                job=job,
                as_json=as_json,
                at_least=self._at_least,
                reasons=self._reasons,
            )
            spent = {name: getattr(result.usage, name) for name in Usage.__slots__}
            body["stepguard"] |= {"usage": spent, "set_aside": list(parameters.set_aside)}
            return body

        exchange.facts = lambda: completion(run.result())["stepguard"]
        result: Result | None = None
        try:
            result = await self._drive(guard, run, exchange, shape, asked.stream)
        finally:
            self._metrics.run(job.label, result or run.result(), cancelled=result is None)
        body = completion(result)
        exchange.told["x-stepguard-status"] = result.status
        if not body["stepguard"]["answered"]:
            raise from_result(result, body)
        finished = Finished(run.id, asked.model, body, result.usage, asked.include_usage)
        if not asked.stream:
            await exchange.answer(200, shape.answer(finished))
            return
        if exchange.status is None:
            await exchange.start_events(shape.error_event)
        await exchange.write(b"".join(shape.events(finished)), more=False)

    def _guard(self, client: object, job: Job, model: str, parameters: Parameters) -> Guard:
        settings = Settings(
            client=client,
            procedures=self._procedures,
            trust=self._trust,
            guarded_only=self._guarded_only,
            on_unverified="raise",
            at_least=self._at_least,
            on_call=None,
            backend=self._backend,
            guard=self._options,
        )
        try:
            return GuardedCall(settings, job, {**parameters.arguments, "model": model}).guard
        except ConfigError as error:
            raise wrong_request(cut(str(error)), code="unsupported_parameter", param=error.option) from error

    async def _drive(self, guard: Guard, run: Run, exchange: Exchange, shape: Shape, stream: bool) -> Result:
        """The result of a run; what is streamed gets a comment from time to time meanwhile."""
        if not stream:
            return await guard.adrive(run)
        driven = asyncio.create_task(guard.adrive(run), name=f"stepguard-run-{run.id}")
        try:
            while not (await asyncio.wait({driven}, timeout=self._limits.keep_alive_seconds))[0]:
                if exchange.status is None:
                    await exchange.start_events(shape.error_event)
                await exchange.write(_WORKING)
            return driven.result()
        finally:
            if not driven.done():
                driven.cancel()
                await asyncio.gather(driven, return_exceptions=True)


def _exact_inputs(sent: bytes) -> Any:
    """The field ``inputs`` of a body, with its numbers as they are written.

    Raises:
        ConfigError: it stands there twice, or the body is no strict JSON.
    """
    try:
        body = decode(sent.decode())
    except ValueError as error:
        raise ConfigError(f"the body is not JSON that can be read exactly: {error}", option="inputs") from None
    if not isinstance(body, JsonObject) or "inputs" in body.repeated:
        raise ConfigError("the field inputs is given twice: keep one", option="inputs")
    return body["inputs"]
