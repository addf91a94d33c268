"""Parts of the page of a run: its spending over time, and every call of the model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Final

from stepguard.core.markup import Child, Html, tag
from stepguard.core.verdicts import Deviation, shorten
from stepguard.results import Attempt
from stepguard.show.text import kept_texts

CALLS: Final = 200
"""How many calls stand on a page."""
_LONGEST: Final = 200
"""Characters of a name."""
_TEXT: Final = 20_000
"""Characters of a message or reply."""
_POINTS: Final = 400
_WIDE, _HIGH = 1000, 100
_OUTCOMES: Final = {"accepted": "good", "partly": "weak", "draft": "quiet"}


def draw_spend(attempts: Sequence[Attempt], times: Sequence[float | None]) -> Child:
    """A curve of the tokens so far over the time, with its ends in words; nothing where there is no curve."""
    spent = list(accumulate(attempt.usage.tokens for attempt in attempts))
    points = [(at, tokens) for at, tokens in zip(times, spent, strict=True) if at is not None]
    if len(points) < 2 or points[-1][1] == 0:
        return None
    first, last = min(at for at, _ in points), max(at for at, _ in points)
    thinned = [*points[: -1 : max(1, len(points) // _POINTS)], points[-1]]
    line, before = [], 0
    for at, tokens in thinned:
        right = round(_WIDE * (at - first) / ((last - first) or 1))
        # A step, not a slope: tokens are spent when a call ends.
        line += [f"{right},{_place(before, spent[-1])}", f"{right},{_place(tokens, spent[-1])}"]
        before = tokens
    words = f"{spent[-1]:,} tokens in {len(attempts):,} calls, from {time_text(first)} to {time_text(last)}"
    curve = tag("polyline", points=" ".join(line))
    chart = tag(
        *("svg", tag("title", words), curve),
        **{"role": "img", "viewBox": f"0 -2 {_WIDE} {_HIGH + 4}", "preserveAspectRatio": "none", "class_": "spend"},
    )
    return [tag("h2", "Spend over time"), chart, tag("p", words, class_="note")]


def _place(tokens: int, most: int) -> int:
    return round(_HIGH - _HIGH * tokens / most)


def list_calls(attempts: Sequence[Attempt], times: Sequence[float | None], page: int) -> Child:
    """One page of the calls, counted from 1, each with what came of it, why, and what was spent up to it."""
    spent = sum(attempt.usage.tokens for attempt in attempts[: (page - 1) * CALLS])
    entries = []
    for each, at in list(zip(attempts, times, strict=True))[(page - 1) * CALLS : page * CALLS]:
        spent += each.usage.tokens
        entries.append(tag("li", *_call(each, at, spent), class_="result"))
    return tag("ol", entries)


def _call(attempt: Attempt, at: float | None, spent: int) -> Iterator[Html]:
    steps = [str(step) for step in attempt.steps]
    places = shorten(f"{steps[0]} to {steps[-1]}" if len(steps) > 1 else "".join(steps), _LONGEST)
    yield tag("span", f"Call {attempt.number} ({attempt.rung}), {places} ")
    yield tag("span", attempt.outcome, class_=f"badge {_OUTCOMES.get(attempt.outcome, 'bad')}")
    for deviation in attempt.deviations:
        yield tag("span", _words(deviation), class_="note")
    if attempt.error is not None:
        yield tag("span", shorten(attempt.error, 300), class_="note")
    written = "" if at is None else f", {time_text(at)}"
    facts = f"{attempt.usage.tokens:,} tokens, {spent:,} so far, {attempt.seconds:.1f} s{written}"
    yield tag("span", facts, class_="note")
    for name, text in kept_texts(attempt):
        left = len(text) - _TEXT
        rest = f"... {left:,} more characters: `stepguard show --calls` prints them" if left > 0 else ""
        yield tag("details", tag("summary", name), tag("pre", text[:_TEXT] + rest))


def _words(deviation: Deviation) -> str:
    where = "" if deviation.step is None else f" at {shorten(deviation.step, _LONGEST)}"
    return f"{deviation.kind}{where}: {shorten(deviation.reason, 300)}"


def time_text(seconds: float) -> str:
    """A time of a clock, for people."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):  # a clock that was far out
        return "at no time that a clock shows"
