"""Published benchmarks as families: items that others made, read from a folder that the user names.

`PUBLISHED` names them; none of their items is in this package. Each is a `FixedFamily`: the instance for a seed is the
item of that number in its file, its steps are a decomposition given by code, and its authors' own prompt and scoring
stand beside ours (`stepguard.evaluation.families.PublishedTask`).
"""

from __future__ import annotations

from stepguard.evaluation.published.items import FixedFamily
from stepguard.evaluation.published.registry import PUBLISHED, published_named

__all__ = ["PUBLISHED", "FixedFamily", "published_named"]
