"""The ledger: what is durable of runs, so that one that was killed goes on and nothing is paid or done twice.

`Ledger` is the room's face; what is written goes through one `writer`, is kept in a `store` (a SQLite file or a
Postgres), and its chain of hashes is checked by `verifying`.
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
