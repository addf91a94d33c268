"""Expressions of procedures: arithmetic over fields, items, tables, dates, amounts and choices, with their types.

``operands`` are what such an expression has beside numbers and variables, ``type_inference`` what type it has before
anything is computed, ``evaluation`` what it is worth, ``lookup_tables`` the tables that it may read. The arithmetic
core that checkers compare workings with (`stepguard.language.expressions`) knows nothing of them.
"""
