"""Procedures: what is to be done, in steps, branches, loops and calls, and its notation as text, YAML or JSON.

`Procedure` holds a body of `Step` and of the statements `If`, `ForEach`, `Repeat` and `ProcedureCall`; `Table` is what
expressions look up in, `RecordType` declares a record, and `Tool` is a function of the host with effects.
"""

from __future__ import annotations

from stepguard.language.records import Record, RecordType
from stepguard.language.terms.lookup_tables import Table
from stepguard.procedure.inputs import Input
from stepguard.procedure.operations import Tool
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.statements import ForEach, If, ProcedureCall, Repeat
from stepguard.procedure.steps import Step

__all__ = [
    "ForEach",
    "If",
    "Input",
    "Procedure",
    "ProcedureCall",
    "Record",
    "RecordType",
    "Repeat",
    "Step",
    "Table",
    "Tool",
]
