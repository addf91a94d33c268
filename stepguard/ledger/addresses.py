"""Addresses of Postgres databases, as libpq has them: the schema in them, and no password in what is shown."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from stepguard.errors import ConfigError

_SCHEMA: Final = "stepguard"
_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,54}")


def read_address(address: str) -> tuple[str, str, str]:
    """What is shown of an address, the schema that it names, and the address without that.

    Raises ConfigError: it is no address, or no ledger can be kept in that schema.
    """
    try:
        parts = urlsplit(address)
        options = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise ConfigError("ledger is no address of a Postgres database", option="ledger") from None
    schema = next((value for name, value in options if name == "schema"), _SCHEMA)
    if not _NAME.fullmatch(schema) or schema.startswith("pg_"):
        # The schema of the queues has _queue behind this name, and Postgres silently cuts names off at 63 characters.
        what = f"no ledger can be kept in a schema {schema!r:.80}: name it in at most 55 small letters"
        raise ConfigError(what, option="ledger")
    others = [(name, value) for name, value in options if name != "schema"]
    user, at, host = parts.netloc.rpartition("@")
    shown = urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{host}", parts.path, "", ""))
    shown += "" if schema == _SCHEMA else f"?schema={schema}"
    return shown, schema, urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(others), ""))


def without_password(address: str, text: str) -> str:
    """A message of the driver, in which no password stands."""
    parts = urlsplit(address)
    secrets = [parts.netloc.rpartition("@")[0].partition(":")[2]]
    secrets += [value for name, value in parse_qsl(parts.query) if "password" in name]
    for secret in filter(None, secrets):
        text = text.replace(secret, "***").replace(unquote(secret), "***")
    return text
