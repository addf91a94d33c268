"""Doubles for tests, so that procedures of yours can be tested without a model, a network or a key.

`ScriptedBackend` answers call after call with what you wrote down, `ScriptedSteps` step by step; both complain if a
script is not used up. `SimulatedModel` carries out the steps it is asked, with seeded slips of every kind that
stepguard knows (`Slips`), or with the failures that you plant (`Plant`). `no_real_requests` asserts that no real
model was asked.
"""

from __future__ import annotations

from stepguard.testing.plants import Plant
from stepguard.testing.real_requests import no_real_requests
from stepguard.testing.scripted import ScriptedBackend, ScriptedSteps
from stepguard.testing.simulated import SimulatedModel, Slips

__all__ = ["Plant", "ScriptedBackend", "ScriptedSteps", "SimulatedModel", "Slips", "no_real_requests"]
