"""Formulas: reading them as models write them, and deciding whether two are equal.

The language is `stepguard.formulas.parsing`, with equations, solutions and ranges on top of it (`statements`,
`ranges`). Whether formulas are equal, `stepguard.formulas.deciding` says: by exact arithmetic of our own where that is
enough, and by sympy in a process that can be killed (`worker`) where it is not. The checks that stand on all this are
in `stepguard.checks`.
"""
