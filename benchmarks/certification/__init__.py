"""Certification: wrong steps that must be refused, right steps that must pass, foreign text that must do no harm.

What is true is worked out in `truth`, by operators of its own: nothing of the package under test has a hand in it.
Kinds of steps, of wrong steps and of right ways of writing register themselves where they are defined; a new family of
checks adds a module with its own and imports it in `kinds`.
"""
