"""Tables as one test: rows that show the same behaviour, too many to report each by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any

import pytest


def all_rows(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test of every row one test, as `pytest.mark.parametrize` makes many; all rows that fail are shown.

    Above another one it is the product of both.
    """
    keys = names.replace(" ", "").split(",")
    table = [row if len(keys) > 1 else (row,) for row in rows]
    assert table

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        others = [each for each in signature(test).parameters.values() if each.name not in keys]

        @wraps(test)
        def whole(**rest: Any) -> None:
            failures: list[Exception] = []
            for row in table:
                given = dict(zip(keys, row, strict=True))
                try:
                    test(**given, **rest)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - each is raised below
                    failure = error if isinstance(error, Exception) else AssertionError(str(error))
                    failure.add_note(f"row: {given!r}")
                    failures.append(failure)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(table)} rows fail", failures)

        del whole.__wrapped__  # pytest would take its parameters for fixtures
        whole.__signature__ = Signature([each.replace(kind=Parameter.KEYWORD_ONLY) for each in others])  # type: ignore[attr-defined]
        return whole

    return decorate
