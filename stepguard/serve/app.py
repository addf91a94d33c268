"""The application: an OpenAI-compatible endpoint in front of another, which runs procedures through the guard.

=====================================  ==================================================================
path                                   what happens
=====================================  ==================================================================
``POST /v1/chat/completions``          guarded or passed on, also streamed
``POST /v1/responses``                 the same
``POST /v1/messages``                  the same, in Anthropic's protocol
``GET /v1/models``                     the upstream's, and every one of them behind every procedure
what is on the list below ``/v1``      passed on, but for what would ask a model for a procedure
``GET /health``                        that this server lives
``GET /metrics``                       of this server itself; with the key, where there is one
``GET /runs``, ``POST /runs/answer``   of the ledger, for persons; with the answer key, and only where there is one
any other                              status 404
=====================================  ==================================================================

The list is `stepguard.serve.paths.PASSED` and what the operator adds. Each path is written in one way: one that others
could read as another is refused.

What a request asks for, and the headers that say what became of it, are in docs/how-to/serve.md. Keys of the operator
stand in no response, whatever the upstream quotes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from stepguard.backends.providers import ReplyMode
from stepguard.core.arguments import check_flag, check_instance
from stepguard.core.verdicts import Strength
from stepguard.errors import ConfigError
from stepguard.integrations.chat.trust import Trust
from stepguard.integrations.openai.calls import WrapSettings
from stepguard.ledger import Ledger
from stepguard.procedure.folder import load_procedures
from stepguard.procedure.procedure import Procedure
from stepguard.serve.blackout import SHORTEST, Blackout
from stepguard.serve.errors import HttpProblem, wrong_request
from stepguard.serve.limits import Limits
from stepguard.serve.paths import GUARDED, PASSED, OnePath, read_route
from stepguard.serve.responses_shape import Responses
from stepguard.serve.service import CHAT, MESSAGES, Service, refusal_of
from stepguard.serve.shapes import Shape


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
    api_key: str | Iterable[str] | None = None,
    upstream_key: str | None = None,
    ledger: str | Path | Ledger | None = None,
    answer_key: str | None = None,
    more_paths: Iterable[str] = (),
    metrics: bool = True,
) -> Starlette:
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
        api_key: a key that callers must show, as that of the upstream, or several: then each is a client, whatever its
            address. Callers' own keys, and headers that choose an account, are then not passed on.
        upstream_key: the key that the upstream is asked with instead of the callers'; only with `api_key`.
        ledger: where runs are kept whose requests name them by the header ``Idempotency-Key``: the path of a file, or a
            `stepguard.ledger.Ledger`, which is closed when the server ends. The same key again gives the result of a
            run that has completed without asking a model, and goes on with any other.
        answer_key: a key, none of `api_key`, with which persons list runs and answer those that wait; only with
            `ledger`.
        more_paths: what is passed on beside `stepguard.serve.paths.PASSED`, such as ``["GET /files/{id}"]``.
        metrics: whether ``/metrics`` is served, or only `Service.metrics` holds them.

    Raises:
        ConfigError: an argument cannot work.
        ProcedureError: a file holds no procedure; the message names it.
        LedgerError: the ledger cannot be opened.
        MissingExtraError: starlette is not installed.
    """
    known = load_procedures(procedures)
    check_flag(reasons, "reasons")
    settings = WrapSettings.checked(
        client=None,
        procedures=known,
        trust=trust,
        guarded_only=guarded_only,
        on_unverified="raise",
        at_least=at_least,
        on_call=None,
        backend={name: value for name, value in (("mode", mode), ("strict", strict)) if value is not None},
        guard=guard or {},
        ledger=None,  # a request's own header names its run; see `stepguard.serve.kept`
    )
    check_instance(ledger, (str, Path, Ledger), "ledger", what="the path of a file, or a Ledger", optional=True)
    opened = Ledger(ledger) if isinstance(ledger, str | Path) else ledger
    service = Service(
        upstream,
        settings=settings,
        limits=Limits() if limits is None else limits,
        reasons=reasons,
        api_keys=_keys("api_key", api_key),
        upstream_keys=_keys("upstream_key", upstream_key),
        answer_keys=_keys("answer_key", answer_key),
        ledger=opened,
    )

    @asynccontextmanager
    async def lifespan(app: object) -> AsyncIterator[None]:
        async with service.running():
            yield

    shaped: tuple[Shape, ...] = (CHAT, Responses(), MESSAGES)
    shapes = {shape.name: shape for shape in shaped}
    routes = [
        Route("/health", service.health, methods=["GET"]),
        *(Route(path, service.converse(shapes[name]), methods=["POST"]) for path, name in GUARDED.items()),
        Route("/v1/models", service.endpoint("models", service.list_models), methods=["GET"]),
        # `:path`, since names of models hold slashes.
        Route("/v1/models/{model:path}", service.endpoint("models", service.list_models), methods=["GET"]),
    ]
    if metrics:
        routes.append(Route("/metrics", service.show_metrics, methods=["GET"]))
    if service.kept is not None and answer_key is not None:
        routes.append(Route("/runs", service.list_runs(service.kept), methods=["GET"]))
        routes.append(Route("/runs/answer", service.answer_run(service.kept), methods=["POST"]))
    for text in (*PASSED, *more_paths):
        method, path = read_route(text)
        routes.append(Route(f"/v1{path}", service.endpoint("other", service.pass_on), methods=[method]))
    app = Starlette(
        routes=routes,
        # Blackout is outermost, so that it also covers keys in the refusals of OnePath.
        middleware=[Middleware(Blackout, secrets=service.secrets), Middleware(OnePath, refusal=refusal_of)],
        exception_handlers={HTTPException: _no_route, HttpProblem: refusal_of},  # type: ignore[dict-item]
        lifespan=lifespan,
    )
    # A redirect would send a client, with its key, to a path that was not checked.
    app.router.redirect_slashes = False
    app.state.stepguard = service
    return app


def _keys(option: str, given: str | Iterable[str] | None) -> tuple[str, ...]:
    """The keys of an option, without white space from a file or a variable; empty where it is None."""
    if given is None:
        return ()
    keys = [key.strip() for key in ([given] if isinstance(given, str) else given)]
    if not keys or not all(key.isascii() and key.isprintable() and len(key) >= SHORTEST for key in keys):
        raise ConfigError(
            f"{option} is text that a header can carry, of {SHORTEST} characters or more: a shorter one can be "
            "guessed, and is not to be told from words",
            option=option,
        )
    return tuple(dict.fromkeys(keys))


async def _no_route(request: Request, error: HTTPException) -> JSONResponse:
    known = request.url.path.startswith("/v1/")
    where = (
        "this server does not pass it on, unless its operator adds it to the list (--pass)"
        if known
        else "the paths of the API begin with /v1"
    )
    problem = wrong_request(
        f"there is nothing to {request.method} at this path: {where}", status=error.status_code, code="unknown_path"
    )
    return refusal_of(request, problem)
