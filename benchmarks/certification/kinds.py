"""All kinds: importing this registers them. A family of checks adds the module with its kinds here."""

from __future__ import annotations

from certification import (
    check_constraints,
    check_dates,
    check_documents,
    check_formulas,
    check_grounding,
    check_inequalities,
    check_matrices,
    check_notations,
    check_solutions,
    check_texts,
    check_units,
    right_ways,
    right_workings,
    statements,
    steps,
    typeset_ways,
    wrong_entries,
    wrong_replies,
    wrong_working,
)

__all__ = [
    "check_constraints",
    "check_dates",
    "check_documents",
    "check_formulas",
    "check_grounding",
    "check_inequalities",
    "check_matrices",
    "check_notations",
    "check_solutions",
    "check_texts",
    "check_units",
    "right_ways",
    "right_workings",
    "statements",
    "steps",
    "typeset_ways",
    "wrong_entries",
    "wrong_replies",
    "wrong_working",
]
