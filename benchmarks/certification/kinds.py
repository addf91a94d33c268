"""All kinds: importing this registers them. A family of checks adds the module with its kinds here."""

from __future__ import annotations

from certification import right_ways, right_workings, statements, steps, wrong_entries, wrong_replies, wrong_working

__all__ = ["right_ways", "right_workings", "statements", "steps", "wrong_entries", "wrong_replies", "wrong_working"]
