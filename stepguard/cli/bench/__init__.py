"""``stepguard bench``."""

from __future__ import annotations

from typing import Final

LENGTHS: Final = "5,20,50"
COUNT: Final = "50"
"""What is run where nobody says."""
