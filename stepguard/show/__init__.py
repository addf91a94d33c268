"""Pictures of procedures and of runs on them: as text for a terminal, and as one page of HTML.

`draw_text` and `draw_html` take a procedure and, if there is one, the `Result` of a run of it or the JSON that such a
result was written to.
"""

from __future__ import annotations

from stepguard.show.page import draw_html
from stepguard.show.text import draw_text

__all__ = ["draw_html", "draw_text"]
