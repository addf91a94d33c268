"""Tables as one test: rows that show the same behaviour, too many to report each by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest


def all_rows(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make a test of every row one test, as `pytest.mark.parametrize` makes many; all rows that fail are shown."""
    keys = names.replace(" ", "").split(",")
    table = [row if len(keys) > 1 else (row,) for row in rows]
    assert table

    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        @wraps(test)
        def whole() -> None:
            failures: list[Exception] = []
            for row in table:
                given = dict(zip(keys, row, strict=True))
                try:
                    test(**given)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - each is raised below
                    failure = error if isinstance(error, Exception) else AssertionError(str(error))
                    failure.add_note(f"row: {given!r}")
                    failures.append(failure)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)

        del whole.__wrapped__  # pytest would take its parameters for fixtures
        return whole

    return decorate
