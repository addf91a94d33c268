"""Paces requests: by limits that are declared, and by what rate limits have shown.

Nothing here waits or reads a clock: times are given, in seconds, so that all of it can be tried out at once.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

_MINUTE: Final = 60.0
_BURST: Final = 20
"""A twentieth of what a minute allows may be spent at once; no minute sees more than its limit."""
_BACK: Final = 0.95
"""After a rate limit the next requests come at this part of the rate at which the last ones came through ..."""
_FEW: Final = 20
_SLOWED: Final = 0.7
"""... or, where fewer than `_FEW` came through in less than a second, at this part of the rate that was held."""
_CLEAN: Final = 100
"""After this many requests the rate is back where the limit came, after twice as many a tenth beyond, then faster."""
_SAME_RATE: Final = 0.25
"""A rate that came out twice within this part of itself is taken for that of the endpoint."""
_PAUSES: Final = 20
"""It then recovers over this many times the pause that was asked for, so that pauses are few."""


class Bucket:
    """Holds what may be spent at once, and fills as time goes by, so that no minute sees more than is allowed.

    Args:
        per_minute: how much a minute allows.
    """

    def __init__(self, per_minute: float) -> None:
        self._most: Final = 1 + per_minute // _BURST
        self._rate: Final = max(per_minute - self._most + 1, 1.0) / _MINUTE
        self._level, self._at = float(self._most), -math.inf

    def wait(self, wanted: float, now: float) -> float:
        """Seconds until `wanted` may be spent; for more than it can ever hold, until it is full."""
        short = min(wanted, self._most) - self._filled(now)
        return max(0.0, short / self._rate)

    def spend(self, amount: float, now: float) -> None:
        """Spend an amount, which may be owed; a negative one gives back what was spent for nothing."""
        self._level, self._at = min(self._filled(now) - amount, float(self._most)), now

    def _filled(self, now: float) -> float:
        if self._at == -math.inf:
            return self._level
        return min(float(self._most), self._level + max(0.0, now - self._at) * self._rate)


class Pace:
    """The rate that an endpoint has shown to bear: None until it asks to slow down for the first time.

    From then on requests follow each other evenly. Every rate limit sets the rate a little below that at which requests
    have come through since the last one, pauses included; where no more come it goes back to it, and on beyond it.
    """

    def __init__(self) -> None:
        self._bound = math.inf
        self._clean = self._passed = 0
        self._since = -math.inf
        self._recent: Final[deque[float]] = deque(maxlen=_FEW)
        self._length = float(_CLEAN)
        self._next = -math.inf

    @property
    def rate(self) -> float:
        """Requests a second."""
        if self._bound == math.inf:
            return math.inf
        # 0.95, then 1 after one length, 1.1 after two, 1.7 after four.
        return self._bound * (_BACK - 0.05 + 0.05 * 2 ** min(self._clean / self._length, 32.0))

    def wait(self, now: float) -> float:
        """Seconds until the next request may be sent."""
        return max(0.0, self._next - now)

    def send(self, now: float) -> None:
        """Count a request that is sent now."""
        self._recent.append(now)
        self._passed += 1
        if self._bound != math.inf:
            # A late one does not hold up those behind it, but nothing is made up for that was missed for longer.
            gap = 1 / self.rate
            self._next = max(self._next, now - gap) + gap

    def accepted(self) -> None:
        """Count one that came through."""
        self._clean += 1

    def pause(self, now: float, seconds: float) -> None:
        """Send nothing for a pause that the endpoint asked for."""
        self._next = max(self._next, now + seconds)

    def slow_down(self, now: float, pause: float) -> None:
        """Slow down: a request sent since the last time was refused. What came through since shows what is borne."""
        self.pause(now, pause)
        self._passed -= 1
        held, before = self.rate, self._bound
        elapsed = now - self._since
        if held == math.inf:  # the last ones alone tell: before them there may have been nothing to send
            span = max(now - self._recent[0], 1e-3)
            # A client may take seconds to be made; a rate that is far too high comes down faster than one goes up.
            self._bound = len(self._recent) / (span if len(self._recent) >= _FEW else min(span, 0.1))
        elif self._passed >= _FEW or elapsed >= 1.0:
            # What was measured holds the pauses, and is too low; what was held is too high.
            self._bound = min(held, math.sqrt(held * max(self._passed, 1) / max(elapsed, 1e-3)))
        else:
            self._bound = held * _SLOWED / _BACK
        # A pause costs more than a rate that is a little too low; but one that is far too low is to grow.
        known = before != math.inf and abs(self._bound - before) <= before * _SAME_RATE
        self._length = max(float(_CLEAN), _PAUSES * pause * self._bound if known else 0.0)
        self._clean = self._passed = 0
        self._since = now
