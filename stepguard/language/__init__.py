"""Exact values: how numbers, amounts, dates and texts are written, what expressions over them are worth, their types.

Each kind of text is read in one place: ``numerals``, ``currencies``, ``dates``, ``quantities``, ``typeset`` (arithmetic
as people and models typeset it), ``strict_json``. ``expressions`` is the grammar of formulas, ``evaluation`` what they
are worth, ``same_working`` whether two of them are the same work, ``value_types`` what a step's value may be.

Two rooms of their own stand on these: ``terms``, the expressions of procedures over records, tables, dates and amounts,
and ``prose``, what sentences say around a number, a claim or a formula.
"""
