"""Carries a run out again on what a ledger holds, without a model: nobody is asked and nothing is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stepguard.backends.retry import RetryPolicy
from stepguard.core.usage import Usage
from stepguard.engine.actions import Act, Action, Ask, Commit
from stepguard.engine.budget import Budget
from stepguard.engine.journal import place_of
from stepguard.engine.machine import Engine
from stepguard.engine.run import Run
from stepguard.engine.segments import Segments
from stepguard.engine.settings import Settings
from stepguard.errors import LedgerError, ProcedureError, StepguardError
from stepguard.language.value_json import from_data, to_data
from stepguard.ledger.journal import KeptRun
from stepguard.ledger.procedures import read_procedure
from stepguard.ledger.store import LedgerStore
from stepguard.procedure.procedure import Procedure
from stepguard.repair.ladder import Ladder
from stepguard.replies.formats import EquationFormat
from stepguard.results import Attempt, Occurrence, Result

_PARALLEL: Final = 8
"""How many segments are looked for at once in a run that was not completed: one of them may be missing."""


def load_procedure(file: LedgerStore, digest: str) -> Procedure:
    """The procedure with a digest, from its text. Raises ProcedureError: the ledger does not hold all of it."""
    rows = file.read("select source, operations from procedures where digest = ?", digest)
    if not rows or rows[0][0] is None:
        raise ProcedureError("the ledger does not hold it as text")
    return read_procedure(*rows[0])


class RunReplay:
    """One run, carried out again as far as that needs nobody.

    Args:
        kept: what is durable of it.
        procedure: its procedure.
        whole: whether it has completed. Of one that was killed, segments that were asked at the same time may lie
            behind one that is not there.
        history: how many steps its result keeps, the last ones; None: all.

    Attributes:
        run: the run, as far as it has come.
        missing: the first thing that the ledger holds nothing about, None where that is nothing.
        missing_step: the step that is, where it is one that the model is asked.
        wrong: the first step that is another by what it reads than what is written, with what is wrong.
        refused: the steps that do not pass their checks.

    Raises:
        LedgerError: its inputs are none of the procedure.
    """

    def __init__(self, kept: KeptRun, procedure: Procedure, *, whole: bool, history: int | None = 1) -> None:
        try:
            inputs = procedure.accept_inputs({name: from_data(value) for name, value in kept.inputs.items()})
        except (StepguardError, ValueError) as error:
            raise LedgerError(str(error)) from error
        settings = _settings(1 if whole else _PARALLEL, history)
        engine = Engine(procedure, inputs, settings, run_id=kept.run_id, now=0.0, journal=_ReadJournal(kept))
        self.run: Final = Run(engine)
        self.missing: str | None = None
        self.missing_step: Occurrence | None = None
        self.wrong: tuple[Occurrence, str] | None = None
        while not self.run.done and self.wrong is None and (action := self.run.next_action()) is not None:
            self._perform(action, kept)
        self.refused: Final = tuple(engine.refused)

    def _perform(self, action: Action, kept: KeptRun) -> None:
        if isinstance(action, Ask) or (isinstance(action, Act) and action.operation is not None):
            # It stays unanswered: what does not rest on it goes on.
            places = action.occurrences if isinstance(action, Ask) else ()
            if self.missing is None:
                self.missing_step = places[0] if places else None
                self.missing = str(places[0]) if places else action.id
            return
        if isinstance(action, Commit) and action.call is None:
            for record in action.records:
                known = kept.steps.get(place_of(record.occurrence))
                if known is not None and known.value != record.value:
                    what = f"step {record.occurrence} is {to_data(record.value)} by what it reads, not what is written"
                    self.wrong = record.occurrence, what
                    return
        self.run.send(self.run.perform(action))


class _ReadJournal:
    """A journal that is only read, see `stepguard.engine.journal.Journal`: what was spent does not count."""

    attempts: Sequence[Attempt] = ()
    usage = Usage()
    prompts = False

    def __init__(self, kept: KeptRun) -> None:
        self.steps: Final = kept.steps
        self.calls: Final = kept.calls
        self.answers: Final = kept.answers

    def commit(self, commit: Commit) -> None:
        """Nothing is written."""

    def book(self, attempts: Sequence[Attempt]) -> None:
        """Nothing is written."""

    def close(self, result: Result) -> None:
        """Nothing is written."""

    def settle(self) -> None:
        """Nothing is written."""

    def reopen(self) -> None:
        """Nothing is written."""


# Nobody is asked, so that most of these decide nothing.
def _settings(parallel: int, history: int | None) -> Settings:
    return Settings(
        segments=Segments(None),
        repair=Ladder(),
        budget=Budget(),
        retry=RetryPolicy(),
        fallbacks=(),
        person=None,
        reply_format=EquationFormat(),
        prompts="brief",
        parallel=parallel,
        check_timeout=60.0,
        stop_early=False,
        stopping="never",
        observe=False,
        history=history,
        seed=0,
        profile=None,
    )
