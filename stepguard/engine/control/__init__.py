"""Control: from a procedure with branches, loops and calls to the plain steps of one run, as far as it is decided.

`Unfolding` walks the body of a procedure over verified values. Conditions, lists, lookups and fields it evaluates
itself; what it hands out are plain steps, each once it is sure to come up. `Straight` does the same for a procedure
that is a mere list of steps.
"""

from __future__ import annotations

from stepguard.engine.control.sources import Halt, Pending, State, StepSource, Straight
from stepguard.engine.control.unfolding import Unfolding

__all__ = ["Halt", "Pending", "State", "StepSource", "Straight", "Unfolding"]
