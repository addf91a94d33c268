"""All kinds: importing this registers them. A family of checks adds the module with its kinds here."""

from __future__ import annotations

from certification import statements, steps, wrong_entries, wrong_replies

__all__ = ["statements", "steps", "wrong_entries", "wrong_replies"]
