"""Every exception stepguard raises, in one tree.

::

    StepguardError
    |-- UsageError (also ValueError)        the caller can mend it before any model is called
    |   |-- ProcedureError                  a procedure that cannot be right; names the line
    |   |   `-- PolicyError                 a policy that cannot be right; names the line
    |   |-- ExpressionError                 text that is no expression of the language; names the position
    |   |-- InputError                      inputs that do not fit the procedure
    |   |-- ConfigError                     an option or a combination of options that cannot work
    |   `-- MissingExtraError (ImportError) an optional dependency is not installed; names the extra
    |-- ValueRefused (also ValueError)      a value as a model wrote it cannot be read without guessing
    |-- EvaluationError (ArithmeticError)   an expression has no exact value
    |   |-- UndefinedError                  division by zero and its kin
    |   |-- InexactError                    the value is irrational, or of the wrong kind
    |   `-- TooLargeError                   the value would pass the size limit
    |-- BackendError                        the model could not be reached or did not answer; carries `retryable`
    |   |-- BackendTimeout
    |   |-- RateLimited                     carries `retry_after`
    |   |-- BackendRejected                 the endpoint refused the request itself (400, 401, 403, 404)
    |   |-- CircuitOpen                     a circuit breaker has not sent the request
    |   `-- ReplyMissing                    a recording holds no reply to the request, and there is no model to ask
    |-- LedgerError                         the ledger cannot be read, written or believed
    |   |-- RunConflict                     the run is under way elsewhere, or was begun with something else
    |   `-- UnsettledCall                   a tool was called, and nobody knows what came of it
    `-- RunError                            raised by `Result.raise_for_status`; carries `result`
        |-- StepNotVerified                 status ``abstained``
        |-- RunUnverified                   status ``unverified``
        |-- RunWaiting                      status ``waiting``
        |-- BudgetExhausted                 status ``exhausted``
        `-- RunFailed                       status ``failed``

Outside of it stands `UnexpectedRequest`, an `AssertionError` with which the doubles of `stepguard.testing` speak to a
test.

Misbehaviour of the model never raises: it is a deviation in the result. Facts are attributes, not only text, and
every exception survives pickling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepguard.core.usage import Usage
    from stepguard.results import Result

__all__ = [
    "BackendError",
    "BackendRejected",
    "BackendTimeout",
    "BudgetExhausted",
    "CircuitOpen",
    "ConfigError",
    "EvaluationError",
    "ExpressionError",
    "InexactError",
    "InputError",
    "LedgerError",
    "MissingExtraError",
    "PolicyError",
    "ProcedureError",
    "RateLimited",
    "ReplyMissing",
    "RunConflict",
    "RunError",
    "RunFailed",
    "RunUnverified",
    "RunWaiting",
    "StepNotVerified",
    "StepguardError",
    "TooLargeError",
    "UndefinedError",
    "UnexpectedRequest",
    "UnsettledCall",
    "UsageError",
    "ValueRefused",
]


def _rebuild(cls: type[StepguardError], args: tuple[Any, ...], facts: dict[str, Any]) -> StepguardError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


class StepguardError(Exception):
    """The root of the tree: catch it to catch everything stepguard raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions with keyword-only arguments do not survive pickling by default.
        return _rebuild, (type(self), self.args, dict(self.__dict__))


class UsageError(StepguardError, ValueError):
    """The library was used in a way that cannot work; nothing was sent to a model."""


class ProcedureError(UsageError):
    """A procedure is wrong. `line` is its 1-based line where it came from text, `step` the id of the step."""

    def __init__(self, message: str, *, line: int | None = None, step: str | None = None) -> None:
        super().__init__(f"line {line}: {message}" if line is not None else message)
        self.message = message
        self.line = line
        self.step = step


class PolicyError(ProcedureError):
    """A policy is wrong. `line` is its 1-based line where it came from text."""


class ExpressionError(UsageError):
    """Text is not an expression of the language. `text` is what was found, `position` the 0-based offset in it."""

    def __init__(self, message: str, *, text: str, position: int) -> None:
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        super().__init__(f"{message}, at character {position + 1} of {shown!r}")
        self.message = message
        self.text = text
        self.position = position


class InputError(UsageError):
    """The inputs given to a run do not fit the procedure. `name` is the input, when one is to blame."""

    def __init__(self, message: str, *, name: str | None = None) -> None:
        super().__init__(message)
        self.name = name


class ConfigError(UsageError):
    """An option, or a combination of options, cannot work. `option` is its name."""

    def __init__(self, message: str, *, option: str | None = None) -> None:
        super().__init__(message)
        self.option = option


class MissingExtraError(UsageError, ImportError):
    """An optional dependency is missing. `extra` names what to install."""

    def __init__(self, what: str, *, extra: str) -> None:
        super().__init__(f'{what} needs the "{extra}" extra: pip install "stepguard[{extra}]"')
        self.extra = extra


class ValueRefused(StepguardError, ValueError):
    """A value cannot be read without guessing. `text` is what was found (a long one by its size), `reason` why."""

    def __init__(self, reason: str, *, text: str) -> None:
        long = len(text) > 80
        self.text = f"a text of {len(text)} characters" if long else text
        super().__init__(f"{self.text if long else repr(text)}: {reason}")
        self.reason = reason


class EvaluationError(StepguardError, ArithmeticError):
    """An expression has no exact value of the asked kind."""


class UndefinedError(EvaluationError):
    """The expression has no value: division by zero, zero to the power of zero or less."""


class InexactError(EvaluationError):
    """The value exists but is not exact here (an irrational root), or an operand is of the wrong kind."""


class TooLargeError(EvaluationError):
    """The value would pass the size limit; it was not computed."""


class BackendError(StepguardError):
    """The model did not answer.

    `retryable` says whether the same request may succeed later. `status` is the HTTP status where there was one, and
    `usage` what the call cost all the same, None where that is not known.
    """

    retryable = True
    usage: Usage | None = None

    def __init__(self, message: str, *, status: int | None = None, retryable: bool | None = None) -> None:
        super().__init__(message)
        self.status = status
        if retryable is not None:
            self.retryable = retryable


class BackendTimeout(BackendError):
    """No answer within the time-out of the request."""


class RateLimited(BackendError):
    """The endpoint asks to slow down. `retry_after` is in seconds, None where it did not say."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, status=status)
        self.retry_after = retry_after


class BackendRejected(BackendError):
    """The endpoint refuses this request and will refuse it again: wrong key, unknown model, bad parameter."""

    retryable = False


class CircuitOpen(BackendError):
    """A circuit breaker has not sent a request: the model keeps failing, or has spent what it may. It cost nothing."""

    retryable = False


class ReplyMissing(BackendError):
    """A recording that is replayed holds no reply to a request: the prompt or the settings have changed since."""

    retryable = False


class UnexpectedRequest(AssertionError):
    """A test double was asked what its test did not foresee, or a real model where a test forbids it.

    It is raised out of a run, so that a test fails at the request; an `AssertionError` of any other backend is a
    failure of that backend.
    """


class LedgerError(StepguardError):
    """A ledger cannot be read, written or believed; the message says what was found in which file."""


class RunConflict(LedgerError):
    """A run of a ledger is under way elsewhere (`under_way`), or was begun with another procedure or other inputs."""

    def __init__(self, message: str, *, under_way: bool = False) -> None:
        super().__init__(message)
        self.under_way = under_way


class UnsettledCall(LedgerError):
    """A tool was called in an earlier life of the run, and nothing says what came of it: it is not called again."""


class RunError(StepguardError):
    """A run did not end as asked. `result` holds everything that was verified, and why it stopped."""

    def __init__(self, message: str, *, result: Result) -> None:
        super().__init__(message)
        self.result = result


class StepNotVerified(RunError):
    """A step could not be verified: `result.problem` names it."""


class RunUnverified(RunError):
    """The run completed, but some steps had no applicable check: `result.unverified` names them."""


class RunWaiting(RunError):
    """A person has to answer a step before the run can go on."""


class BudgetExhausted(RunError):
    """A budget or deadline stopped the run."""


class RunFailed(RunError):
    """A backend, tool or procedure error stopped the run: `result.error` is that error."""
