"""The model that the options of a command name: an endpoint, a local file, or a simulated one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from stepguard.backends.base import Backend
from stepguard.errors import BackendError, ConfigError
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step

SIMULATED: Final = (
    "SIMULATED MODEL: no model was named; the answers come from a program that errs on purpose. This tests the guard "
    "and says nothing about any real model. Name one with --model, --base-url or --gguf."
)
_LOOKUP_SECONDS: Final = 20.0  # only the names of models are asked for: a server that is up answers at once


def choose_backend(options: argparse.Namespace, procedure: Procedure | None = None) -> tuple[Backend, str]:
    """The model to ask, and what to call it.

    Args:
        procedure: what a simulated model is to be asked; it slips once in the middle of it, so that a repair is seen.

    Raises:
        ConfigError: the options do not go together, or nobody can answer the procedure's steps in words.
    """
    if options.gguf is not None:
        if options.model is not None or options.base_url is not None:
            raise ConfigError("--gguf is a model of its own: leave out --model and --base-url", option="gguf")
        from stepguard.backends.local import LocalBackend

        return LocalBackend(options.gguf), Path(options.gguf).name
    if options.base_url is not None:
        return _endpoint(options.base_url, options.model)
    if options.model is not None:
        from stepguard.backends.making import named_backend
        from stepguard.backends.openai import OpenAIBackend

        make = named_backend if "/" in options.model else OpenAIBackend
        return make(options.model), options.model
    from stepguard.testing import Plant, SimulatedModel

    steps = () if procedure is None else tuple(procedure.steps)
    if words := [step.id for step in steps if step.expression is None and step.performer == "model"]:
        raise ConfigError(
            f"step {words[0]} is described in words, which the simulated model cannot carry out: name a model with "
            "--model, --base-url or --gguf (in tests, stepguard.testing.ScriptedSteps gives the answers)",
            option="model",
        )
    sys.stderr.write(SIMULATED + "\n")
    # In a branch or a loop nobody knows beforehand whether a step comes up.
    sure = () if procedure is None else steps if procedure.straight else procedure.body
    asked = [each.id for each in sure if isinstance(each, Step) and each.performer == "model" and not each.rich]
    plants = [Plant(asked[len(asked) // 2], "wrong_value")] if asked else []
    return SimulatedModel(seed=options.seed or 0, plants=plants), "SIMULATED MODEL"


def _endpoint(base_url: str, model: str | None) -> tuple[Backend, str]:
    from stepguard.backends.openai import OpenAIBackend

    place = _without_secrets(base_url)
    if model is None:
        model = _only_model(base_url, place)
    return OpenAIBackend(model, base_url=base_url), f"{model} at {place}"


def _only_model(base_url: str, place: str) -> str:
    from stepguard.backends.providers import OPENAI, client_maker

    client_of_endpoint = client_maker(OPENAI, base_url, None)("OpenAI")
    import openai

    try:
        with client_of_endpoint as client:
            names: list[str] = [each.id for each in client.models.list(timeout=_LOOKUP_SECONDS)]
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
