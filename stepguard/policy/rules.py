"""The parts of a policy, tools, facts and rules, the same for text, YAML and Python.

An expression may be given as text. `line` is where a node stands in a text; two nodes that say the same are equal
wherever they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Literal

from stepguard.core.arguments import check_count
from stepguard.errors import ConfigError
from stepguard.language.evaluation import shortened
from stepguard.language.expressions import Expression
from stepguard.language.terms.operands import Operand
from stepguard.language.value_types import TEXT, TypeLike
from stepguard.procedure.notation import parse_term

ExpressionLike = Expression | str


def tree_of(given: ExpressionLike) -> Expression:
    """An expression, which may be given as text."""
    return parse_term(given) if isinstance(given, str) else given


def short_text(given: ExpressionLike) -> str:
    """An expression as text, cut where it is long."""
    return shortened(tree_of(given))


def _read_field(node: object, name: str) -> None:
    # Past the freezing of the class: this happens once, while the node is made.
    value = getattr(node, name)
    if isinstance(value, str):
        object.__setattr__(node, name, parse_term(value))


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument of a tool, or a key of a fact.

    Attributes:
        name: its name.
        type: its type.
        default: what holds where it is left out; None: it may not be.
    """

    name: str
    type: TypeLike = TEXT
    default: object | None = None


@dataclass(frozen=True, slots=True)
class CallPattern:
    """Calls of a tool: with these arguments, by position or by name; with all of them, or with some.

    Attributes:
        tool: the name of the tool.
        positional: the first arguments.
        named: further arguments by name; those that are not named may be any.
    """

    tool: str
    positional: tuple[ExpressionLike, ...] = ()
    named: tuple[tuple[str, ExpressionLike], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "positional", tuple(map(tree_of, self.positional)))
        object.__setattr__(self, "named", tuple((name, tree_of(each)) for name, each in self.named))

    def arguments(self, names: Iterable[str]) -> list[tuple[str, ExpressionLike]]:
        """The given arguments by name; `names` are the parameters of the tool."""
        return [*zip(names, self.positional, strict=False), *self.named]


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """A tool that the agent may call.

    Attributes:
        name: its name.
        parameters: its arguments, in order.
        result: the type of what it gives back, None where no rule reads that. Of a record only the fields that are
            declared are read.
        effect: ``reads`` where it changes nothing.
        changes: what is not known any more once it was called: the calls whose results it makes stale. None: all.
        more: whether it takes further arguments, which no rule reads and which are passed on as they are.
    """

    name: str
    parameters: tuple[Parameter, ...] = ()
    result: TypeLike | None = None
    effect: Literal["reads", "changes"] = "changes"
    changes: tuple[CallPattern, ...] | None = None
    more: bool = False
    line: int | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that only the host, a person or a checked judgement knows: read as `name`, or as `name[key]`.

    Attributes:
        name: its name.
        type: the type of its value.
        keys: what it is about; none for a fact about the conversation as a whole.
        question: what is asked where it is not known; None: only the host can give it.
        judged: whether the answer follows from the keys by judgement, so that a guard may be asked for it.
    """

    name: str
    type: TypeLike
    keys: tuple[Parameter, ...] = ()
    question: str | None = None
    judged: bool = False
    line: int | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Exemption:
    """When a demand does not count: ``unless condition``, or ``only if condition``.

    Attributes:
        condition: a truth value.
        counts: whether the demand counts where the condition holds (``only if``), or where it does not (``unless``).
    """

    condition: ExpressionLike
    counts: bool = False

    def __post_init__(self) -> None:
        _read_field(self, "condition")


@dataclass(frozen=True, slots=True, kw_only=True)
class WordedDemand:
    """A demand with its words for the agent and its exemption."""

    exemption: Exemption | None = None
    words: str | None = None
    # Neither compared nor shown: the digest of a policy is made of what is shown, and a line that moves makes no other.
    line: int | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Seen(WordedDemand):
    """``seen get_order(id) as order``: the last result of one of these calls, still as it was, under a name."""

    patterns: tuple[CallPattern, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Done(WordedDemand):
    """``done verify(customer)``: such a call succeeded; ``not done``: none was let through."""

    pattern: CallPattern
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Earlier:
    """``earlier refund(order=id) as refunds``: the arguments of every such call that was let through, as a list."""

    pattern: CallPattern
    name: str
    line: int | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SeenAll:
    """``seen all get_order(customer=c) as orders``: every result of such calls that is still as it was, as a list.

    It does not demand that there is one, and ``all of`` an empty list holds: ask for its ``count of``, too.
    """

    pattern: CallPattern
    name: str
    line: int | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Requirement(WordedDemand):
    """``require amount <= 100``, or ``refuse if amount > 100``."""

    condition: ExpressionLike
    negated: bool = False

    def __post_init__(self) -> None:
        _read_field(self, "condition")


@dataclass(frozen=True, slots=True)
class Confirmation(WordedDemand):
    """``confirmed by user``: the host was told yes by them, for this very call, once."""

    by: str


@dataclass(frozen=True, slots=True)
class Limit(WordedDemand):
    """``at most 3 times per customer within 24 hours``."""

    most: int
    per: tuple[ExpressionLike, ...] = ()
    within: ExpressionLike | None = None

    def __post_init__(self) -> None:
        check_count(self.most, "most")
        object.__setattr__(self, "per", tuple(map(tree_of, self.per)))
        _read_field(self, "within")


@dataclass(frozen=True, slots=True)
class Prohibition(WordedDemand):
    """``never delete_account``."""


@dataclass(frozen=True, slots=True)
class Binding:
    """``rest = order.paid - order.refunded``: a name for the value of an expression."""

    name: str
    value: ExpressionLike
    line: int | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _read_field(self, "value")


@dataclass(frozen=True, slots=True)
class Branching:
    """``if``, ``else if``, ``else``: the demands of the first branch whose condition holds."""

    branches: tuple[tuple[ExpressionLike, tuple[Demand, ...]], ...]
    otherwise: tuple[Demand, ...] = ()
    line: int | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "branches", tuple((tree_of(each), tuple(body)) for each, body in self.branches))


@dataclass(frozen=True, slots=True)
class Repetition:
    """``for each item in items:`` the demands hold for every one of them."""

    variable: str
    over: ExpressionLike
    body: tuple[Demand, ...]
    line: int | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _read_field(self, "over")


Demand = (
    Seen
    | SeenAll
    | Done
    | Earlier
    | Requirement
    | Confirmation
    | Limit
    | Prohibition
    | Binding
    | Branching
    | Repetition
)


@dataclass(frozen=True, slots=True)
class Rule:
    """``before refund(order, amount):`` what has to hold before a tool is called.

    Attributes:
        tool: the tool.
        demands: what is demanded, in order; what one binds, those below it may read. None at all: it may be called.
        names: the names of its first arguments in this rule; those of the tool where fewer are given.
    """

    tool: str
    demands: tuple[Demand, ...] = ()
    names: tuple[str, ...] = ()
    line: int | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tool, str) or not self.tool:
            raise ConfigError("a rule names its tool", option="tool")


def bound_names(rule: Rule, parameters: Iterable[str]) -> tuple[str, ...]:
    """The names of a tool's arguments in a rule."""
    return (*rule.names, *tuple(parameters)[len(rule.names) :])


def nodes_of(root: object) -> Iterator[object]:
    """Every node of a rule: demands, patterns, expressions."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack.extend(node)
        elif is_dataclass(node) and not isinstance(node, type):
            yield node
            stack.extend(
                getattr(node, each.name)
                for each in fields(node)
                if not (isinstance(node, Operand) and each.name == "name")
            )
