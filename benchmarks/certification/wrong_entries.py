"""Wrong entries of one step: how they are registered, and those with a wrong value behind the right working.

Every mutant is made with what it is worth, and counts only where that is wrong by `truth`: a value that the declared
type, rounding or tolerance does not allow; working that comes to something else than the step or is made of other
numbers; text that says something else than one value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from certification.cases import Case
from certification.truth import MODES, Fn, Truth, compute, rounded

__all__ = ["WRONG_ENTRIES", "Wrong", "wrong_kind", "wrong_value"]


@dataclass(frozen=True, slots=True)
class Wrong:
    """A wrong entry.

    Attributes:
        entry: what stands in the reply.
        fault: ``value``, ``working`` or ``statement``.
    """

    entry: object
    fault: str


Maker = Callable[[Case], Wrong | None]
WRONG_ENTRIES: dict[str, Maker] = {}
"""How the right entry of a step is made wrong; None where this step does not allow it."""


def wrong_kind(name: str) -> Callable[[Maker], Maker]:
    """Register a kind of wrong entries."""

    def register(maker: Maker) -> Maker:
        assert name not in WRONG_ENTRIES
        WRONG_ENTRIES[name] = maker
        return maker

    return register


def wrong_value(case: Case, value: Truth | None, *, work: str | None = None, text: str | None = None) -> Wrong | None:
    """A wrong value behind right working, or other working; None where the value is right after all."""
    if value is None or not case.spec.wrong(value, case.made.exact):
        return None
    shown = case.spec.write(value) if text is None else text
    return Wrong(case.with_work(work or case.work(), shown), "value")


def _values(name: str) -> Callable[[Callable[[Case, Fraction], Fraction | None]], None]:
    """Register a change of the number that a step has come to."""

    def register(change: Callable[[Case, Fraction], Fraction | None]) -> None:
        @wrong_kind(name)
        def made(case: Case) -> Wrong | None:
            number = case.number
            return None if number is None else wrong_value(case, change(case, number))

    return register


def _unshown(case: Case, number: Fraction) -> Fraction:
    return number / 100 if case.spec.kind == "percent" else number


def _unit(case: Case) -> Fraction:
    return Fraction(1, 10 ** (case.spec.scale or 0))


@_values("off by one")
def _off_by_one(case: Case, number: Fraction) -> Fraction:
    return number + case.chance.choice([-1, 1])


@_values("off by one in the last place")
def _last_place(case: Case, number: Fraction) -> Fraction:
    return number + case.chance.choice([-1, 1]) * _unit(case)


@_values("carry lost")
def _carry(case: Case, number: Fraction) -> Fraction:
    places = case.chance.randint(1, max(1, len(str(int(abs(number)))) - 1))
    return number + Fraction(case.chance.choice([-1, 1]) * int("1" + "0" * places))


@_values("sign")
def _sign(case: Case, number: Fraction) -> Fraction:
    return -number


@_values("decimal point moved")
def _shifted(case: Case, number: Fraction) -> Fraction | None:
    moved = number * Fraction(case.chance.choice([1_000, 10_000, 100_000, 10, 1]), 100)
    return moved if case.spec.kind != "integer" or moved.denominator == 1 else None


@_values("inverted")
def _inverted(case: Case, number: Fraction) -> Fraction | None:
    return 1 / number if number and case.spec.kind == "number" else None


@_values("near equal")
def _near(case: Case, number: Fraction) -> Fraction | None:
    if case.spec.kind not in ("number", "percent") or case.spec.places is not None:
        return None
    return number + Fraction(case.chance.choice([-1, 1]) * case.chance.randint(1, 9), 10 ** case.chance.randint(3, 25))


@_values("double precision")
def _double(case: Case, number: Fraction) -> Fraction | None:
    if case.spec.kind not in ("number", "integer"):
        return None
    return Fraction(int(float(number))) if number.denominator == 1 else Fraction(repr(float(number)))


@_values("rounded without a declaration")
def _undeclared(case: Case, number: Fraction) -> Fraction | None:
    return rounded(number, case.chance.randint(0, 6), "half_up") if case.spec.places is None else None


@_values("a power of ten more places")
def _finer(case: Case, number: Fraction) -> Fraction | None:
    exact, scale = case.made.exact, case.spec.scale
    return rounded(exact, scale + 1, "half_up") if scale is not None and isinstance(exact, Fraction) else None


def _in_mode(case: Case, mode: str) -> Wrong | None:
    exact, scale, tree = case.made.exact, case.spec.scale, case.made.tree
    if scale is not None and isinstance(exact, Fraction):
        return wrong_value(case, rounded(exact, scale, mode))
    if isinstance(tree, Fn) and tree.name == "round":
        return wrong_value(case, compute(replace(tree, mode=mode), case.state))
    return None


@wrong_kind("truncated instead of rounded")
def _truncated(case: Case) -> Wrong | None:
    return _in_mode(case, "down")


@wrong_kind("half even for half up, or the reverse")
def _ties(case: Case) -> Wrong | None:
    return _in_mode(case, case.chance.choice(["half_even", "half_up", "half_down"]))


@wrong_kind("another rounding mode")
def _other_mode(case: Case) -> Wrong | None:
    return _in_mode(case, case.chance.choice(MODES))


@wrong_kind("rounded twice")
def _twice(case: Case) -> Wrong | None:
    exact, scale = case.made.exact, case.spec.scale
    if scale is None or not isinstance(exact, Fraction):
        return None
    return wrong_value(case, rounded(rounded(exact, scale + 1, case.spec.mode), scale, case.spec.mode))


@wrong_kind("just beyond the tolerance")
def _beyond(case: Case) -> Wrong | None:
    exact, spec = case.made.exact, case.spec
    if spec.within is None or not isinstance(exact, Fraction):
        return None
    allowed = abs(exact) * spec.within if spec.relative else spec.within
    places = case.chance.randint(3, 12)
    outward = case.chance.choice([-1, 1])
    edge = rounded(exact + outward * allowed, places, "ceiling" if outward > 0 else "floor")
    return wrong_value(case, edge + outward * Fraction(1, 10**places), text=None)


def _digits_changed(change: Callable[[Case, str], Iterator[str]], name: str) -> None:
    @wrong_kind(name)
    def made(case: Case) -> Wrong | None:
        number = case.number
        if number is None:
            return None
        text = case.plain.removesuffix("%")
        found = list(change(case, text))
        if not found:
            return None
        changed = case.chance.choice(found)
        value = _unshown(case, Fraction(changed))
        return wrong_value(case, value, text=changed + "%" * case.plain.endswith("%"))


def _transposed(case: Case, text: str) -> Iterator[str]:
    for at in range(len(text) - 1):
        one, two = text[at], text[at + 1]
        if one.isdigit() and two.isdigit() and one != two:
            yield text[:at] + two + one + text[at + 2 :]


def _dropped(case: Case, text: str) -> Iterator[str]:
    for at, char in enumerate(text):
        if char.isdigit() and sum(each.isdigit() for each in text) > 1 and "/" not in text:
            shorter = text[:at] + text[at + 1 :]
            if shorter.strip("-.") and shorter[-1] != "." and shorter.lstrip("-")[0] != ".":
                yield shorter


def _doubled(case: Case, text: str) -> Iterator[str]:
    for at, char in enumerate(text):
        if char.isdigit() and "/" not in text:
            yield text[:at] + char + text[at:]


def _replaced(case: Case, text: str) -> Iterator[str]:
    for at, char in enumerate(text):
        if char.isdigit() and "/" not in text:
            yield text[:at] + case.chance.choice("0123456789") + text[at + 1 :]


_digits_changed(_transposed, "digits transposed")
_digits_changed(_dropped, "digit dropped")
_digits_changed(_doubled, "digit doubled")
_digits_changed(_replaced, "digit replaced")


@wrong_kind("the other truth value")
def _negated(case: Case) -> Wrong | None:
    truth = case.made.truth
    return wrong_value(case, not truth) if isinstance(truth, bool) else None


@wrong_kind("another option")
def _other_option(case: Case) -> Wrong | None:
    return wrong_value(case, case.chance.choice(case.spec.options)) if case.spec.options else None


@wrong_kind("another text")
def _other_text(case: Case) -> Wrong | None:
    if case.spec.kind != "text":
        return None
    text = case.plain
    ways = (
        f"{text}s",
        text.upper(),
        text[:-1],
        f"{text}.",
        f'"{text}"',
        f"the {text}",
        "",
        f"{text} {text}",
        f"{text} or so",
    )
    return wrong_value(case, case.chance.choice(ways))


@wrong_kind("value of another variable")
def _stale_result(case: Case) -> Wrong | None:
    names = [name for name, value in case.state.items() if isinstance(value, Fraction)]
    value = case.state[case.chance.choice(names)]
    whole = isinstance(value, Fraction) and (case.spec.kind != "integer" or value.denominator == 1)
    return wrong_value(case, value) if case.number is not None and whole else None
