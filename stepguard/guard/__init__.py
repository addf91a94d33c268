"""`Guard`: runs procedures on a model, one at a time or many at once."""

from __future__ import annotations

from stepguard.guard.guard import Guard

__all__ = ["Guard"]
