"""Charts as inline SVG: lines with error bars.

Colours come from the classes of the style sheet, so that they follow the light or dark scheme. Nothing is told by
colour alone: arms differ in dash and marker too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from stepguard.core.markup import Html, tag

_WIDTH: Final = 380
_HEIGHT: Final = 258
LINEAR: Final = 30
"""Lengths that differ by more than this factor stand on a logarithmic axis."""
_LETTER: Final = 6.6
"""The width of a letter, roughly: SVG cannot measure text without a script."""
SHAPES: Final = ("circle", "square", "triangle", "diamond", "cross", "down")
DASHES: Final = ("", "7 3", "2 3", "9 3 2 3", "4 4", "1 4")


@dataclass(frozen=True, slots=True)
class Point:
    """A share at a length, with its interval."""

    length: int
    share: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
    """One arm; `style` is its number among the colours, markers and dashes."""

    name: str
    style: int
    points: tuple[Point, ...]


def _text(x: float, y: float, text: str, *, anchor: str = "start", class_: str | None = None) -> Html:
    return tag("text", text, x=x, y=y, text_anchor=anchor, class_=class_)


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _marker(x: float, y: float, style: int) -> Html:
    r = 4.5
    colour, mark = look(style)
    name = f"mark a{colour}{' cross' if SHAPES[mark] == 'cross' else ''}"
    match SHAPES[mark]:
        case "circle":
            return tag("circle", cx=x, cy=y, r=r, class_=name)
        case "square":
            return tag("rect", x=x - r + 0.5, y=y - r + 0.5, width=2 * r - 1, height=2 * r - 1, class_=name)
        case "triangle":
            path = f"M{x:.1f} {y - r:.1f}L{x + r:.1f} {y + r:.1f}H{x - r:.1f}Z"
        case "diamond":
            path = (
                f"M{x:.1f} {y - r - 1:.1f}l{r + 1:.1f} {r + 1:.1f}l{-r - 1:.1f} {r + 1:.1f}l{-r - 1:.1f} {-r - 1:.1f}Z"
            )
        case "cross":
            path = f"M{x - r:.1f} {y - r:.1f}l{2 * r:.1f} {2 * r:.1f}m0 {-2 * r:.1f}l{-2 * r:.1f} {2 * r:.1f}"
        case _:
            path = f"M{x:.1f} {y + r:.1f}L{x + r:.1f} {y - r:.1f}H{x - r:.1f}Z"
    return tag("path", d=path, class_=name)


def look(style: int) -> tuple[int, int]:
    """The colour of an arm; and its marker and dash, which can be told apart without colours.

    The first ones are the guard's alone. Markers shift by one after each round, so that arms that share a colour
    still differ.
    """
    if style == 0:
        return 0, 0
    others = len(SHAPES) - 1
    rounds, at = divmod(style - 1, others)
    return 1 + at, 1 + (at + rounds) % others


def _dash(style: int) -> str | None:
    return DASHES[look(style)[1]] or None


def _swatch(style: int) -> list[Html]:
    line = tag("path", d="M1 7H33", class_=f"line a{look(style)[0]}", stroke_dasharray=_dash(style))
    return [line, _marker(17, 7, style)]


def swatch(style: int) -> Html:
    """The line and marker of an arm, for a legend in text."""
    return tag("svg", _swatch(style), class_="swatch", viewBox="0 0 34 14", aria_hidden="true")


def lines(title: str, series: Sequence[Series]) -> Html:
    """Shares by length: a line and markers for every arm, and an error bar for every interval."""
    return tag(
        "svg",
        tag("title", title),
        _lines(series),
        class_="chart",
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=title,
    )


def picture(title: str, series: Sequence[Series], *, style: str) -> Html:
    """The chart of `lines` as an SVG document by itself, with its title, a legend and a style sheet."""
    head = 24 + 18 * len(series)
    rows = [
        tag("g", _swatch(each.style), _text(42, 11, _short(each.name, 50)), transform=f"translate(8 {22 + 18 * at})")
        for at, each in enumerate(series)
    ]
    return tag(
        "svg",
        tag("title", title),
        tag("style", Html(style)),
        tag("rect", width=_WIDTH, height=head + _HEIGHT, fill="#fff"),
        _text(8, 15, _short(title, 56), class_="strong"),
        rows,
        tag("g", _lines(series), transform=f"translate(0 {head})"),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_WIDTH} {head + _HEIGHT}",
        width=2 * _WIDTH,
    )


def _lines(series: Sequence[Series]) -> list[Html]:
    left, right, top, bottom = 38.0, 14.0, 12.0, 218.0
    lengths = sorted({point.length for each in series for point in each.points})
    place, scale = _placed(lengths, left + 20, _WIDTH - right - 20)

    def y(share: float) -> float:
        return bottom - (bottom - top) * share

    drawn = [_line(left, y(at / 4), _WIDTH - right, y(at / 4), "grid") for at in range(5)]
    drawn += [_text(left - 6, y(at / 4) + 4, f"{25 * at}%", anchor="end") for at in range(5)]
    last = -math.inf
    for length in lengths:
        drawn.append(_line(place(length), bottom, place(length), bottom + 4, "axis"))
        if place(length) - last > _LETTER * len(str(length)) + 6:
            last = place(length)
            drawn.append(_text(last, bottom + 17, str(length), anchor="middle"))
    drawn.append(_text((left + _WIDTH - right) / 2, bottom + 34, f"steps{scale}", anchor="middle"))
    places = [place(length) for length in lengths]
    room = min((after - before for before, after in pairwise(places)), default=_WIDTH)
    apart = min(6.0, 0.7 * room / max(1, len(series)))
    for number, each in enumerate(series):
        # Side by side, or equal values would hide each other.
        aside = apart * (number - (len(series) - 1) / 2)
        at = [(place(point.length) + aside, point) for point in each.points]
        name = f"a{look(each.style)[0]}"
        for x, point in at:
            low, high = (y(bound) for bound in point.interval)
            drawn.append(tag("path", d=f"M{x:.1f} {low:.1f}V{high:.1f}", class_=f"bar {name}"))
            ends = f"M{x - 3:.1f} {low:.1f}h6M{x - 3:.1f} {high:.1f}h6"
            drawn.append(tag("path", d=ends, class_=f"bar {name}"))
        path = "L".join(f"{x:.1f} {y(point.share):.1f}" for x, point in at)
        drawn.append(tag("path", d=f"M{path}", class_=f"line {name}", stroke_dasharray=_dash(each.style)))
        drawn += [_marker(x, y(point.share), each.style) for x, point in at]
    return drawn


def _placed(lengths: Sequence[int], low: float, high: float) -> tuple[Callable[[int], float], str]:
    """Where a length stands on the axis, and what is said about the axis."""
    if len(lengths) == 1:
        return (lambda _: (low + high) / 2), ""
    ratio = lengths[-1] / lengths[0]
    scale = math.log if ratio > LINEAR else float
    first, width = scale(lengths[0]), scale(lengths[-1]) - scale(lengths[0])
    return (lambda length: low + (high - low) * (scale(length) - first) / width), (
        " (logarithmic scale)" if ratio > LINEAR else ""
    )


def _short(name: str, limit: int) -> str:
    return name if len(name) <= limit else f"{name[: limit - 2]}.."
