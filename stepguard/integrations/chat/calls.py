"""Decide which calls of a drop-in run guarded, and report each call to the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from stepguard.core.arguments import check_callable, check_flag
from stepguard.core.verdicts import Strength
from stepguard.engine.run import Run
from stepguard.integrations.chat.messages import PassReason
from stepguard.integrations.chat.requests import Job, find_job, why_passed
from stepguard.integrations.chat.trust import Trust, check_trust
from stepguard.integrations.support import check_procedures, check_support
from stepguard.procedure.procedure import Procedure
from stepguard.results import Result
from stepguard.telemetry.logging import call_safely, log_event


@dataclass(frozen=True, slots=True)
class ClientCall:
    """The outcome of one call of a model.

    Attributes:
        guarded: whether it ran guarded; otherwise it was passed on as it came.
        model: the model, as the call named it.
        job: the procedure, its inputs and how they were found; None where it was passed on.
        result: the result of the run, whatever its status; None where it was passed on.
        reason: why it was passed on; None where it was guarded.
    """

    guarded: bool
    model: str | None
    job: Job | None = None
    result: Result | None = None
    reason: PassReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRules:
    """The options that the calls of one drop-in share; `stepguard.wrap` documents them."""

    procedures: Mapping[str, Procedure]
    trust: Trust
    guarded_only: bool
    at_least: Strength
    on_call: Callable[[ClientCall], object] | None

    @classmethod
    def checked(
        cls,
        *,
        procedures: Mapping[str, Procedure] | None,
        trust: Trust | None,
        guarded_only: bool,
        at_least: Strength,
        on_call: Callable[[ClientCall], object] | None,
        **more: Any,
    ) -> Self:
        """The rules that a drop-in is given; `more` is what a subclass adds.

        Raises ConfigError: one of them cannot work.
        """
        check_callable(on_call, "on_call", optional=True)
        check_flag(guarded_only, "guarded_only")
        known = check_procedures(procedures)
        check_support(known.values(), at_least)
        return cls(
            procedures=known,
            trust=check_trust(trust),
            guarded_only=guarded_only,
            at_least=at_least,
            on_call=on_call,
            **more,
        )

    def find(
        self,
        messages: object,
        *,
        model: str | None,
        named: Procedure | str | None = None,
        inputs: Mapping[str, object] | None = None,
    ) -> Job | None:
        """What a call asks the guard to do; None, and told so, for a call that is to be passed on.

        Raises UsageError: see `stepguard.integrations.chat.requests.find_job`; or only guarded calls are wanted.
        """
        job = find_job(messages, procedures=self.procedures, named=named, inputs=inputs, trust=self.trust)
        if job is None:
            # First: where only guarded calls are wanted this refuses it, and nothing is passed on.
            reason = why_passed(messages, guarded_only=self.guarded_only)
            log_event("chat_passed", reason=reason)
            self._tell(ClientCall(guarded=False, model=model, reason=reason))
        return job

    @contextmanager
    def telling(self, model: str | None, job: Job, run: Run) -> Iterator[list[Result]]:
        """Report a guarded call when its run has ended, however it has: what was verified and paid for is told, too.

        The result that is told is put into the list.
        """
        told: list[Result] = []
        try:
            yield told
        finally:
            told.append(result := run.result())
            log_event("chat_guarded", run_id=run.id, procedure=job.label, found=job.found, left_out=job.left_out)
            self._tell(ClientCall(guarded=True, model=model, job=job, result=result))

    def _tell(self, call: ClientCall) -> None:
        if self.on_call is not None:
            call_safely(self.on_call, call, about="a call")
