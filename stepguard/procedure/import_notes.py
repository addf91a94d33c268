"""The outcome of an import, line by line (`stepguard.procedure.importing`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stepguard.procedure.procedure import Procedure

NoteKind = Literal["words", "left_out", "refused"]
"""The outcome of a line.

========  ==============================================================================================
words     it is put to the model as it stands; no formula and no check vouches for what the model answers
left_out  it says nothing that is to be done, such as a heading, and is not in the procedure
refused   it says something that could not be understood for certain, and is not in the procedure
========  ==============================================================================================
"""


@dataclass(frozen=True, slots=True)
class Note:
    """The outcome of a line that is not simply a step of the procedure.

    Attributes:
        line: its number, from 1.
        text: the line.
        kind: what became of it.
        message: why, and how it is written in the language.
    """

    line: int
    text: str
    kind: NoteKind
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class ImportedProcedure:
    """The result of an import.

    Attributes:
        procedure: the proposal; None where what was understood makes no procedure.
        notes: one for each line that is put to the model in words, is left out or refused, in their order.
    """

    procedure: Procedure | None
    notes: tuple[Note, ...]

    @property
    def complete(self) -> bool:
        """Whether every line that says something is in the procedure, and none of it in mere words."""
        return self.procedure is not None and all(note.kind == "left_out" for note in self.notes)
