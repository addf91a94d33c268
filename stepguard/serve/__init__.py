"""The server behind ``stepguard serve``: an OpenAI-compatible endpoint with verified answers (extra ``serve``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stepguard.errors import MissingExtraError
from stepguard.serve.limits import Limits

if TYPE_CHECKING:
    from stepguard.serve.app import create_app

__all__ = ["Limits", "create_app"]


def __getattr__(name: str) -> Any:
    if name != "create_app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from stepguard.serve.app import create_app
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "prometheus_client"):
            raise
        raise MissingExtraError("the server", extra="serve") from None
    return create_app
