"""A small procedure and a right transcript of it."""

from __future__ import annotations

from transcripts import written_correctly

from stepguard import Procedure

PROCEDURE = Procedure.parse("inputs: x, y\nt1 = x + y\nt2 = t1 * 3\nt3 = t2 - t1\nt4 = t3 + 5")
INPUTS = {"x": 12, "y": 7}
TOLD, VALUES = written_correctly(PROCEDURE, INPUTS)
RIGHT = "t1 = x + y = 12 + 7 = 19\nt2 = t1 * 3 = 19 * 3 = 57\nt3 = t2 - t1 = 57 - 19 = 38\nt4 = t3 + 5 = 38 + 5 = 43\n"
