"""How many examples a property is tried with: a part of them in every run, all of them where CI runs what is slow."""

from __future__ import annotations

import os
from typing import Final

from hypothesis import settings

_ALL: Final = os.environ.get("STEPGUARD_EXAMPLES") == "all"
_LEAST: Final = 10


def examples(number: int) -> settings:
    """The settings of a property that is tried with so many examples, and with a tenth of them in a quick run."""
    return settings(max_examples=number if _ALL else max(number // 10, _LEAST), deadline=None)
