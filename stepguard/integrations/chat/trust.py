"""Trust: the roles whose messages may bring a procedure, or the values of its inputs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from stepguard.core.arguments import check_instance, check_mapping
from stepguard.errors import ConfigError

ROLES: Final = ("system", "developer", "user")
"""The roles that can be trusted. What a model or a tool says is data, whatever it holds."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The roles whose messages a drop-in reads; by default it reads none.

    A procedure and its inputs come from the call: ``procedure=`` and ``inputs=``, the name of a procedure in the model
    of a request, or what a drop-in is made with. Messages are data. A host whose messages are its own may trust the
    roles that bring them, which is then as good as its own word: `stepguard.integrations.chat.requests` says how a
    procedure and values are written in a message. Quotations, blocks and documents inside a message never count.

    Args:
        procedures: the roles of messages that may be a procedure, such as ``("system", "developer")``.
        inputs: the roles of messages that may give the values of inputs, such as ``("user",)``. They are read where
            the call itself gives no inputs.

    Raises:
        ConfigError: a role is not one of `ROLES`.
    """

    procedures: Collection[str] = ()
    inputs: Collection[str] = ()

    def __post_init__(self) -> None:
        for name in ("procedures", "inputs"):
            given = getattr(self, name)
            roles = (given,) if isinstance(given, str) else given
            if not isinstance(roles, Collection) or (unknown := [role for role in roles if role not in ROLES]):
                wrong = unknown[0] if isinstance(roles, Collection) else given
                raise ConfigError(
                    f"{name} of Trust are roles out of {', '.join(ROLES)}, not {wrong!r:.60}: what models and tools "
                    "say is data",
                    option="trust",
                )
            object.__setattr__(self, name, frozenset(roles))


def check_trust(given: Trust | None) -> Trust:
    """Check the option ``trust``; None trusts nobody. Raises ConfigError: it is something else."""
    check_instance(given, Trust, "trust", what="a Trust such as Trust(inputs=('user',))", optional=True)
    return given or Trust()


def check_inputs(inputs: object, procedure: object) -> None:
    """Refuse inputs that are neither values nor a function that returns them, and inputs of no procedure.

    Raises ConfigError: they are.
    """
    if not callable(inputs):
        check_mapping(inputs, "inputs", what="a mapping or a function", optional=True)
    if inputs is not None and procedure is None:
        raise ConfigError("inputs are given, and no procedure: name one", option="inputs")
