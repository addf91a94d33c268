"""The base of the checks that come with stepguard.

Each is a frozen value: configured once, compared by its configuration, shared between threads. It knows which
variables it reads and whether it fits a step, so that a mistake shows when a procedure is made and not in the middle
of a run.

Two sorts must not be confused. Some checks *support* a value: it is in a range, it stands in the document. Others can
only *object*: no forbidden word is in it. That nothing objects says nothing for a value, and the text of a failure
(``Error: tool not available``) holds no forbidden word either; so these say fail or not applicable, and never pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final

from stepguard.core.plugins import name_of_class
from stepguard.core.verdicts import Claim, DeviationKind, Strength, Verdict
from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.digits import Exact, exact
from stepguard.language.numerals import read_numeral
from stepguard.language.values import Value

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

MAX_DOCUMENT: Final = 2_000_000
"""The longest document, in characters, that is searched."""

NumberOption = int | Fraction | Decimal | float | str
"""A number in a configuration; a float stands for the decimal that Python prints for it."""


class BuiltCheck(ABC):
    """A check of one step that knows what it reads.

    It is called like every check, with the step, the values and the claim, and gives a `Verdict`.
    """

    __slots__ = ()
    name: ClassVar[str]
    """The name of its verdicts: that of its class in small letters, unless the class says another."""

    _strongest: ClassVar[Strength] = "proved"

    def __init_subclass__(cls) -> None:
        if "name" not in vars(cls):
            cls.name = name_of_class(cls.__name__)

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables it needs. The step's own may be among them; every other one the step has to read."""
        return ()

    @property
    def strongest(self) -> Strength:
        """The most that a pass of it can stand for: ``"unverified"`` where it can only object."""
        return self._strongest

    def misfit(self, step: Step) -> str | None:
        """Why this check cannot judge this step, whatever is claimed; None where it can."""
        missing = [name for name in self.reads if name != step.id and name not in step.reads]
        if missing:
            return f"{self!r} needs {missing[0]!r}, which the step does not read"
        return self._misfit(step)

    def _misfit(self, step: Step) -> str | None:
        return None

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim, /) -> Verdict:
        reason = self.misfit(step)
        # A step refuses a check that does not fit; this catches one that is called directly.
        return self._judge(step, values, claim) if reason is None else self._undecided(reason, retry=False)

    @abstractmethod
    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict: ...

    def _set(self, **fields: object) -> None:
        for name, value in fields.items():  # it is frozen: its own `__init__` alone may
            object.__setattr__(self, name, value)

    def _pass(self, reason: str = "", *, strength: Strength = "constrained") -> Verdict:
        return Verdict("pass", self.name, reason=reason, strength=strength)

    def _fail(self, reason: str, kind: DeviationKind = "wrong_value") -> Verdict:
        return Verdict("fail", self.name, kind, reason)

    def _undecided(self, reason: str, *, retry: bool = True) -> Verdict:
        return Verdict("undecided", self.name, "undecided", reason, retry=retry)

    def _no_objection(self) -> Verdict:
        return Verdict("not_applicable", self.name)


class DocumentCheck(BuiltCheck):
    """A check that compares a claim with a document that its step reads."""

    __slots__ = ()
    document: str

    @property
    def reads(self) -> tuple[str, ...]:
        """The document."""
        return (self.document,)

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        document = values[self.document]
        if not isinstance(document, str) or len(document) > MAX_DOCUMENT:
            return self._undecided(f"{self.document} is no text of up to {MAX_DOCUMENT} characters", retry=False)
        return self._judge_by(document, step, values, claim)

    def _judge_by(self, document: str, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        raise NotImplementedError


def check_document(document: object) -> None:
    """Raise ConfigError unless `document` can be the name of a variable."""
    if not isinstance(document, str) or not document.isidentifier():
        raise ConfigError(f"document is the name of a variable, not {document!r:.60}", option="document")


def read_number_option(value: object, option: str) -> tuple[Exact, bool]:
    """A number in a configuration, exactly, and whether it was written as a percentage.

    Raises ConfigError: it is no number, not finite, or has a currency.
    """
    text: str | None = None
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return exact(Fraction(value)), False
    if isinstance(value, float | Decimal):
        # repr: the shortest decimal that is this float. 0.1 means a tenth, not the binary fraction next to it.
        text = repr(float(value)) if isinstance(value, float) else str(value)
    elif isinstance(value, str):
        text = value
    try:
        read = None if text is None else read_numeral(text)
    except ValueRefused as error:
        raise ConfigError(f"{option} is a number: {error}", option=option) from None
    if read is None or read.unit not in (None, "%"):
        raise ConfigError(f"{option} is a number such as 0.5 or '5%', not {value!r}", option=option)
    return read.value, read.unit == "%"


def unit_claimed(claim: Claim) -> str | None:
    """The percent sign or the currency that a claimed number is written with; None where it has none.

    The value itself does not tell: 500% is 5, and so is $5.
    """
    try:
        return read_numeral(claim.value).unit
    except ValueRefused:
        return None
