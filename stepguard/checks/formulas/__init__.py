"""Checks of steps whose value is a formula, a solution or a matrix; they stand on `stepguard.formulas`."""
