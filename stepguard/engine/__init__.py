"""The machine in the middle: what to do next, given everything that has happened.

The engine performs nothing. It emits actions with ids and accepts events (see `stepguard.engine.actions`), so that the
sync driver, the async driver, a loop of the caller's and the tests all drive the same code. It never calls a model,
sleeps, reads a clock, logs or writes.

The way of one segment is a flight, a small state machine with named phases:

    Launcher -> Asking (-> Waiting -> Asking)* -> Checking -> Committing -> Landing

The verified prefix of a reply is committed; a step that was not accepted leads the next segment, asked in the way its
repair policy names. With `parallel` flights, steps that read nothing unverified may be asked at the same time.

A run ends at the first step that cannot be had. What has been sent by then is still taken in, so that no usage and no
verified value is lost; what has not been sent is not.
"""

from __future__ import annotations

from stepguard.engine.machine import Engine
from stepguard.engine.settings import Settings

__all__ = ["Engine", "Settings"]
