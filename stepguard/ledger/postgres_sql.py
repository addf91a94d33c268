"""The SQL of a ledger, which is that of SQLite, as Postgres takes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from stepguard.ledger.store import SqlRows

_TYPES: Final = {"blob": "bytea", "real": "double precision", "integer": "bigint", "without rowid": ""}
_TYPE: Final = re.compile(rf"\b({'|'.join(_TYPES)})\b")


class PostgresSql:
    """A connection that takes the SQL of a ledger; see `stepguard.ledger.store.SqlConnection`."""

    def __init__(self, connection: Any) -> None:
        self._connection: Final = connection

    def execute(self, sql: str, arguments: Sequence[object] = (), /) -> SqlRows:
        # With None instead of an empty sequence psycopg takes a % as it is.
        rows: SqlRows = self._connection.execute(translated(sql), arguments or None)
        return rows

    def executemany(self, sql: str, rows: Sequence[Sequence[object]], /) -> None:
        self._connection.cursor().executemany(translated(sql), rows)


def translated(sql: str) -> str:
    return sql.replace("?", "%s")


def typed(sql: str) -> str:
    return _TYPE.sub(lambda match: _TYPES[match[0]], sql)
