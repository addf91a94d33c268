"""What Inspect AI finds by its entry point group ``inspect_ai``: the task, its parts, and a model provider.

Inspect loads this module in runs that have nothing to do with stepguard, too, so the provider's class is only imported
where a model of it is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepguard.errors import MissingExtraError
from stepguard.evaluation.inspect.task import bench, judged, run_arm

try:
    from inspect_ai.model import modelapi
except ImportError as error:
    raise MissingExtraError("Inspect's model provider", extra="inspect") from error

if TYPE_CHECKING:
    from inspect_ai.model import ModelAPI

__all__ = ["bench", "judged", "provider", "run_arm"]


@modelapi(name="stepguard")  # type: ignore[misc, untyped-decorator, unused-ignore]
def provider() -> type[ModelAPI]:
    """Models called ``stepguard/NAME`` are asked through `stepguard.backends.openai.OpenAIBackend`."""
    from stepguard.evaluation.inspect.model import EndpointModel

    return EndpointModel
