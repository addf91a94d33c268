"""The options of a guard: written once, shown everywhere, and refused by name where they cannot work."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from stepguard import Budget, Guard, Ladder
from stepguard.engine.segments import Segments
from stepguard.errors import ConfigError
from stepguard.guard.options import DropInKeywords, GuardKeywords, GuardOptions
from stepguard.repair.rungs import Question


def _model(messages: object) -> str:
    return ""


def test_keywords_and_options_are_the_same() -> None:
    """What type checkers accept is what the options hold, with the same types; drop-ins take all but two."""
    held = {each.name: str(each.type) for each in fields(GuardOptions)}
    assert held == {name: hint.__forward_arg__ for name, hint in GuardKeywords.__annotations__.items()}
    assert set(DropInKeywords.__annotations__) == set(held) - {"observe", "ledger"}


def test_help_shows_every_option_with_its_default() -> None:
    """Notebooks and `help` do not end at ``**options``."""
    shown = inspect.signature(Guard).parameters
    assert list(shown) == ["backend", "model", *(each.name for each in fields(GuardOptions))]
    assert shown["parallel"].default == 1
    assert shown["check_timeout"].default == 60.0
    documented = inspect.getdoc(GuardOptions) or ""
    assert all(f"\n    {each.name}: " in documented for each in fields(GuardOptions))


def test_a_guard_says_what_it_was_given() -> None:
    """Options that were left out stand at their defaults."""
    guard = Guard(_model, segment=5, seed=3)
    assert guard.options == GuardOptions(segment=5, seed=3)
    assert guard.options.budget is None


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("segment", 0, "the number of steps in a segment is a whole number of 1 or more, or None, not 0"),
        ("segment", True, "the number of steps in a segment is a whole number of 1 or more, or None, not True"),
        ("repair", -1, "the number of retries is a whole number of 0 or more, not -1"),
        ("repair", Ladder, "repair is a number of retries, or a policy such as Ladder([Resample()]), not <class"),
        ("repair", "hard", "repair is a number of retries, or a policy such as Ladder([Resample()]), not 'hard'"),
        ("budget", 40, "budget is a Budget such as Budget(calls=40), not 40"),
        ("retry", 2, "retry is a RetryPolicy such as RetryPolicy(retries=4), not 2"),
        ("reply_format", "json", "reply_format is a ReplyFormat such as EquationFormat(), not 'json'"),
        ("parallel", 1.5, "parallel is a whole number of 1 or more, not 1.5"),
        ("parallel", True, "parallel is a whole number of 1 or more, not True"),
        ("check_timeout", 0, "check_timeout is in seconds, above 0, or None for no limit, not 0"),
        ("check_timeout", float("nan"), "check_timeout is in seconds, above 0, or None for no limit, not nan"),
        ("stop_early", "no", "stop_early is true or false, not 'no'"),
        ("observe", 1, "observe is true or false, not 1"),
        ("history", 0, "history is a whole number of 1 or more, or None, not 0"),
        ("profile", {}, "profile is a Profile, such as that of a result, not {}"),
        ("seed", "lucky", "seed is a whole number, or None for a new one each time, not 'lucky'"),
        ("observer", 5, "observer is a function of action and event"),
    ],
    ids=lambda value: str(value)[:30],
)
@pytest.mark.parametrize("make", [GuardOptions, lambda **options: Guard(_model, **options)], ids=["options", "guard"])
def test_what_cannot_work_is_refused_by_name(make: Callable[..., Any], option: str, value: object, words: str) -> None:
    """The message says what was given, and what is wanted; the error names the option."""
    with pytest.raises(ConfigError) as refused:
        make(**{option: value})
    assert refused.value.option == option
    assert str(refused.value).startswith(words)


def test_unknown_options_are_named_with_the_likely_one() -> None:
    """A misspelt option does nothing silently."""
    with pytest.raises(ConfigError, match="'segments' is no option of Guard: write segment") as refused:
        Guard(_model, segments=5)  # type: ignore[call-arg]
    assert refused.value.option == "segments"
    with pytest.raises(ConfigError, match="'colour' is no option of Guard: they are segment, repair, budget"):
        Guard(_model, colour="red")  # type: ignore[call-arg]


def test_an_observing_guard_climbs_no_ladder() -> None:
    """What measures a model without the guard takes no rung that helps it."""
    with pytest.raises(ConfigError, match="an observing run helps nobody"):
        GuardOptions(observe=True, repair=Ladder([Question()]))
    assert GuardOptions(observe=True).settings().repair == Ladder.of(4)


def test_what_is_left_out_is_filled_in() -> None:
    """The settings of a run leave nothing open, and each run without a seed has a new one."""
    settings = GuardOptions(segment=5).settings()
    assert (settings.segments, settings.budget, settings.repair) == (Segments(5), Budget(), Ladder())
    assert GuardOptions(seed=7).settings().seed == 7
    assert len({GuardOptions().settings().seed for _ in range(5)}) > 1
