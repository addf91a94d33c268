"""The server behind ``stepguard serve``: an OpenAI-compatible endpoint with verified answers (extra ``serve``)."""

from __future__ import annotations

from stepguard.serve.app import create_app
from stepguard.serve.limits import Limits

__all__ = ["Limits", "create_app"]
