"""A backend from what a caller has at hand: a name, a client, a function."""

from __future__ import annotations

from typing import Any

from stepguard.backends.base import AsyncBackend, Backend, SyncBackend
from stepguard.backends.function import FunctionBackend
from stepguard.backends.vendors import VENDORS
from stepguard.errors import ConfigError


def named_backend(name: str, **options: Any) -> Backend:
    """The backend that a name means.

    Args:
        name: a provider in `stepguard.backends.providers.PROVIDERS` or a vendor in
            `stepguard.backends.vendors.VENDORS`, a slash, and a model.
        options: those of its backend.

    Raises:
        ConfigError: it names no model, or nobody that is known; or an option cannot work.
    """
    first, slash, model = name.partition("/")
    if slash and first in VENDORS and model.strip():
        from stepguard.backends.instructor import InstructorBackend

        return InstructorBackend(model, provider=first, **options)
    from stepguard.backends.openai import OpenAIBackend

    return OpenAIBackend.from_name(name, **options)


def as_backend(given: object, *, model: str | None = None) -> Backend:
    """A backend from what a caller has at hand.

    Args:
        given: a backend; a callable from a list of OpenAI-style message dictionaries to text (or a `Completion`),
            plain or async; an OpenAI-style client, or one that instructor has wrapped, sync or async; or a name such as
            ``"openai/gpt-4.1-mini"`` or ``"anthropic/claude-sonnet-4-5"`` (see `stepguard.backends.providers` and
            `stepguard.backends.vendors`).
        model: the model to ask for: needed with a client, but for one of instructor's that knows it, and with nothing
            else.

    Raises:
        ConfigError: nothing of this kind can be asked, or `model` is missing or has no use.
    """
    # First, since a client that instructor has wrapped looks like one of OpenAI's, too.
    if any(cls.__module__.partition(".")[0] == "instructor" for cls in type(given).__mro__):
        from stepguard.backends.instructor import wrapped_backend

        return wrapped_backend(given, model)
    if hasattr(getattr(getattr(given, "chat", None), "completions", None), "create"):
        from stepguard.backends.openai import OpenAIBackend

        if model is None:
            raise ConfigError("a client needs to know which model to ask: pass model='gpt-4.1-mini'", option="model")
        return OpenAIBackend(model, client=given)
    if model is not None:
        raise ConfigError("model= goes with an OpenAI-style client; other backends know their model", option="model")
    if isinstance(given, str):
        return named_backend(given)
    if isinstance(given, type):
        raise ConfigError(f"{given.__name__} is a class: pass an instance of it", option="backend")
    if isinstance(given, SyncBackend | AsyncBackend):
        return given
    if callable(given):
        return FunctionBackend(given)
    raise ConfigError(
        f"{type(given).__name__} is no backend: pass an object with complete() or acomplete(), a callable, "
        f"an OpenAI-style client or a name such as 'openai/gpt-4.1-mini'",
        option="backend",
    )
