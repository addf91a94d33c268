"""Procedures in a ledger: their text, and what tells two of them apart."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from stepguard.engine.journal import without_addresses
from stepguard.ledger.records import as_json, storable
from stepguard.procedure.operations import Tool
from stepguard.procedure.procedure import Procedure


def procedure_source(procedure: Procedure) -> str | None:
    """The text of a procedure, None of one that memory does not hold."""
    return None if procedure.look_back is not None else storable(without_addresses(str(procedure)))


def operation_facts(procedure: Procedure) -> str:
    """What the ledger has to know of the functions and tools of a procedure, as JSON."""
    operations = procedure.all_operations.values()
    return as_json(sorted([item.name, item.tool, item.approval, item.keyed, item.idempotent] for item in operations))


def procedure_digest(procedure: Procedure) -> str:
    """What tells two procedures apart."""
    source = procedure_source(procedure)
    if source is None:
        source = ascii((procedure.name, len(procedure), procedure.look_back, procedure.inputs))
    return digest_of_source(source, operation_facts(procedure))


def digest_of_source(source: str, operations: str) -> str:
    """The digest of a procedure by its text and the facts of its operations."""
    return blake2b(f"{source}\0{operations}".encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=16)  # a page that is loaded anew reads the same one
def read_procedure(source: str, operations: str) -> Procedure:
    """A procedure from its text, with operations that are never called.

    Raises ProcedureError: the text does not hold all of it, because it has checks of the host's, say.
    """
    functions: dict[str, Any] = {}
    tools: dict[str, Any] = {}
    for name, tool, approval, keyed, idempotent in json.loads(operations):
        function = _keyed if keyed else _plain
        if tool:
            tools[name] = Tool(function, approval=approval, idempotent=idempotent)
        else:
            functions[name] = function
    return Procedure.parse(source, functions=functions, tools=tools)


# Whether an operation takes a key is read from its signature, as of the real one.
def _plain(**_: object) -> object:
    raise AssertionError("nothing is called")


def _keyed(*, idempotency_key: str = "", **_: object) -> object:
    raise AssertionError("nothing is called")
