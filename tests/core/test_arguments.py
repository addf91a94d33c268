"""What callers give: refused in the same words everywhere, by the name of the option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from stepguard import Budget, Procedure, Trust, audit
from stepguard.backends.limiter import EndpointLimiter
from stepguard.backends.local import LocalBackend
from stepguard.backends.openai import OpenAIBackend
from stepguard.checks import DaysBetween, Derivative, Forbidden, Integral, Length, OneOf, SolvesSystem
from stepguard.errors import ConfigError
from stepguard.evaluation.arms import ArmOptions
from stepguard.integrations.outputs.checker import OutputChecker
from stepguard.repair.rungs import person
from stepguard.replies.formats import EquationFormat
from stepguard.serve.limits import Limits

SUM: Final = Procedure.parse("inputs: x\nt = x + 1")

ROWS: Final[list[tuple[Callable[..., Any], dict[str, Any], str, str]]] = [
    (Budget, {"calls": -1}, "budget", ""),
    (ArmOptions, {"segment": 0}, "segment", "the number of steps in a segment is"),
    (ArmOptions, {"retry": 5}, "retry", "retry is a RetryPolicy"),
    (ArmOptions, {"history": True}, "history", "history is a whole number of 1 or more, or None, not True"),
    (ArmOptions, {"seed": 1.0}, "seed", "seed is a whole number, or None for a new one each time, not 1.0"),
    (ArmOptions, {"seed": True}, "seed", "seed is a whole number, or None for a new one each time, not True"),
    (Limits, {"body": 2.5}, "body", "body is a whole number of 1 or more, not 2.5"),
    (Limits, {"waiting": -1}, "waiting", "waiting is a whole number of 0 or more, not -1"),
    (Limits, {"send_seconds": 0}, "send_seconds", "send_seconds is in seconds, above 0, not 0"),
    (Limits, {"grace_seconds": True}, "grace_seconds", "grace_seconds is in seconds, 0 or more, not True"),
    (Limits, {"client_share": 0}, "client_share", "client_share is a part above 0 and at most 1, not 0"),
    (Limits, {"client_share": 2}, "client_share", "client_share is a part above 0 and at most 1, not 2"),
    (lambda **given: OutputChecker(SUM, **given), {"steps": "t"}, "steps", "steps is a list of names, or None, not"),
    (lambda **given: OutputChecker(SUM, **given), {"ignore": [1]}, "ignore", "ignore is a list of names, not [1]"),
    (lambda **given: OutputChecker(SUM, **given), {"read": 3}, "read", "read is a function, or None, not 3"),
    (lambda **given: OutputChecker(SUM, **given), {"inputs": ["x"]}, "inputs", "inputs is a mapping of names"),
    (lambda **given: audit(SUM, {"x": 1}, "t = 2", **given), {"check_timeout": "5"}, "check_timeout", "check_timeout"),
    (lambda **given: OneOf("a", **given), {"ignore_case": "no"}, "ignore_case", "ignore_case is true or false"),
    (lambda: OneOf(" "), {}, "options", "an option is a text that is not empty, not ' '"),
    (lambda: Forbidden("sorry", patterns="[0-9]"), {}, "patterns", "patterns is a list such as"),
    (Length, {"least": True}, "least", "least is a whole number of 0 or more, not True"),
    (lambda **given: DaysBetween("a", "b", **given), {"working": 1}, "working", "working is true or false, not 1"),
    (lambda **given: Derivative("x", "x", **given), {"order": True}, "order", "order is a whole number from 1 to"),
    (
        lambda **given: Integral("x", "x", **given),
        {"constant": "c"},
        "constant",
        "constant is 'optional' or 'required'",
    ),
    (lambda **given: Integral("x", "x", **given), {"seconds": 1e9}, "seconds", "seconds is in seconds, above 0 and at"),
    (lambda: SolvesSystem("x = 1", ["x"]), {}, "equations", "equations is a list of texts, not 'x = 1'"),
    (lambda: SolvesSystem([], ["x"]), {}, "equations", "a system has at least one equation"),
    (lambda: SolvesSystem(["x = 1"], []), {}, "variables", "there are 1 to"),
    (EndpointLimiter, {"first": 9, "most": 8}, "first", "first is a whole number from 1 to 8, not 9"),
    (EndpointLimiter, {"most": True}, "most", "most is a whole number of 1 or more, not True"),
    (lambda **given: LocalBackend("x.gguf", **given), {"context": 1.5}, "context", "context is a whole number of 256"),
    (OpenAIBackend, {"model": " "}, "model", "model is text such as 'gpt-4.1-mini', not ' '"),
    (
        lambda **given: OpenAIBackend("m", **given),
        {"provider": 3},
        "provider",
        "provider is text such as 'groq', not 3",
    ),
    (EquationFormat, {"decimal": ";"}, "decimal", "decimal is '.' or ',', not ';'"),
    (person, {"ask": "me"}, "repair", "what asks a person is a function, not 'me'"),
    (Trust, {"inputs": ["robot"]}, "trust", "inputs of Trust are roles out of"),
]


@pytest.mark.parametrize(("make", "given", "option", "words"), ROWS, ids=[row[3][:40] for row in ROWS])
def test_a_wrong_argument_is_named(make: Callable[..., Any], given: dict[str, Any], option: str, words: str) -> None:
    """The error names the option, and says what is wanted and what was given."""
    with pytest.raises(ConfigError) as refused:
        make(**given)
    assert refused.value.option == option
    assert str(refused.value).startswith(words)
