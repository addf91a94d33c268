"""Verifies a ledger without a model: whether its records are what was written, and whether they are right.

First the chain: every body has its digest, every hash follows from the one before it, and an exported head is in it.
Then each run: its procedure is carried out again, from its inputs, on what the ledger holds. Every claim is judged,
every condition looked at, code computes what it computed; nobody is asked and nothing is called.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Final

from stepguard.engine.journal import place_of
from stepguard.errors import ConfigError, LedgerError, ProcedureError
from stepguard.language.value_json import to_data
from stepguard.ledger.changes import STAYING
from stepguard.ledger.journal import KeptRun, load_run
from stepguard.ledger.ledger import Ledger
from stepguard.ledger.procedures import digest_of_source, procedure_digest
from stepguard.ledger.replaying import RunReplay, load_procedure
from stepguard.ledger.shapes import check_shape
from stepguard.ledger.store import GENESIS, LedgerStore, chain_hash, digest_of
from stepguard.policy.policy import Policy
from stepguard.policy.rejudging import rejudge
from stepguard.procedure.procedure import Procedure
from stepguard.results import COMPLETED, Result

_PAGE: Final = 2_000
# SQLite keeps whatever type it is given: a file that was altered may hold any.
_COLUMNS: Final = (int, int, str, str | None, bytes, bytes, str, bytes | None, str)
_LISTED: Final = f"status, epoch, place, reason, {STAYING}"
"""What a listing tells of a run."""


@dataclass(frozen=True, slots=True)
class LedgerFault:
    """What is wrong in a ledger.

    Attributes:
        record: the number of the record; None where it is no single one.
        run_id: the run that it is of, None where it is of none.
        what: what is wrong with it.
    """

    record: int | None
    run_id: str | None
    what: str

    def __str__(self) -> str:
        where = [] if self.record is None else [f"record {self.record}"]
        where += [] if self.run_id is None else [f"run {self.run_id!r}"]
        return f"{', '.join(where)}: {self.what}" if where else self.what


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of verifying a ledger.

    Attributes:
        records: how many records there are.
        rechecked: how many runs were carried out again.
        erased: how many were erased.
        unchecked: the others, which could not be, with the reason.
        faults: what is wrong: the first record that breaks the chain, or else the first wrong one of each run.
        head: the number and the hash of the last record.
    """

    records: int
    rechecked: int
    erased: int
    unchecked: Mapping[str, str]
    faults: tuple[LedgerFault, ...]
    head: str

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def verify_ledger(
    ledger: Ledger, *, head: str | None = None, procedures: Iterable[Procedure] = (), policies: Iterable[Policy] = ()
) -> Verification:
    """Check a ledger.

    Args:
        ledger: the ledger, which may be opened read-only.
        head: an earlier `Ledger.head`, kept elsewhere: the records up to it have to be those of then.
        procedures: procedures that the ledger does not hold as text: lazy ones, and those with checks of your own.
        policies: the policies of conversations, of which the ledger holds no text.

    Raises:
        ConfigError: `head` is none.
        LedgerError: the file cannot be read, because it is damaged, say.
    """
    wanted = None if head is None else _read_head(head)
    with closing(ledger.file.reader()) as file, file.snapshot():
        known = {procedure_digest(procedure): procedure for procedure in procedures}
        return _verify(file, wanted, known, {policy.digest: policy for policy in policies})


def _verify(
    file: LedgerStore, head: tuple[int, bytes] | None, known: Mapping[str, Procedure], policies: Mapping[str, Policy]
) -> Verification:
    records, last, fault = _check_chain(file, head)
    if fault is None:
        fault = _check_procedures(file)
    if fault is not None:
        # Behind such a fault nothing can be trusted enough to be judged.
        return Verification(records, 0, 0, {}, (fault,), last)
    faults: list[LedgerFault] = []
    unchecked: dict[str, str] = {}
    rechecked = erasures = 0
    for number, *facts in file.read(f"select number, {_LISTED} from runs order by number"):
        row = dict(zip(_LISTED.split(", "), facts, strict=True))
        name = row["name"]
        kept, wrong = _check_row(file, number, row)
        if wrong is None and row["status"] == "erased":
            erasures += 1
        elif wrong is None:
            try:
                wrong = _check_records(file, kept, row["procedure"], known, policies)
                rechecked += 1
            except ProcedureError as error:
                unchecked[name] = f"its procedure has to be given: {error}"
            except ConfigError as error:
                unchecked[name] = str(error)
            wrong = wrong or _unlike(row, {**kept.listed, "calls": kept.usage.calls, "tokens": kept.usage.tokens})
        if wrong is not None:
            faults.append(replace(wrong, run_id=name))
    return Verification(records, rechecked, erasures, unchecked, tuple(faults), last)


def _check_records(
    file: LedgerStore, kept: KeptRun, digest: str, known: Mapping[str, Procedure], policies: Mapping[str, Policy]
) -> LedgerFault | None:
    """The first wrong record of a run.

    Raises:
        ConfigError: the run cannot be carried out again.
        ProcedureError: its procedure has to be given.
    """
    if kept.conversation is None:
        return _check_run(kept, known[digest] if digest in known else load_procedure(file, digest))
    if digest not in policies:
        raise ConfigError("its policy has to be given")
    if len(kept.options) != 1:
        raise ConfigError("its gate had other options in between")
    return _check_conversation(kept, kept.conversation, policies[digest])


def _read_head(head: str) -> tuple[int, bytes]:
    number, _, digest = head.strip().partition(":")
    try:
        made = int(number), bytes.fromhex(digest)
    except ValueError:
        made = -1, b""
    if made[0] < 0 or len(made[1]) != len(GENESIS):
        raise ConfigError(f"a head is a number and a hash, as `stepguard verify` prints it, not {head!r:.80}")
    return made


def _records(file: LedgerStore) -> Iterator[tuple[Any, ...]]:
    """Every record with the name, the salt and the procedure of its run, a page at a time."""
    # Below every number, one that was altered to be negative included. The join keeps records whose run is gone.
    after = -(2**62)
    sql = (
        "select records.number, run, kind, body, digest, hash, name, salt, procedure from records left join runs"
        " on runs.number = run where records.number > ? order by records.number limit ?"
    )
    while page := file.read(sql, after, _PAGE):
        yield from page
        after = page[-1][0]


def _check_chain(file: LedgerStore, head: tuple[int, bytes] | None) -> tuple[int, str, LedgerFault | None]:
    """How many records are as they were written, the head behind them, and the first that is not."""
    before, count = GENESIS, 0
    confirmed = head is None or head == (0, GENESIS)
    for record in _records(file):
        number, run, kind, body, digest, hash_, name, salt, procedure = record
        if name is not None and not all(map(isinstance, record, _COLUMNS)):
            wrong: str | None = "it, or its run, holds what was never written"
        else:
            wrong = _record_fault(count + 1, number, kind, body, digest, salt, name, procedure)
        if wrong is None and chain_hash(before, number, run, kind, digest) != hash_:
            wrong = "its hash does not follow from the record before it"
        if wrong is not None:
            return count, f"{count}:{before.hex()}", LedgerFault(number, name, wrong)
        before, count = bytes(hash_), count + 1
        if head is not None and head[0] == number:
            if head[1] != before:
                wrong = "the records up to it are others than when the head was exported"
                return count, f"{count}:{before.hex()}", LedgerFault(number, name, wrong)
            confirmed = True
    fault = None
    if not confirmed and head is not None:
        fault = LedgerFault(None, None, f"the records end at {count}, and the head is that of {head[0]}")
    return count, f"{count}:{before.hex()}", fault


def _record_fault(
    expected: int,
    number: int,
    kind: str,
    body: str | None,
    digest: bytes,
    salt: bytes | None,
    name: str | None,
    procedure: str | None,
) -> str | None:
    if number != expected:
        return f"record {expected} is missing before it"
    if name is None:
        return "its run is missing"
    if body is None:
        return None if salt is None else "its body is missing, and the run was not erased"
    if salt is None and kind != "erased":
        return "it has a body, and its run was erased"
    if digest_of(salt or b"", body) != digest:
        return "its body is not what was written"
    return _begin_fault(body, name, procedure) if kind == "begin" else None


def _begin_fault(body: str, name: str, procedure: str | None) -> str | None:
    """Whether a run is still the one that was begun: runs are no records."""
    try:
        began = json.loads(body)
        run, begun_with = began["run"], began["procedure"]
    except (ValueError, LookupError, TypeError) as error:
        return f"it cannot be read ({type(error).__name__}: {error})"
    if run != name:
        return f"it began the run {run!r}, which has another name now"
    return None if begun_with == procedure else "the run was begun with another procedure than it has now"


def _check_procedures(file: LedgerStore) -> LedgerFault | None:
    """Procedures are no records: each has to be what its digest says."""
    for digest, name, source, operations in file.read("select digest, name, source, operations from procedures"):
        if source is not None and digest_of_source(source, operations) != digest:
            return LedgerFault(None, None, f"the procedure {name!r} is not what was written")
    known = "select 1 from procedures where digest = runs.procedure and procedures.name = runs.title"
    lost = file.read(f"select name from runs where status != 'erased' and not exists ({known}) order by number limit 1")
    return LedgerFault(None, lost[0][0], "its procedure is missing, or has another name") if lost else None


def _check_row(file: LedgerStore, number: int, row: Mapping[str, Any]) -> tuple[KeptRun, LedgerFault | None]:
    """What the records of a run come to, and where it is listed as something else: runs are no records."""
    erasure_sql = "select body from records where run = runs.number and kind = 'erased' and body is not null"
    sql = f"select salt is null, ({erasure_sql}) from runs where number = ?"
    ((unsalted, erasure),) = file.read(sql, number)
    status, kept, erased = row["status"], KeptRun(), erasure is not None
    # The record, the salt and the listing say the same, unless one of them was altered.
    if not erased == unsalted == (status == "erased"):
        what = "a record says that it was erased" if erased else "no record says that it was erased"
        return kept, LedgerFault(None, None, f"the run is listed as {status}, and {what}")
    if erased:
        try:
            check_shape("erased", staying := json.loads(erasure))
        except ValueError as error:
            return kept, LedgerFault(None, None, f"it cannot be read that it was erased ({error})")
        return kept, _unlike(row, {"place": None, "reason": None, **staying})
    try:
        kept = load_run(file, number)
    except LedgerError as error:
        return kept, LedgerFault(None, None, str(error))
    if status not in kept.standings:
        what = f"the run is listed as {status}, and its records say {' or '.join(sorted(kept.standings))}"
        return kept, LedgerFault(None, None, what)
    if row["epoch"] < kept.epoch:
        what = f"the run was gone on with {kept.epoch} times, and is listed with {row['epoch']}"
        return kept, LedgerFault(None, None, what)
    return kept, None


def _unlike(row: Mapping[str, Any], facts: Mapping[str, Any]) -> LedgerFault | None:
    """Where a run is listed as something else than records say."""
    wrong = next((name for name in facts if name in row and row[name] != facts[name]), None)
    if wrong is None:
        return None
    what = f"the run is listed with {wrong} {row[wrong]!r:.80}, and its records say {facts[wrong]!r:.80}"
    return LedgerFault(None, None, what)


def _check_conversation(kept: KeptRun, conversation: str, policy: Policy) -> LedgerFault | None:
    """The first change at a gate that cannot be what it says."""
    wrong = rejudge(policy, kept.changes, conversation=conversation, options=kept.options[0])
    return None if wrong is None else LedgerFault(kept.numbers[f"change {wrong[0]}"], None, wrong[1])


def _check_run(kept: KeptRun, procedure: Procedure) -> LedgerFault | None:
    """The first wrong record of a run."""
    try:
        replay = RunReplay(kept, procedure, whole=kept.end is not None and kept.end["status"] in COMPLETED)
    except LedgerError as error:
        return LedgerFault(None, None, str(error))
    if replay.wrong is not None:
        place, what = replay.wrong
        return LedgerFault(kept.numbers.get(place_of(place)), None, what)
    if refused := replay.refused:
        return LedgerFault(kept.numbers.get(place_of(refused[0])), None, f"step {refused[0]} does not pass its checks")
    return None if kept.end is None else _compare_end(replay.run.result(), kept, kept.end, replay.missing)


def _compare_end(result: Result, kept: KeptRun, end: Mapping[str, Any], missing: str | None) -> LedgerFault | None:
    """Whether a run that has completed does so, and in the same way."""
    if end["status"] not in COMPLETED:
        return None
    number = kept.numbers.get("end")
    if result.status not in COMPLETED:
        where = missing or (None if result.problem is None else str(result.problem))
        return LedgerFault(number, None, f"the run is called {end['status']}, and there is nothing about {where}")
    if to_data(result.answer) != end["answer"] if result.answer is not None else end["answer"] is not None:
        return LedgerFault(number, None, "the answer is not what follows from the steps")
    if result.status != end["status"]:
        return LedgerFault(number, None, f"the run is called {end['status']}, and is {result.status}")
    return None
