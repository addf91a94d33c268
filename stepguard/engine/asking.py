"""Builds the request that asks a segment in the way of a rung."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from stepguard.backends.base import Backend, Request, Stopping, stopping_of
from stepguard.core.usage import Usage
from stepguard.engine.flights import Flight
from stepguard.engine.learning import Learning
from stepguard.engine.prompts import Prompter, Wording
from stepguard.engine.schedule import Segment
from stepguard.engine.shown_values import documents_in
from stepguard.engine.stopping import WrongStepWatch
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step
from stepguard.repair.rewriting import StandIn
from stepguard.repair.rungs import Rung
from stepguard.replies.formats import ReplyFormat
from stepguard.replies.partial import is_looping

_TOKENS_PER_STEP: Final = 96
_TIMES_OF_LIST: Final = 6
_TOKENS_OF_DRAFT: Final = 512
_HIGHEST: Final = 16
"""A cap is never raised to more than so many times the largest that a reply of the run had at first."""


class Asker:
    """Makes the requests of one run.

    Args:
        wording: how prompts are worded.
        learning: what the run has shown of the model.
        stop_early: whether replies about several steps may be stopped at the first wrong one. None: as who is asked
            does by itself.
        stopping: what the guard's own model does by itself.
    """

    def __init__(
        self,
        procedure: Procedure,
        reply_format: ReplyFormat,
        chance: random.Random,
        *,
        learning: Learning,
        wording: Wording = "brief",
        stop_early: bool | None = False,
        stopping: Stopping = "never",
    ) -> None:
        self._learning = learning
        self._stop_early = stop_early
        self._stopping: Stopping = stopping
        self._whole = False  # whether streams have failed that nobody had asked for
        self._prompter = Prompter(procedure, reply_format, wording=wording)
        self._reply_format = reply_format
        self._random = chance
        self._usual = 0
        # By backend. A cap that cut a reply would cut it again, so it is doubled for the rest of the run.
        self._least_caps: dict[int, int] = {}

    def flight(
        self,
        segment: Segment,
        rung: Rung,
        values: Mapping[str, Value],
        *,
        attempt: int,
        parts: Callable[[StandIn], Mapping[str, Value]],
    ) -> Flight:
        """The flight that asks a segment in the way of a rung.

        Args:
            rung: how they are asked; all but the plain ways ask one step.
            values: what the steps read, and those before them.
            attempt: 1, and one more for every time its first step was not accepted.
            parts: the verified values of the steps that stand in for one.
        """
        stand_in = rung.stand_in(segment.steps[0], values)
        steps, before = segment.steps, segment.before
        part_values: Mapping[str, Value] = {}
        if stand_in is not None:  # the values of the step itself stand in its steps
            part_values = parts(stand_in)
            steps = stand_in.behind(part_values)
            # A plain question is about one thing.
            steps = steps[:1] if rung.wording == "question" else steps
            read = {name: values[name] for step in steps for name in step.reads if name in values}
            values = {**read, **dict(stand_in.given), **part_values}
        if rung.draft:
            messages = self._prompter.drafting(steps, values, before=before)
        elif rung.wording == "question":
            messages = self._prompter.question(steps[0], values, before=before)
        else:
            messages = self._prompter.messages(steps, values, before=before)
        # Room for the braces and a few stray words around the answers.
        cap = 64 + sum(map(_most_tokens, steps)) + (_TOKENS_OF_DRAFT if rung.draft else 0)
        # A draft has no usual length: counted here, it would raise the bound on all caps.
        self._usual = max(self._usual, 0 if rung.draft else cap)
        request = Request(
            messages=messages,
            steps=steps,
            values=values,
            reply_format=None if rung.draft else self._reply_format,
            temperature=rung.temperature,
            max_tokens=max(cap, self._least_caps.get(id(rung.backend), 0)),
            seed=self._random.getrandbits(31),
            attempt=attempt,
            shared=documents_in(messages[-1].content),
        )
        return Flight(segment, rung, request, stand_in, part_values, drafting=rung.draft)

    def stop(self, flight: Flight, backend: Backend | None, *, independent: bool) -> Callable[[str], bool] | None:
        """A fresh callback that stops the reply at a wrong step, or a draft that loops; None where nothing is to.

        Args:
            backend: who is asked; None for the guard's own model.
            independent: whether claims behind a wrong one are judged that do not rest on it.
        """
        request = flight.request
        if request is None or not self._stops(backend):
            return None
        if flight.drafting:
            return is_looping
        # Nothing comes behind the only step, and the steps of a stand-in are judged as a whole.
        if len(request.steps) < 2 or flight.stand_in is not None:
            return None
        return WrongStepWatch(request.steps, request.values, self._reply_format, independent=independent)

    def _stops(self, backend: Backend | None) -> bool:
        if self._stop_early is not None:
            return self._stop_early
        by_itself = self._by_itself(backend)
        return by_itself == "always" or (by_itself == "slips" and not self._whole and self._learning.slips)

    def _by_itself(self, backend: Backend | None) -> Stopping:
        return self._stopping if backend is None else stopping_of(backend)

    def ask_whole(self, backend: Backend | None) -> bool:
        """A stream has failed. Where nobody had asked for it, all replies are from now on asked whole; whether so."""
        chosen = self._stop_early is None and self._by_itself(backend) == "slips"
        self._whole = self._whole or chosen
        return chosen

    def after_draft(self, flight: Flight, text: str) -> Flight:
        """The flight whose draft has come, now with the request that turns the draft into a reply."""
        assert flight.request is not None
        steps, values = flight.request.steps, flight.request.values
        request = replace(
            flight.request,
            messages=self._prompter.messages(steps, values, before=flight.segment.before, draft=text),
            reply_format=self._reply_format,
            seed=self._random.getrandbits(31),
        )
        return replace(flight, request=request, drafting=False)

    def cut_off(self, flight: Flight) -> None:
        """Raise the cap of whoever was asked: a reply was cut off."""
        assert flight.request is not None
        backend = id(flight.rung.backend)
        cap = min(2 * (flight.request.max_tokens or 0), _HIGHEST * self._usual)
        self._least_caps[backend] = max(self._least_caps.get(backend, 0), cap)

    def fixed(self, flight: Flight) -> float:
        """The share of a flight's prompt that every prompt of its kind begins with."""
        assert flight.request is not None
        return self._prompter.fixed(flight.request.messages)


def _most_tokens(step: Step) -> int:
    """The tokens of one answer; a list may be long."""
    kind = step.type
    return _TOKENS_PER_STEP * (1 if not kind.structured else 2 if kind.record is not None else _TIMES_OF_LIST)


def most_of(request: Request) -> Usage:
    """What a call may cost at most: no tokenizer makes more tokens than there are bytes."""
    size = sum(len(message.content.encode("utf-8", "surrogatepass")) for message in request.messages)
    return Usage(calls=1, input_tokens=size, output_tokens=request.max_tokens or 0)
