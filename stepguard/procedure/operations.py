"""Operations: the Python functions and tools of the host that steps call.

A *function* computes: called twice with the same arguments it gives the same and changes nothing. A *tool* has effects
outside of the run (it pays, writes, sends), so it is called once for a step: never again for a step that is completed,
and with the same idempotency key when a declared retry calls it again after it failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from stepguard.core.arguments import check_count, check_flag, check_mapping
from stepguard.errors import ConfigError, ProcedureError

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

KEY: Final = "idempotency_key"
"""A tool with a parameter of this name is given the key of the call: the run and the place of the step."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function with effects, which a step calls.

    Args:
        function: the function, sync or async; its arguments are those of the step, by name. One with a parameter
            ``idempotency_key`` is given a text that is the same whenever this step of this run is tried.
        approval: whether a person has to say yes before each call; the question names the call.
        retries: how often it is called again after it has raised.
        idempotent: whether calling it again with the same arguments changes nothing more, as one is taken to be that
            has a parameter ``idempotency_key``. Such a call is repeated where a run was killed while it was made;
            any other then has to be settled by a person (`stepguard.ledger`).

    Raises:
        ConfigError: an argument cannot work.
    """

    function: Callable[..., object]
    approval: bool = False
    retries: int = 0
    idempotent: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ConfigError(f"a tool is a function, not {self.function!r:.60}", option="tools")
        check_flag(self.approval, "approval")
        check_flag(self.idempotent, "idempotent")
        check_count(self.retries, "retries", least=0)


class WrongResult(ConfigError):
    """A function or tool returned no value of its step's type. It has run, and must not be called again."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A function or a tool under its name.

    Attributes:
        tool: whether it has effects.
        keyed: whether it takes an idempotency key.
        idempotent: whether calling it twice is as calling it once.
    """

    name: str
    function: Callable[..., object]
    tool: bool
    approval: bool = False
    retries: int = 0
    keyed: bool = False
    idempotent: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether a call whose outcome is unknown may be made again."""
        return not self.tool or self.keyed or self.idempotent

    def check_arguments(self, names: tuple[str, ...], step: str) -> None:
        """Refuse a step that calls it with arguments that it does not take, before anything is run.

        Raises ProcedureError: it does.
        """
        try:
            parameters = signature(self.function)
        except (TypeError, ValueError):  # of something that is not written in Python
            return
        arguments = dict.fromkeys((*names, *((KEY,) if self.keyed else ())))
        try:
            parameters.bind(**arguments)
        except TypeError as error:
            raise ProcedureError(f"step {step!r} cannot call {self.name}: {error}", step=step) from None


def operations_of(
    functions: Mapping[str, Callable[..., object]], tools: Mapping[str, Callable[..., object] | Tool]
) -> Mapping[str, Operation]:
    """The operations of a procedure, by name. Raises ConfigError: one cannot be called, or a name stands for two."""
    check_mapping(functions, "functions", what="a mapping of names to functions")
    check_mapping(tools, "tools", what="a mapping of names to functions or Tool")
    operations: dict[str, Operation] = {}
    for name, function in functions.items():
        if not callable(function):
            raise ConfigError(f"the function {name!r} cannot be called: {function!r:.60}", option="functions")
        operations[name] = Operation(name, function, tool=False)
    for name, given in tools.items():
        if name in operations:
            raise ConfigError(f"{name!r} is a function and a tool: give one of them another name", option="tools")
        tool = given if isinstance(given, Tool) else Tool(given)
        operations[name] = Operation(
            name,
            tool.function,
            tool=True,
            approval=tool.approval,
            retries=tool.retries,
            keyed=_keyed(tool.function),
            idempotent=tool.idempotent,
        )
    return MappingProxyType(operations)


def check_called(known: Mapping[str, Operation], steps: Iterable[Step]) -> None:
    """Refuse an operation that one of these steps cannot call, or that none calls. Raises ProcedureError: so it is."""
    called: set[str] = set()
    for step in steps:
        if step.operation is not None and step.operation in known:
            known[step.operation].check_arguments(tuple(name for name, _ in step.arguments), step.id)
            called.add(step.operation)
    if unused := sorted(known.keys() - called):
        raise ProcedureError(f"no step calls {unused[0]!r}: leave it out, or call it by its name")


def check_registered(known: Mapping[str, Operation], steps: Iterable[Step]) -> None:
    """Refuse a step that calls an operation which is not there. Raises ConfigError: one does."""
    for step in steps:
        if step.operation is not None and step.operation not in known:
            raise ConfigError(
                f"step {step.id!r} calls the {step.performer} {step.operation!r}, which is not registered: "
                f"procedure.with_operations({step.performer}s={{{step.operation!r}: ...}})",
                option="procedure",
            )


def _keyed(function: Callable[..., object]) -> bool:
    try:
        parameter = signature(function).parameters.get(KEY)
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
