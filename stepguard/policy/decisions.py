"""The decisions of a gate: a call is allowed, refused, put to a person, or the conversation is handed over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stepguard.language.values import Value, show_value

GateOutcome = Literal["allow", "refuse", "ask", "hand_over"]

ReasonKind = Literal[
    "unknown_tool", "arguments", "forbidden", "unseen", "stale", "unanswered", "not_done", "done_already", "broken",
    "spent", "undecided", "unknown_fact", "unconfirmed", "repeated", "handed_over",
]  # fmt: skip
"""Why a call is not let through.

``unknown_tool``: no such tool is declared. ``arguments``: they cannot be read as the one value that they say.
``forbidden``: never. ``unseen``: a result that the rule needs was never got; ``stale``: something was changed since;
``unanswered``: a call whose outcome decides is still on its way. ``not_done``, ``done_already``: of ``done`` and ``not
done``. ``broken``: a relation does not hold. ``spent``: the limit is reached. ``undecided``: a value is missing or of
another type. ``unknown_fact``, ``unconfirmed``: somebody has to answer first. ``repeated``: the identifier of another
call. ``handed_over``: a person has taken over.
"""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a call is not let through.

    Attributes:
        kind: one of a closed list.
        rule: the tool of the rule, and its line where it came from text.
        words: what the agent may be told: the words of the rule, and nothing that it does not know.
        first: what to do first, for the agent; empty where nothing helps.
        detail: what was found, for logs and people; it may hold values of the host.
        line: where the demand stands in the text.
    """

    kind: ReasonKind
    rule: str
    words: str
    first: str = ""
    # Whatever was found, two refusals in the same words are one: the agent is told once.
    detail: str = field(default="", compare=False)
    line: int | None = None


@dataclass(frozen=True, slots=True)
class FactQuestion:
    """A fact that a rule needs, and nobody has given yet.

    Attributes:
        fact: its name.
        keys: what it is about.
        words: what is asked; empty where only the host can know it.
        type: the type of the answer, as it is written.
        judged: whether it follows from the keys by judgement.
    """

    fact: str
    keys: tuple[Value, ...]
    words: str
    type: str
    judged: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a call.

    Attributes:
        outcome: ``allow``, ``refuse``, ``ask`` (a person, by `questions` and `confirmations`) or ``hand_over``.
        tool: the tool.
        call: the identifier of the call.
        arguments: what the tool is to be called with, as this policy has read it: never call it with anything else.
        key: an idempotency key, where it is let through: the same if the call is offered again.
        number: the number of the call in the conversation, where it is let through.
        reasons: why it is not let through.
        questions: the facts that have to be known first.
        confirmations: who has to say yes to this call.
    """

    outcome: GateOutcome
    tool: str
    call: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    number: int | None = None
    reasons: tuple[Reason, ...] = ()
    questions: tuple[FactQuestion, ...] = ()
    confirmations: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the call may be made."""
        return self.outcome == "allow"

    @property
    def message(self) -> str:
        """What the agent is told in place of a result: the rule in the words of the host, and what to do first."""
        if self.outcome == "allow":
            return ""
        # Several demands may give the same sentence; the agent reads it once.
        sentences: dict[str, None] = {}
        for reason in self.reasons:
            words = reason.words if reason.words.endswith(("?", "!")) else f"{reason.words.rstrip('.')}."
            sentences[f"{words}{f' {reason.first}' if reason.first else ''}"] = None
        why = " ".join(sentences)
        match self.outcome:
            case "refuse":
                return f"The call to {self.tool} was refused and nothing was done. {why}"
            case "ask":
                return (
                    f"The call to {self.tool} is waiting for {_listed(self.confirmations) or 'an answer'}, and nothing "
                    f"was done yet. {why} Say so, and call it again once it is given."
                )
        return (
            f"The call to {self.tool} was refused and nothing was done. {why} A person takes over now: do not call it "
            "again, and tell the user so."
        )

    def to_dict(self) -> dict[str, Any]:
        """The decision as plain data."""
        return {
            "outcome": self.outcome,
            "tool": self.tool,
            "call": self.call,
            "number": self.number,
            "key": self.key,
            "reasons": [
                {"kind": each.kind, "rule": each.rule, "words": each.words, "detail": each.detail, "line": each.line}
                for each in self.reasons
            ],
            "questions": [
                {"fact": each.fact, "keys": [show_value(key) for key in each.keys]} for each in self.questions
            ],
            "confirmations": list(self.confirmations),
        }


def _listed(names: tuple[str, ...]) -> str:
    return f"approval by the {' and the '.join(names)}" if names else ""
