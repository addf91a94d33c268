"""The application: an OpenAI-compatible endpoint in front of another, which runs procedures through the guard.

=====================================  ==================================================================
path                                   what happens
=====================================  ==================================================================
``POST /v1/chat/completions``          guarded or passed on, also streamed
``POST /v1/responses``                 the same
``POST /v1/messages``                  the same, in Anthropic's protocol
``GET /v1/models``                     the upstream's, and every one of them behind every procedure
any other below ``/v1``                passed on, but for what would ask a model for a procedure
``GET /health``, ``GET /metrics``      of this server itself
=====================================  ==================================================================

A slash too many, or capital letters, in the path of what is guarded make no difference.

A request whose model is ``NAME@MODEL`` runs the procedure of this name on the model, from the values in its field
``inputs``; one with a field ``procedure`` runs that. Messages are read where the host trusts their roles. Everything
else is passed on, bytes as they are. Which of the two happened stands in the header ``x-stepguard`` (``guarded`` or
``passed``), why it was passed in ``x-stepguard-reason``, the id of a run in ``x-stepguard-run``. An answer of the guard
has a field ``stepguard``; a run that is not verified is an error (`stepguard.serve.errors`).
"""

from __future__ import annotations

import hmac
import logging
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from stepguard.backends.providers import ReplyMode
from stepguard.core.verdicts import Strength
from stepguard.errors import ConfigError, MissingExtraError
from stepguard.integrations.chat.trust import Trust, check_trust
from stepguard.procedure.folder import load_folder
from stepguard.procedure.procedure import Procedure
from stepguard.serve.anthropic_shapes import Messages
from stepguard.serve.errors import Problem, wrong_request
from stepguard.serve.exchange import Exchange, Gone, Receive, Scope, Send
from stepguard.serve.guarded import Guarded, split_model
from stepguard.serve.limits import Gate, Limits
from stepguard.serve.metrics import CONTENT_TYPE, Metrics
from stepguard.serve.openai_shapes import Chat, read_completion
from stepguard.serve.paths import GUARDED, Tidied, speaks
from stepguard.serve.relay import read_object, relay, relay_raw
from stepguard.serve.responses_shape import Responses
from stepguard.serve.shapes import Shape
from stepguard.serve.upstream import Upstream
from stepguard.telemetry.logging import tell

__all__ = ["Service", "create_app"]

_LOG: Final = logging.getLogger("stepguard.serve")
_CHAT: Final = Chat()
_MESSAGES: Final = Messages()

Work = Callable[[Exchange], Awaitable[None]]


def create_app(
    upstream: str,
    *,
    procedures: Mapping[str, Procedure] | str | Path | None = None,
    limits: Limits | None = None,
    guard: Mapping[str, Any] | None = None,
    mode: ReplyMode | None = None,
    strict: bool | None = None,
    trust: Trust | None = None,
    guarded_only: bool = False,
    at_least: Strength = "proved",
    reasons: bool = False,
    api_key: str | None = None,
    upstream_key: str | None = None,
) -> Any:
    """The Starlette application; its lifespan must run, which a server does and `Mount` does not.

    Args:
        upstream: the address of the endpoint behind it, up to and without ``/chat/completions``.
        procedures: by the names that requests use; or a folder whose files each hold one, named as the file.
        limits: what it takes on.
        guard: options of `Guard` for every run, such as ``{"segment": 5, "budget": Budget(calls=40)}``.
        mode, strict: how the upstream is to bind replies to their form; see `OpenAIBackend`.
        trust: the roles of messages that may be a procedure, or give values of inputs; by default none.
        guarded_only: refuse a request for a chat that would be passed on, and say why.
        at_least: what is to stand behind every step of an answer; see `Result.raise_for_status`.
        reasons: whether errors tell why a step was not accepted. Reasons may name the right value, and clients that
            are agents give errors to their models: without them an error tells steps and kinds.
        api_key: a key that callers must show, as that of the upstream. Their own are then not passed on.
        upstream_key: the key that the upstream is asked with instead of the callers'; only with `api_key`.

    Raises:
        ConfigError: an argument cannot work.
        ProcedureError: a file holds no procedure; the message names it.
        MissingExtraError: starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.middleware import Middleware
        from starlette.routing import Route
    except ImportError:
        raise MissingExtraError("the server", extra="serve") from None
    service = Service(
        upstream,
        procedures=load_folder(Path(procedures)) if isinstance(procedures, str | Path) else dict(procedures or {}),
        limits=Limits() if limits is None else limits,
        guard=guard or {},
        mode=mode,
        strict=strict,
        trust=check_trust(trust),
        guarded_only=guarded_only,
        at_least=at_least,
        reasons=reasons,
        api_key=api_key,
        upstream_key=upstream_key,
    )

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        async with service.running():
            yield

    def route(path: str, endpoint: _Endpoint, *methods: str) -> Route:
        return Route(path, endpoint, methods=list(methods) or None)

    endpoints = service.endpoints()
    app = Starlette(
        routes=[
            route("/health", endpoints["health"], "GET"),
            route("/metrics", endpoints["metrics"], "GET"),
            *(route(path, endpoints[name], "POST") for path, name in GUARDED.items()),
            route("/v1/models", endpoints["models"], "GET"),
            route("/v1/models/{model:path}", endpoints["models"], "GET"),
            route("/v1/{rest:path}", endpoints["other"]),
            route("/{rest:path}", endpoints["nowhere"]),
        ],
        middleware=[Middleware(Tidied)],
        lifespan=lifespan,
    )
    app.state.stepguard = service
    return app


class Service:
    """What the endpoints share. Use `create_app`; `stop` is for whoever runs the server."""

    def __init__(
        self,
        upstream: str,
        *,
        procedures: Mapping[str, Procedure],
        limits: Limits,
        guard: Mapping[str, Any],
        mode: ReplyMode | None,
        strict: bool | None,
        trust: Trust,
        guarded_only: bool,
        at_least: Strength,
        reasons: bool,
        api_key: str | None,
        upstream_key: str | None,
    ) -> None:
        # As it comes out of a file or a variable; callers cannot send the blanks around it.
        api_key, upstream_key = (key.strip() if isinstance(key, str) else key for key in (api_key, upstream_key))
        for name, key in (("api_key", api_key), ("upstream_key", upstream_key)):
            if key is not None and not (isinstance(key, str) and key and key.isascii() and key.isprintable()):
                raise ConfigError(f"{name} is text that a header can carry, and not empty", option=name)
        if upstream_key is not None and api_key is None:
            raise ConfigError(
                "with upstream_key alone everybody who reaches this server spends that key: give api_key as well",
                option="upstream_key",
            )
        for name in procedures:
            if not name.strip() or "@" in name:
                raise ConfigError(f"{name!r} cannot name a procedure: NAME@MODEL is told by its @", option="procedures")
        self.limits: Final = limits
        self.metrics: Final = Metrics()
        self._procedures: Final = dict(procedures)
        self._upstream: Final = Upstream(upstream, limits=limits, key=upstream_key, own_keys=api_key is not None)
        self._guarded: Final = Guarded(
            procedures,
            guard,
            backend={"mode": mode, "strict": strict},
            limits=limits,
            trust=trust,
            guarded_only=guarded_only,
            at_least=at_least,
            reasons=reasons,
            metrics=self.metrics,
        )
        self._key: Final = api_key
        self._gate: Gate | None = None

    def connect(self) -> None:
        """Make what reaches the upstream, which `running` does otherwise: to learn of a fault before it serves.

        Raises:
            ConfigError: that cannot be made with the proxies and certificates in the environment.
        """
        self._upstream.connect()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Be ready for requests, on the running event loop."""
        self._gate = Gate(self.limits)
        async with self._upstream.opened():
            try:
                yield
            finally:
                await self.stop()

    async def stop(self) -> None:
        """Take no request any more, and return when the last one is answered: within the seconds of grace, or soon
        after it, when those that are left are cancelled.
        """
        if self._gate is not None:
            await self._gate.close()

    def endpoints(self) -> dict[str, _Endpoint]:
        """The ASGI applications behind the paths."""
        shaped = {shape.name: shape for shape in (_CHAT, Responses(), _MESSAGES)}
        return {
            **{name: _Endpoint(self, name, shape, self._conversing(shape)) for name, shape in shaped.items()},
            "models": _Endpoint(self, "models", _CHAT, self._models),
            "other": _Endpoint(self, "other", _CHAT, self._other),
            "health": _Endpoint(self, "health", _CHAT, self._health, own=True),
            "metrics": _Endpoint(self, "metrics", _CHAT, self._metrics, own=True),
            "nowhere": _Endpoint(self, "nowhere", _CHAT, _nowhere, own=True),
        }

    async def serve(self, exchange: Exchange, endpoint: _Endpoint) -> None:
        """Answer one request; never raises but for cancellation."""
        shape = _MESSAGES if exchange.header("anthropic-version") is not None else endpoint.shape
        outcome = None
        try:
            if endpoint.own:
                await endpoint.work(exchange)
                return
            if self._gate is None:
                raise RuntimeError("the lifespan of the application did not run")
            self._authenticate(exchange)
            async with self._gate.admit(exchange):
                await endpoint.work(exchange)
        except Gone:
            outcome = "gone"
        except Problem as problem:
            told = problem
            if told.facts is None and exchange.facts is not None:
                told = told.knowing(exchange.facts())
            outcome = str(told.status)
            await exchange.fail(told, shape.error(told))
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller is to have an answer
            outcome = "500"
            # Not its text, which may hold content.
            where = "".join(traceback.format_tb(error.__traceback__))
            _LOG.error("event='request_failed' endpoint=%r error=%r\n%s", endpoint.name, type(error).__name__, where)
            told = Problem(
                "a fault of this server", status=500, kind="server_error", code="internal_error", retry=False
            )
            await exchange.fail(told, shape.error(told))
        finally:
            if not endpoint.own:
                self._record(exchange, endpoint, outcome)

    def _record(self, exchange: Exchange, endpoint: _Endpoint, outcome: str | None) -> None:
        handling: Any = exchange.told.get("x-stepguard", "refused")
        seconds = time.monotonic() - exchange.began
        said = outcome or str(exchange.status or "gone")
        self.metrics.request(endpoint.name, handling, said, seconds)
        run = exchange.told.get("x-stepguard-run")
        tell(
            "request_done",
            endpoint=endpoint.name,
            handling=handling,
            outcome=said,
            seconds=round(seconds, 3),
            run_id=run,
        )

    def _authenticate(self, exchange: Exchange) -> None:
        if self._key is None:
            return
        told = exchange.header("authorization") or ""
        scheme, _, token = told.partition(" ")
        shown = token.strip() if scheme.lower() == "bearer" else exchange.header("x-api-key") or ""
        if not hmac.compare_digest(shown.encode("utf-8", "surrogateescape"), self._key.encode()):
            raise Problem(
                "the key is not one of this server", status=401, kind="authentication_error", code="invalid_api_key"
            )

    # What answers

    def _conversing(self, shape: Shape) -> Work:
        async def converse(exchange: Exchange) -> None:
            sent = await exchange.read()
            body = read_object(sent)
            if body is None:
                raise wrong_request("the body is no JSON object", code="invalid_json")
            await exchange.attend(self._converse(exchange, shape, sent, body))

        return converse

    async def _converse(self, exchange: Exchange, shape: Shape, sent: bytes, body: dict[str, Any]) -> None:
        asked = shape.read(body)
        found = await self._guarded.find(asked, sent)
        if found is not None:
            job, model = found
            await self._guarded.run(exchange, self._upstream, shape, asked, job, model)
            return
        exchange.told["x-stepguard-reason"] = await self._guarded.pass_reason(asked, len(sent))
        exchange.told["x-stepguard"] = "passed"
        async with self._upstream.passing(exchange, sent, read=True) as response:
            usage = await relay(
                exchange, self._upstream, response, answers=shape.answers, shape=shape, limits=self.limits
            )
        self.metrics.tokens("passed", usage)

    async def _models(self, exchange: Exchange) -> None:
        sent = await exchange.read()
        await exchange.attend(self._list_models(exchange, sent))

    async def _list_models(self, exchange: Exchange, sent: bytes) -> None:
        exchange.told["x-stepguard"] = "passed"
        asked = unquote(exchange.raw_path.removeprefix("/v1/models").strip("/"))
        name, model = split_model(asked, self._procedures)
        path = None if name is None else f"/models/{quote(model, safe='/:@')}"

        def change(found: dict[str, Any]) -> dict[str, Any]:
            if asked:
                return {**found, "id": asked}
            guarded = [_named(each, name) for name in sorted(self._procedures) for each in found["data"]]
            return {**found, "data": [*found["data"], *guarded]}

        def answers(body: Mapping[str, Any]) -> bool:
            data = body.get("data")
            listed = isinstance(data, list) and all(isinstance(each, dict) and "id" in each for each in data)
            return "id" in body if asked else listed

        changed = name is not None or (not asked and self._procedures)
        async with self._upstream.passing(exchange, sent, path=path, read=True) as response:
            await relay(
                exchange,
                self._upstream,
                response,
                answers=answers,
                shape=_CHAT,
                limits=self.limits,
                change=change if changed else None,
            )

    async def _other(self, exchange: Exchange) -> None:
        spoken = speaks(unquote(exchange.raw_path))
        sent = await exchange.read(packed=not spoken)
        body = (read_object(sent) or {}) if spoken or sent[:1].isspace() or sent[:1] == b"{" else {}
        asked = read_completion(body) if spoken else None
        # An upstream that does not care for names would answer a procedure's request as any other.
        model = body.get("model")
        named = isinstance(model, str) and split_model(model, self._procedures)[0] is not None
        if named or (asked is not None and await self._guarded.find(asked, sent) is not None):
            raise wrong_request(
                "procedures are run at /v1/chat/completions, /v1/responses and /v1/messages, not at this path",
                status=404,
                code="unknown_path",
            )
        if asked is not None:
            exchange.told["x-stepguard-reason"] = await self._guarded.pass_reason(asked, len(sent))
        await exchange.attend(self._pass_on(exchange, sent))

    async def _pass_on(self, exchange: Exchange, sent: bytes) -> None:
        exchange.told["x-stepguard"] = "passed"
        async with self._upstream.passing(exchange, sent, read=False) as response:
            await relay_raw(exchange, self._upstream, response)

    async def _health(self, exchange: Exchange) -> None:
        gate = self._gate
        ready = gate is not None and not gate.closed
        body = {
            "status": "ok" if ready else "stopping",
            "in_flight": gate.in_flight if gate else 0,
            "waiting": gate.waiting if gate else 0,
            "procedures": sorted(self._procedures),
        }
        await exchange.answer(200 if ready else 503, body)

    async def _metrics(self, exchange: Exchange) -> None:
        assert self._gate is not None
        body = self.metrics.render(self._gate).encode()
        await exchange.respond(200, [("content-type", CONTENT_TYPE)], body)


@dataclass(frozen=True, slots=True, eq=False)
class _Endpoint:
    """An ASGI application: one path. `own` ones ask nobody, and are answered at once."""

    service: Service
    name: str
    shape: Shape
    work: Work
    own: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.service.serve(Exchange(scope, receive, send, self.service.limits), self)


def _named(model: Mapping[str, Any], procedure: str) -> dict[str, Any]:
    """The entry of a model behind a procedure."""
    owner = {"owned_by": "stepguard"} if "owned_by" in model else {}
    return {**model, "id": f"{procedure}@{model['id']}", **owner}


async def _nowhere(exchange: Exchange) -> None:
    raise wrong_request(
        "there is nothing at this path: those of the API begin with /v1", status=404, code="unknown_path"
    )
