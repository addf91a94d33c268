"""The code blocks of a Markdown page: taken out, run, and held against what the page shows below them."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Block", "blocks_of", "shown_by"]

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its info string, its text, and the text block right below it, None where none is."""

    kind: str
    code: str
    output: str | None

    @property
    def library(self) -> str | None:
        """What has to be installed for it, as in ``python extra=langchain``."""
        return self.kind.partition("extra=")[2] or None


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    fences = _FENCE.findall(page.read_text(encoding="utf-8"))
    pairs = zip(fences, [*fences[1:], ("", "")], strict=True) if fences else ()
    return [Block(kind, code, below if after == "text" else None) for (kind, code), (after, below) in pairs]


def shown_by(code: str, namespace: dict[str, object], page: str) -> str:
    """What a block prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, page, "exec", dont_inherit=True), namespace)
    return out.getvalue()
