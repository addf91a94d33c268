"""Doubles for tests: a model that follows a script, and one that slips as real models do.

`ScriptedBackend` answers with what you wrote down and complains if a script is not used up. `SimulatedModel` carries
out the steps it is asked, with seeded slips of every kind that stepguard knows. Neither needs a network or a key.
"""

from __future__ import annotations

from stepguard.testing.real_requests import no_real_requests
from stepguard.testing.scripted import ScriptedBackend, ScriptedSteps
from stepguard.testing.simulated import SimulatedModel, Slips

__all__ = ["ScriptedBackend", "ScriptedSteps", "SimulatedModel", "Slips", "no_real_requests"]
