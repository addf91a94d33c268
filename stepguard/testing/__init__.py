"""Doubles for tests, so that procedures of yours can be tested without a model, a network or a key.

`ScriptedBackend` answers call after call with what you wrote down, `ScriptedSteps` step by step; used as a context
manager, both fail a test that leaves a part of the script unused. `SimulatedModel` carries out the steps it is asked,
with seeded slips of every kind that stepguard knows (`Slips`; `ModelSlips` says what they depend on), or with the
failures that you plant (`Plant`); the slips of particular models are in `stepguard.testing.profiles`.
`no_real_requests` asserts that no real model was asked.
"""

from __future__ import annotations

from stepguard.testing.plants import Plant
from stepguard.testing.real_requests import no_real_requests
from stepguard.testing.scripted import ScriptedBackend, ScriptedSteps
from stepguard.testing.simulated import SimulatedModel
from stepguard.testing.slips import ModelSlips, Slips

__all__ = ["ModelSlips", "Plant", "ScriptedBackend", "ScriptedSteps", "SimulatedModel", "Slips", "no_real_requests"]
