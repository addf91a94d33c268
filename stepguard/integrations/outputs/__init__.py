"""The output of an agent or a tool, held against a procedure: are the values in it those of its steps?"""

from __future__ import annotations

from stepguard.integrations.outputs.checker import ANSWER, OutputChecker
from stepguard.integrations.outputs.judging import OutputCheck

__all__ = ["ANSWER", "OutputCheck", "OutputChecker"]
