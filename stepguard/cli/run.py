"""``stepguard run``: from the options to a procedure, a model and a guard, and from the result to an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from stepguard.backends.base import Backend
from stepguard.budget import Budget
from stepguard.errors import BackendError, ConfigError, InputError, ProcedureError
from stepguard.guard import Guard
from stepguard.procedure import Procedure
from stepguard.results import Status

__all__ = ["EXIT_CODES", "SIMULATED", "choose_backend", "run"]

EXIT_CODES: Final[Mapping[Status, int]] = {
    "verified": 0,
    "unverified": 1,
    "abstained": 3,
    "exhausted": 4,
    "failed": 5,
}

SIMULATED: Final = (
    "SIMULATED MODEL: no model was named; the answers come from a program that errs on purpose. This tests the guard "
    "and says nothing about any real model. Name one with --model, --base-url or --gguf."
)
_LOOKUP_SECONDS: Final = 20.0


def run(options: argparse.Namespace) -> int:
    """Carry out the command and return its exit code.

    Raises:
        StepguardError: nothing was run, because of the file, the inputs, the options or the model.
        KeyboardInterrupt: interrupted; the message says how far the run had come.
    """
    from stepguard.cli.progress import watch

    procedure = _load(options.file)
    inputs = _inputs(options.input, procedure)
    budget = Budget(calls=options.max_calls, tokens=options.max_tokens, seconds=options.max_seconds)
    given: dict[str, Any] = {"segment": options.segment, "repair": options.retries, "seed": options.seed}
    chosen = {name: value for name, value in given.items() if value is not None}
    Guard(_no_model, budget=budget, **chosen)  # wrong options are named before a model is loaded
    backend, name = choose_backend(options)
    with ExitStack() as stack:
        if callable(close := getattr(backend, "close", None)):
            stack.callback(close)
        progress = watch(procedure, name, quiet=options.quiet)
        with progress:
            result = Guard(backend, budget=budget, observer=progress, **chosen).run(procedure, inputs)
    if options.json:
        sys.stdout.write(result.to_json() + "\n")
    else:
        from stepguard.cli.report import print_result

        print_result(result, procedure, model=name, table=not options.quiet)
    return EXIT_CODES[result.status]


def _no_model(messages: list[dict[str, str]]) -> str:
    raise AssertionError("never called")


def _load(path: str) -> Procedure:
    try:
        return Procedure.load(path)
    except ProcedureError as error:
        raise ProcedureError(f"{path}: {error}", step=error.step) from error
    except OSError as error:
        raise ProcedureError(
            f"cannot read {path}: {error.strerror or error}; FILE is the path of a procedure, written as text"
        ) from error


def _inputs(given: Iterable[str], procedure: Procedure) -> dict[str, str]:
    """The ``name=value`` options as text by name, checked against the declared types."""
    inputs: dict[str, str] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(f"--input {pair!r}: write it as NAME=VALUE, such as --input x=12")
        if name in inputs:
            raise InputError(f"--input {name} is given twice: {inputs[name]!r} and {value!r}; keep one", name=name)
        inputs[name] = value
    missing = [each for each in procedure.inputs if each.name not in inputs]
    if missing and all(name in {each.name for each in procedure.inputs} for name in inputs):
        wanted = ", ".join(f"{each.name} ({each.type})" for each in missing)
        hint = " ".join(f"--input {each.name}=..." for each in missing)
        raise InputError(f"{procedure.name} needs more inputs: {wanted}; add {hint}", name=missing[0].name)
    procedure.accept_inputs(inputs)
    return inputs


def choose_backend(options: argparse.Namespace) -> tuple[Backend, str]:
    """The model to ask, and what to call it."""
    if options.gguf is not None:
        if options.model is not None or options.base_url is not None:
            raise ConfigError("--gguf is a model of its own: leave out --model and --base-url", option="gguf")
        from stepguard.backends.local import LocalBackend

        return LocalBackend(options.gguf), Path(options.gguf).name
    if options.base_url is not None:
        return _endpoint(options.base_url, options.model)
    if options.model is not None:
        from stepguard.backends.openai import OpenAIBackend

        make = OpenAIBackend.from_name if "/" in options.model else OpenAIBackend
        return make(options.model), options.model
    from stepguard.testing import SimulatedModel

    sys.stderr.write(SIMULATED + "\n")
    return SimulatedModel(seed=options.seed or 0), "SIMULATED MODEL"


def _endpoint(base_url: str, model: str | None) -> tuple[Backend, str]:
    from stepguard.backends.openai import OpenAIBackend

    place = _without_secrets(base_url)
    if model is None:
        model = _only_model(base_url, place)
    return OpenAIBackend(model, base_url=base_url), f"{model} at {place}"


def _only_model(base_url: str, place: str) -> str:
    import openai

    # Servers of one's own rarely want a key, but the openai package insists on one.
    key = os.environ.get("OPENAI_API_KEY") or "none"
    try:
        with openai.OpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=_LOOKUP_SECONDS) as client:
            names = [each.id for each in client.models.list()]
    except (openai.OpenAIError, AttributeError, TypeError, ValueError) as error:
        # The others come up where something answers that is no such list.
        status = "the answer is no list of models"
        if isinstance(error, openai.OpenAIError):
            status = f"HTTP status {error.status_code}" if isinstance(error, openai.APIStatusError) else str(error)
        raise BackendError(
            f"{place} did not say which models it has ({status}); check --base-url, or name one with --model",
            retryable=False,
        ) from error
    if len(names) == 1:
        return names[0]
    if not names:
        raise ConfigError(f"{place} lists no model: name one with --model", option="model")
    shown = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
    raise ConfigError(f"{place} has {len(names)} models: choose one with --model ({shown})", option="model")


def _without_secrets(url: str) -> str:
    """The endpoint as it may be shown: no user, password or query, where keys are sometimes put."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        parts, port = None, ""
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError("--base-url is a full address, such as http://127.0.0.1:8080/v1", option="base_url")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path}"
