"""Procedures: steps and inputs, checked when they are made, and their notation as text, YAML or JSON."""

from __future__ import annotations

from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Input, Step

__all__ = ["Input", "Procedure", "Step"]
