"""LangGraph: a node that carries out a procedure (``pip install "stepguard[langgraph]"``).

::

    from stepguard.integrations.langgraph import procedure_node

    graph = StateGraph(State)
    graph.add_node("invoice", procedure_node(guard, procedure, on_unverified="return"))
    graph.add_conditional_edges("invoice", lambda state: state["status"], {"verified": "pay", ...})

All that a node writes is JSON data, which every checkpointer can keep: numbers that JSON would round are text, as in
`Result.to_dict`, and a node reads them back exactly. A percentage is the exception: its value is the ratio, so the
node that is to read it as a percentage needs `inputs`.

LangGraph drops what is written to keys that the state does not have. Nodes that run side by side need keys of their
own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from stepguard.core.arguments import check_instance, check_mapping, check_one_of
from stepguard.core.verdicts import Strength
from stepguard.errors import ConfigError, InputError, MissingExtraError
from stepguard.guard import Guard
from stepguard.integrations.chat.answers import refusal as refusal_of
from stepguard.integrations.chat.answers import shortfall
from stepguard.integrations.chat.requests import named_procedure
from stepguard.integrations.openai.client import OnUnverified
from stepguard.integrations.support import check_support
from stepguard.procedure.procedure import Procedure
from stepguard.results import Result

try:
    from langchain_core.runnables import RunnableLambda
    from langgraph.errors import GraphBubbleUp
except ImportError as error:
    raise MissingExtraError("a LangGraph node", extra="langgraph") from error

__all__ = ["Inputs", "procedure_node", "taken_over"]

Inputs = Mapping[str, str] | Callable[[Any], Mapping[str, object]]
"""Where the inputs of a procedure are: the key of the state for each, or a function of the state that gives them."""

_DEEPEST_CAUSE: Final = 10  # causes may form a ring


def procedure_node(
    guard: Guard,
    procedure: Procedure | str,
    *,
    inputs: Inputs | None = None,
    answer: str | None = "answer",
    values: str | None = "values",
    status: str | None = "status",
    refusal: str | None = "refusal",
    result: str | None = "result",
    on_unverified: OnUnverified = "raise",
    at_least: Strength = "proved",
    name: str | None = None,
) -> RunnableLambda[Any, dict[str, Any]]:
    """A node of a graph that runs a procedure, sync and async.

    A run that is interrupted by the graph begins anew when it is resumed, unless the guard has a ledger and the graph
    is invoked inside `stepguard.ledger.named_run`. A ``RetryPolicy`` of the node would repeat whole runs, beside what
    the guard repeats: leave it out, or have it leave `RunError` alone.

    Args:
        guard: what runs it. `invoke` needs a backend that can block, `ainvoke` takes any.
        procedure: what to run: a `Procedure`, or its text.
        inputs: see `Inputs`. By default, and for inputs that a mapping leaves out, the key is the input's name.
        answer: the key of the state that gets the answer; None, here and below, to write no such thing.
        values: gets the inputs and the value of every step, by name.
        status: gets the `stepguard.results.Status`.
        refusal: gets None, or one line on why there is no answer, which a model may be told.
        result: gets `Result.to_dict`: every step, every reply, and the checker's reasons. It is not for a model.
        on_unverified: what is done with a result that is no answer: ``"raise"`` raises the `RunError` of
            `Result.raise_for_status`, whose ``result`` holds what was verified. ``"return"`` writes it: the answer is
            None and there are no values, so that the graph can go on by the status.
        at_least: what is to stand behind every step of an answer; see `Result.raise_for_status`.
        name: what the node is called; the procedure's name by default.

    The node raises `InputError` where the state lacks an input, or it is not of its type; no model is asked then.

    Raises:
        ConfigError: an option cannot work.
        ProcedureError: the text is no procedure.
    """
    check_instance(guard, Guard, "guard", what="a Guard such as Guard('openai/gpt-4.1-mini')")
    wanted = named_procedure(procedure)
    check_one_of(on_unverified, get_args(OnUnverified), "on_unverified")
    check_support([wanted], at_least)
    read = _reader(wanted, inputs)
    keys = {"answer": answer, "values": values, "status": status, "refusal": refusal, "result": result}
    used = [key for key in keys.values() if key is not None]
    if twice := sorted({key for key in used if used.count(key) > 1}):
        raise ConfigError(f"the key {twice[0]!r} would be written twice: give each its own", option=twice[0])
    if on_unverified == "return" and status is None:
        raise ConfigError('on_unverified="return" needs the key of the status, to tell an answer', option="status")
    allowed: dict[str, Any] = {"at_least": at_least}

    def written(found: Result) -> dict[str, Any]:
        if (taken := taken_over(found.error)) is not None:
            raise taken
        why = shortfall(found, **allowed)
        if why is not None and on_unverified == "raise":
            raise why
        recorded = _storable(found.to_dict())
        data = {
            "answer": recorded["answer"] if why is None else None,
            "values": recorded["values"] if why is None else {},
            "status": found.status,
            "refusal": None if why is None else refusal_of(found, at_least=at_least),
            "result": recorded,
        }
        return {key: data[each] for each, key in keys.items() if key is not None}

    def run(state: Any) -> dict[str, Any]:
        return written(guard.run(wanted, read(state)))

    async def arun(state: Any) -> dict[str, Any]:
        return written(await guard.arun(wanted, read(state)))

    return RunnableLambda(run, afunc=arun, name=name or wanted.name)


def taken_over(error: BaseException | None) -> BaseException | None:
    """The exception with which a graph takes over, such as an interrupt, among the causes of an error; None without."""
    for _ in range(_DEEPEST_CAUSE):
        if error is None or isinstance(error, GraphBubbleUp):
            return error
        error = error.__cause__
    return None


def _reader(procedure: Procedure, inputs: Inputs | None) -> Callable[[Any], Mapping[str, object]]:
    """How the inputs are read from a state."""
    if callable(inputs):
        return inputs
    check_mapping(inputs, "inputs", what="a mapping or a function", optional=True)
    declared = {each.name: each.name for each in procedure.inputs}
    given = dict(inputs or {})
    if unknown := sorted(given.keys() - declared.keys()):
        known = ", ".join(declared) or "none"
        raise ConfigError(f"{procedure.name} has no input {unknown[0]!r}: it declares {known}", option="inputs")
    keys = {**declared, **given}

    def read(state: Any) -> Mapping[str, object]:
        return {each: _at(state, key, each) for each, key in keys.items()}

    return read


def _at(state: Any, key: str, name: str) -> object:
    if isinstance(state, Mapping):
        if key in state:
            return state[key]
    elif hasattr(state, key):
        return getattr(state, key)
    raise InputError(f"input {name!r} is to be read from the state, which has no {key!r}", name=name)


def _storable(data: Any) -> Any:
    """JSON data whose texts can all be encoded: a reply may hold half of a character, which stops a checkpointer."""
    if isinstance(data, str):
        return data.encode(errors="backslashreplace").decode()
    if isinstance(data, dict):
        return {_storable(key): _storable(value) for key, value in data.items()}
    return [_storable(each) for each in data] if isinstance(data, list) else data
