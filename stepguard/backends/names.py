"""A model by its name: ``"openai/gpt-4.1-mini"``, ``"anthropic/claude-sonnet-4-5"``."""

from __future__ import annotations

from typing import Any

from stepguard.backends.base import Backend
from stepguard.backends.vendors import VENDORS


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
