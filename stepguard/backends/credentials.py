"""Keys of providers, and clients that are made with them: none of a key's characters gets into an error."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from stepguard.core.redaction import error_text
from stepguard.errors import ConfigError, StepguardError

_SdkClient = TypeVar("_SdkClient")


def connected(make: Callable[[], _SdkClient], place: str) -> _SdkClient:
    """What makes a client, whose constructor reads proxies and certificates from the environment.

    Raises ConfigError: it cannot be made here.
    """
    try:
        return make()
    except StepguardError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the HTTP library finds wrong
        why = error_text(error)
    # Outside of the block: what was raised may hold the password of a proxy.
    raise ConfigError(
        f"no client for {place} can be made ({why}): look at its address, and in the environment at HTTP_PROXY, "
        "HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE",
        option="backend",
    )


def read_key(given: str | None, variables: Sequence[str], *, otherwise: str | None = None) -> str | None:
    """The key that is given, or the first that one of these variables of the environment holds.

    Raises ConfigError: there is none although there are variables for it, or no header can carry it.
    """
    known = (os.environ.get(variable, "").strip() for variable in variables)
    key = (given or "").strip() or next(filter(None, known), otherwise)
    if variables and key is None:
        raise ConfigError(f"no API key: set {' or '.join(variables)}, or pass api_key", option="api_key")
    if key is not None and not (key.isascii() and key.isprintable()):  # the errors of HTTP libraries would show it
        raise ConfigError("the API key holds a character that no header can carry, a line break?", option="api_key")
    return key


def digest(key: str) -> str:
    """What tells keys apart without being one."""
    # An environment may hold bytes that are no text.
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
