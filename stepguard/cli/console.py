"""Where results are printed."""

from __future__ import annotations

import sys
from typing import Final

from rich.console import Console

_NARROWEST: Final = 40
_USUAL: Final = 80


class ResultConsole(Console):
    """Standard output. Names and values may look like markup or emoji codes; they are shown as they are."""

    def __init__(self) -> None:
        super().__init__(file=sys.stdout, markup=False, emoji=False, highlight=False)
        # Rich prints tables without letters where COLUMNS is 0, and one letter a line where it is little more.
        self.width = max(self.width or _USUAL, _NARROWEST)

    def on_broken_pipe(self) -> None:
        """Leave it to `main`: rich would exit with 1, which says "unverified"."""
        raise  # the error that is being handled
