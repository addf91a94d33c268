"""The ledger: what is durable of runs, so that one that was killed goes on and nothing is paid or done twice.

ledger      `Ledger`: runs are begun and gone on with, listed, answered, erased
register    which runs there are, of what each is, and who may write it
changes     what a person changes of one
summaries   `RunSummary`: how they stand
journal     one run in it: what is read when it goes on, and what is written
writer      its only writer
records     what is written, as JSON
store       what it is kept in, with its chain of hashes: sqlite_file, or the database of postgres, by its addresses
locks       one writer for each run of a file
rates       `RatedBackend`: a rate of calls that all who share a ledger count together
replaying   a run carried out again without a model
reading     one run for people to look at; conversations: of a gate, as lines of text
persons     what it holds about one person, and erasing that
verifying   whether the records are what was written, and whether they are right
"""

from __future__ import annotations

from stepguard.core.run_names import named_run
from stepguard.ledger.ledger import Ledger
from stepguard.ledger.persons import PersonNames, PersonTraces, erase_person, find_person
from stepguard.ledger.rates import RatedBackend
from stepguard.ledger.reading import RunReading, read_run
from stepguard.ledger.summaries import KEPT_STATUSES, KeptStatus, RunSummary
from stepguard.ledger.verifying import LedgerFault, Verification, verify_ledger

__all__ = [
    "KEPT_STATUSES",
    "KeptStatus",
    "Ledger",
    "LedgerFault",
    "PersonNames",
    "PersonTraces",
    "RatedBackend",
    "RunReading",
    "RunSummary",
    "Verification",
    "erase_person",
    "find_person",
    "named_run",
    "read_run",
    "verify_ledger",
]
