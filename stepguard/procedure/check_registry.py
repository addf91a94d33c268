"""Checks by name, for procedures in files.

Other packages add checks by the entry point group ``stepguard.checks``::

    [project.entry-points."stepguard.checks"]
    in_stock = "my_package.checks:in_stock"
    iban = "my_package.checks:Iban"

What is named there is a check, or a class of checks, which is called with the options and refuses wrong ones with
`ConfigError`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from stepguard.core.plugins import Plugins, options_of
from stepguard.errors import ConfigError, ExpressionError, ProcedureError

if TYPE_CHECKING:
    from stepguard.checks.user import Check

CHECKS: Final = Plugins(
    "stepguard.checks",
    "check",
    "stepguard.checks",
    {
        "range": ("stepguard.checks.constraints", "Range"),
        "holds": ("stepguard.checks.constraints", "Holds"),
        "requires": ("stepguard.checks.constraints", "Requires"),
        "distinct": ("stepguard.checks.constraints", "Distinct"),
        "date_is": ("stepguard.checks.dates", "DateIs"),
        "date_holds": ("stepguard.checks.dates", "DateHolds"),
        "days_between": ("stepguard.checks.dates", "DaysBetween"),
        "duration_is": ("stepguard.checks.durations", "DurationIs"),
        "quantity": ("stepguard.checks.units", "Quantity"),
        "measured": ("stepguard.checks.units", "Measured"),
        "complete": ("stepguard.checks.completeness", "Complete"),
        "cites": ("stepguard.checks.citation", "Cites"),
        "grounded": ("stepguard.checks.grounding", "Grounded"),
        "pattern": ("stepguard.checks.text", "Pattern"),
        "one_of": ("stepguard.checks.text", "OneOf"),
        "forbidden": ("stepguard.checks.text", "Forbidden"),
        "length": ("stepguard.checks.text", "Length"),
        "equivalent": ("stepguard.checks.formulas.equality", "Equivalent"),
        "derivative": ("stepguard.checks.formulas.equality", "Derivative"),
        "integral": ("stepguard.checks.formulas.equality", "Integral"),
        "substituted": ("stepguard.checks.formulas.equality", "Substituted"),
        "solves": ("stepguard.checks.formulas.solving", "Solves"),
        "solves_system": ("stepguard.checks.formulas.solving", "SolvesSystem"),
        "solves_inequality": ("stepguard.checks.formulas.solving", "SolvesInequality"),
        "same_matrix": ("stepguard.checks.formulas.matrices", "SameMatrix"),
    },
)
"""The checks of this package and of other installed ones."""


def make_check(name: str, setting: object = None) -> Check:
    """Make the check of a name.

    Args:
        setting: its options, by name; anything but a mapping is the value of its first option, or of a check that takes
            any number of values a list of them; None: none.

    Raises:
        ConfigError: there is no such check, it has no such option or not that value of it, or the package that brings
            it is broken.
    """
    if setting is None or isinstance(setting, Mapping):
        return call_check(name, options=setting)
    entry, _ = CHECKS.find(name)
    many = isinstance(setting, list) and isinstance(entry, type) and _many(entry) is not None
    return call_check(name, cast("list[object]", setting) if many else [setting])


def call_check(name: str, values: Sequence[object] = (), options: Mapping[str, object] | None = None) -> Check:
    """Make a check from a call such as ``length(2, most=4)``: values by position, options by name.

    A check that takes any number of values has them by name, too, as a list: ``date_holds: {relations: [...]}``.

    Raises ConfigError: as `make_check` says; or there are more values than the check takes.
    """
    entry, source = CHECKS.find(name)
    named = dict(options or {})
    if not isinstance(entry, type):
        if not callable(entry):
            raise ConfigError(f"check {name!r}, {source}, is no check: it cannot be called", option="check")
        if values or named:
            raise ConfigError(f"check {name!r} takes no options", option="check")
        return cast("Check", entry)
    allowed, many = options_of(entry), _many(entry)
    if many is None:
        placed = dict(zip(allowed, values, strict=False))
        if len(values) > len(allowed) or not placed.keys().isdisjoint(named):
            raise ConfigError(f"check {name!r} is given {len(values)} values: {_options_text(allowed)}", option="check")
        values, named = (), {**placed, **named}
    elif not values and isinstance(listed := named.get(many), list):
        values = listed
        del named[many]
    if unknown := [key for key in named if key not in allowed]:
        raise ConfigError(f"check {name!r} has no option {unknown[0]!r}: {_options_text(allowed)}", option="check")
    try:
        # Bound first, so that a wrong option is told apart from an error inside the check.
        inspect.signature(entry).bind(*values, **named)
    except TypeError as error:
        raise ConfigError(f"check {name!r}: {error}; {_options_text(allowed)}", option="check") from None
    try:
        check: object = entry(*values, **named)
    except (ConfigError, ExpressionError, ProcedureError) as error:
        raise ConfigError(f"check {name!r}: {error}", option="check") from error
    except Exception as error:  # a check of another package may raise anything
        raise CHECKS.broken(name, source, error) from error
    if not callable(check):
        raise ConfigError(f"check {name!r}, {source}, is no check: it cannot be called", option="check")
    return cast("Check", check)


def _many(check: type) -> str | None:
    """What a check calls its values that takes any number of them, None for one that does not."""
    first = next(iter(inspect.signature(check).parameters.values()), None)
    return first.name if first is not None and first.kind is inspect.Parameter.VAR_POSITIONAL else None


def _options_text(allowed: list[str]) -> str:
    return f"it takes {', '.join(allowed)}" if allowed else "it takes none"
