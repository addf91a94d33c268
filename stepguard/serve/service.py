"""The service behind the server's endpoints: each request from its key to its last byte."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from prometheus_client import generate_latest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from stepguard.errors import ConfigError
from stepguard.integrations.chat.trust import Trust
from stepguard.integrations.openai.calls import WrapSettings
from stepguard.ledger import Ledger
from stepguard.serve.admission import Charge, Gate, Memory
from stepguard.serve.bodies import RequestBody, check_messages, read_body
from stepguard.serve.call import HttpCall
from stepguard.serve.chat_shape import Chat, read_completion
from stepguard.serve.errors import HttpProblem, too_slow, wrong_request
from stepguard.serve.guarded import OWN_FIELDS, GuardedRequests, split_model
from stepguard.serve.kept import KeptRuns
from stepguard.serve.limits import Limits
from stepguard.serve.log_throttle import LogThrottle
from stepguard.serve.messages_shape import Messages
from stepguard.serve.metrics import Metrics
from stepguard.serve.paths import says_nothing
from stepguard.serve.relay import composed, passed
from stepguard.serve.shapes import AsciiJSON, Shape
from stepguard.serve.upstream import Upstream
from stepguard.telemetry.logging import log_event

_LOG: Final = logging.getLogger("stepguard.serve")
CHAT: Final = Chat()
MESSAGES: Final = Messages()

# The text format that every Prometheus reads.
_METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
_MESSAGE_FIELDS: Final = ("messages", "input", "prompt", "system", "instructions")

Work = Callable[[HttpCall, Charge], Awaitable[Response]]


def refusal_of(request: Request, problem: HttpProblem, shape: Shape = CHAT) -> JSONResponse:
    """The response to a problem, in the protocol of the request."""
    shape = MESSAGES if "anthropic-version" in request.headers else shape
    return AsciiJSON(shape.error(problem), problem.status, problem.headers())


class Service:
    """The state that the endpoints share. Use `create_app`; `stop` is for the code that runs the server."""

    def __init__(
        self,
        upstream: str,
        *,
        settings: WrapSettings,
        limits: Limits,
        reasons: bool,
        api_keys: tuple[str, ...],
        upstream_keys: tuple[str, ...],
        answer_keys: tuple[str, ...],
        ledger: Ledger | None,
    ) -> None:
        if upstream_keys and not api_keys:
            raise ConfigError(
                "with upstream_key alone everybody who reaches this server spends that key: give api_key as well",
                option="upstream_key",
            )
        if answer_keys and ledger is None:
            raise ConfigError("answers are for runs in a ledger: give that as well", option="answer_key")
        if not set(answer_keys).isdisjoint(api_keys):
            raise ConfigError("whoever asks may not answer for a person: another answer_key", option="answer_key")
        for name in settings.procedures:
            if not name.strip() or "@" in name:
                raise ConfigError(f"{name!r} cannot name a procedure: NAME@MODEL is told by its @", option="procedures")
        self.limits: Final = limits
        self.metrics: Final = Metrics()
        self.secrets: Final = (*api_keys, *upstream_keys, *answer_keys)
        """The keys of the operator."""
        self._procedures: Final = dict(settings.procedures)
        self._upstream: Final = Upstream(
            upstream, limits=limits, key=upstream_keys[0] if upstream_keys else None, own_keys=bool(api_keys)
        )
        self.kept: Final = None if ledger is None else KeptRuns(ledger, one_caller=len(api_keys) == 1)
        self._guarded: Final = GuardedRequests(
            settings, limits=limits, reasons=reasons, metrics=self.metrics, kept=self.kept
        )
        self._answer_keys: Final = answer_keys
        self._keys: Final = api_keys
        self._trusts_none: Final = settings.trust == Trust()
        self._memory: Final = Memory(limits)
        self._refusals: Final = LogThrottle()
        self._gate: Gate | None = None

    def connect(self) -> None:
        """Make what reaches the upstream, which `running` does otherwise: to learn of a fault before it serves.

        Raises ConfigError: that cannot be made with the proxies and certificates in the environment.
        """
        self._upstream.connect()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Be ready for requests, on the running event loop."""
        self._gate = Gate(self.limits)
        self.metrics.watch(self._gate)
        async with self._upstream.opened():
            try:
                yield
            finally:
                await self.stop()
                if self.kept is not None:
                    self.kept.ledger.close()

    async def stop(self) -> None:
        """Take no request any more, and return when the last one is answered: within the seconds of grace, or soon
        after it, when those that are left are cancelled.
        """
        if self._gate is not None:
            await self._gate.close()

    # What answers

    async def health(self, request: Request) -> Response:
        """That the server lives, and nothing else, to everybody."""
        ready = self._gate is not None and not self._gate.closed
        return AsciiJSON({"status": "ok" if ready else "stopping"}, 200 if ready else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Serve the metrics to callers with a key of this server."""
        self._authenticate(request, self._keys)
        return Response(generate_latest(self.metrics.registry), headers={"content-type": _METRICS})

    def endpoint(self, name: str, work: Work, shape: Shape = CHAT) -> _Endpoint:
        """The ASGI application behind a path."""
        return _Endpoint(self, name, shape, work, self._keys)

    def converse(self, shape: Shape) -> _Endpoint:
        """The ASGI application behind a guarded path."""

        async def answer(call: HttpCall, charge: Charge) -> Response:
            body = await read_body(call.body, self.limits, charge)
            check_messages(body.data, self.limits)
            self._check_names(body)
            chat = shape.read(body.data)
            guarded = await self._guarded.find(chat, call.body)
            if guarded is None:
                call.answer_headers["x-stepguard-reason"] = await self._guarded.pass_reason(chat, len(call.body))
                # Freed before the response is relayed, which may take minutes; only the bytes to pass on stay charged.
                del body, chat
                charge.resize(len(call.body))
                return await self._pass_on(call, shape)
            if body.doubt:
                raise wrong_request(f"the body can be read in more than one way: {body.doubt}", code="invalid_json")
            job, model = guarded
            return await self._guarded.run(call, self._upstream, shape, chat, job, model)

        return self.endpoint(shape.name, answer, shape)

    def list_runs(self, kept: KeptRuns) -> _Endpoint:
        """The ASGI application that lists the runs of the ledger, for those who may answer."""

        async def work(call: HttpCall, charge: Charge) -> Response:
            call.answer_headers["x-stepguard"] = "kept"
            return AsciiJSON(await kept.list_runs(call.request.query_params))

        return _Endpoint(self, "runs", CHAT, work, self._answer_keys)

    def answer_run(self, kept: KeptRuns) -> _Endpoint:
        """The ASGI application that answers for a person."""

        async def work(call: HttpCall, charge: Charge) -> Response:
            body = await read_body(call.body, self.limits, charge)
            doubt = body.doubt or ("a number has too many digits, write it as text" if body.rounded else "")
            if doubt:
                raise wrong_request(f"the body can be read in more than one way: {doubt}", code="invalid_json")
            call.answer_headers["x-stepguard"] = "kept"
            return AsciiJSON(await kept.answer(body.data))

        return _Endpoint(self, "answer", CHAT, work, self._answer_keys)

    async def list_models(self, call: HttpCall, charge: Charge) -> Response:
        """The models of the upstream, and each behind every procedure; or one of them."""
        call.answer_headers["x-stepguard"] = "passed"
        requested = call.request.path_params.get("model", "")
        name, model = split_model(requested, self._procedures)

        def change(models: dict[str, Any]) -> dict[str, Any]:
            if requested:
                return {**models, "id": requested}
            guarded = [_model_entry(each, name) for name in sorted(self._procedures) for each in models["data"]]
            return {**models, "data": [*models["data"], *guarded]}

        def answers(body: Mapping[str, Any]) -> bool:
            data = body.get("data")
            listed = isinstance(data, list) and all(isinstance(each, dict) and "id" in each for each in data)
            return "id" in body if requested else listed

        if name is None and (requested or not self._procedures):
            return await self._pass_on(call, CHAT)
        path = None if name is None else f"/models/{quote(model, safe='/:@')}"
        response = await call.resources.enter_async_context(self._upstream.passing(call, path=path))
        return await composed(self._upstream, response, call, self.limits, answers=answers, change=change)

    async def pass_on(self, call: HttpCall, charge: Charge) -> Response:
        """Pass on a request to a listed path, unless it asks for a procedure."""
        silent = says_nothing(call.request.scope["path"])
        kind = call.request.headers.get("content-type", "").partition("/")[0].strip().lower()
        # By its first byte and not by its content type: an upstream may read JSON whatever it is called.
        if kind != "multipart" and call.body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
            body = await read_body(call.body, self.limits, charge)
            self._check_names(body)
            # An upstream that does not care for names would answer a procedure's request as any other.
            asked = read_completion(body.data)
            named = split_model(asked.model, self._procedures)[0] is not None
            if named or (not silent and await self._guarded.find(asked, call.body) is not None):
                raise wrong_request(
                    "procedures are run at /v1/chat/completions, /v1/responses and /v1/messages, not at this path",
                    status=404,
                    code="unknown_path",
                )
            if not silent:
                call.answer_headers["x-stepguard-reason"] = await self._guarded.pass_reason(asked, len(call.body))
            del body, asked
            charge.resize(len(call.body))
        return await self._pass_on(call, None)

    async def _pass_on(self, call: HttpCall, shape: Shape | None) -> Response:
        call.answer_headers["x-stepguard"] = "passed"
        response = await call.resources.enter_async_context(self._upstream.passing(call))
        return await passed(call, self._upstream, response, shape, self.metrics)

    def _check_names(self, body: RequestBody) -> None:
        """Refuse a request whose key names repeat: the upstream might read the other value."""
        models = body.twice.get("model", [body.data.get("model")])
        if not all(model is None or isinstance(model, str) for model in models):
            raise wrong_request("the model is named by a text", code="invalid_json", param="model")
        procedures = {split_model(model or "", self._procedures)[0] for model in models}
        if len(procedures) > 1 or not body.twice.keys().isdisjoint(
            OWN_FIELDS if self._trusts_none else OWN_FIELDS + _MESSAGE_FIELDS
        ):
            raise wrong_request("what the request asks stands in it twice", code="invalid_json")

    # One request

    async def serve(self, call: HttpCall, endpoint: _Endpoint) -> None:
        """Answer one request; never raises but for cancellation."""
        outcome = None
        try:
            if self._gate is None:
                raise RuntimeError("the lifespan of the application did not run")
            call.client = self._authenticate(call.request, endpoint.keys) or call.client
            with self._memory.holding(call.client) as charge:
                await call.read(charge, packed=says_nothing(call.request.scope["path"]))
                await call.attend(self._work(call, endpoint, charge, self._gate))
        except ClientDisconnect:
            outcome = "gone"
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller is to have an answer
            problem = error if isinstance(error, HttpProblem) else _fault(error, endpoint)
            if problem.facts is None and call.facts is not None:
                problem.facts, problem.retry = call.facts(), False  # it has cost something
            outcome = str(problem.status)
            await call.fail(problem, refusal_of(call.request, problem, endpoint.shape))
        finally:
            self._record(call, endpoint, outcome)

    async def _work(self, call: HttpCall, endpoint: _Endpoint, charge: Charge, gate: Gate) -> None:
        seconds = self.limits.seconds
        async with gate.admit(call):
            try:
                async with asyncio.timeout(seconds) as timer, call.resources:
                    await call.respond(await endpoint.work(call, charge))
            except TimeoutError:
                # The work may raise a TimeoutError of its own.
                if not timer.expired():
                    raise
                raise too_slow(f"no answer within {seconds:g} s") from None

    def _record(self, call: HttpCall, endpoint: _Endpoint, outcome: str | None) -> None:
        handling: Any = call.answer_headers.get("x-stepguard", "refused")
        seconds = time.monotonic() - call.began
        status = outcome or str(call.status or "gone")
        self.metrics.request(endpoint.name, handling, status, seconds)
        left_out = self._refusals.passed((endpoint.name, status), call.began) if handling == "refused" else 0
        if left_out is None:
            return
        log_event(
            "request_done",
            endpoint=endpoint.name,
            handling=handling,
            outcome=status,
            seconds=round(seconds, 3),
            run_id=call.answer_headers.get("x-stepguard-run"),
            left_out=left_out,
        )

    def _authenticate(self, request: Request, keys: tuple[str, ...]) -> str | None:
        """Check the key of a request; return its client where a key says more than the address."""
        if not keys:
            return None
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        shown = token.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        given = shown.encode("utf-8", "surrogateescape")
        # All of them, in constant time: how long the answer takes must not tell which key is nearly right.
        known = [hmac.compare_digest(given, key.encode()) for key in keys]
        if not any(known):
            raise HttpProblem(
                "the key is not one of this server", status=401, kind="authentication_error", code="invalid_api_key"
            )
        return f"key {known.index(True)}" if len(known) > 1 else None


def _fault(error: Exception, endpoint: _Endpoint) -> HttpProblem:
    """A fault of this server. The text of the error is not told: it may hold content."""
    where = "".join(traceback.format_tb(error.__traceback__))
    _LOG.error("event='request_failed' endpoint=%r error=%r\n%s", endpoint.name, type(error).__name__, where)
    return HttpProblem("a fault of this server", status=500, kind="server_error", code="internal_error", retry=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Endpoint:
    """An ASGI application: one path."""

    service: Service
    name: str
    shape: Shape
    work: Work
    keys: tuple[str, ...]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.service.serve(HttpCall(scope, receive, send, self.service.limits), self)


def _model_entry(model: Mapping[str, Any], procedure: str) -> dict[str, Any]:
    """The entry of a model behind a procedure."""
    owner = {"owned_by": "stepguard"} if "owned_by" in model else {}
    return {**model, "id": f"{procedure}@{model['id']}", **owner}
