"""Wrong replies: a step skipped, said twice, moved, given early, cut off, taken back.

Each names the step that such a reply cannot settle.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass

from certification.cases import Case, answer, pairs_text
from certification.traces import Trace
from certification.wrong_entries import wrong_value
from stepguard.backends import Completion, ToolCall

__all__ = ["WRONG_REPLIES", "WrongReply", "wrong_reply"]

Pairs = list[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class WrongReply:
    """A reply, and the index of the step that must not be accepted from it."""

    completion: Completion
    at: int


Maker = Callable[[Trace, random.Random, int], WrongReply | None]
WRONG_REPLIES: dict[str, Maker] = {}
"""How the reply to a trace is made wrong at the step of an index; None where this trace does not allow it."""


def wrong_reply(name: str) -> Callable[[Maker], Maker]:
    """Register a kind of wrong replies."""

    def register(maker: Maker) -> Maker:
        assert name not in WRONG_REPLIES
        WRONG_REPLIES[name] = maker
        return maker

    return register


def _text(pairs: Pairs, at: int, *, behind: str = "", before: str = "") -> WrongReply:
    return WrongReply(Completion(before + pairs_text(pairs) + behind), at)


def _other_entry(trace: Trace, chance: random.Random, at: int) -> object | None:
    """A wrong entry for a step: its right working and a value that it has not."""
    case = Case(chance, trace, at)
    truth = case.made.truth
    if isinstance(truth, bool):
        other = wrong_value(case, not truth)
    elif isinstance(truth, str):
        other = wrong_value(case, next((each for each in case.spec.options if each != truth), f"{truth}x"))
    else:
        other = wrong_value(case, truth + chance.choice([1, -1, 10]))
    return None if other is None else other.entry


@wrong_reply("step skipped")
def _skipped(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    pairs = answer(trace, chance)
    del pairs[at]
    return _text(pairs, at)


@wrong_reply("step renamed")
def _renamed(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    pairs = answer(trace, chance)
    name, entry = pairs[at]
    ways = (
        name.upper(),
        f"step_{name}",
        f"{name} ",
        f"{name}.",
        name[1:],
        f"{name}_1",
        f" {name}",
        name[:1] + "\u200b" + name[1:],
    )
    pairs[at] = chance.choice(ways), entry
    return _text(pairs, at)


@wrong_reply("step twice with different values")
def _twice(trace: Trace, chance: random.Random, at: int) -> WrongReply | None:
    pairs, other = answer(trace, chance), _other_entry(trace, chance, at)
    if other is None:
        return None
    pairs.insert(chance.choice([at, at + 1, len(pairs)]), (trace.steps[at].id, other))
    return _text(pairs, at)


@wrong_reply("two objects that differ")
def _two_objects(trace: Trace, chance: random.Random, at: int) -> WrongReply | None:
    pairs, other = answer(trace, chance), _other_entry(trace, chance, at)
    if other is None:
        return None
    wrong = [*pairs[:at], (pairs[at][0], other), *pairs[at + 1 :]]
    between = chance.choice(["\n", "\nWait, that is wrong:\n", "\n\nFinal answer:\n", " or ", "\n```json\n"])
    first, second = (pairs, wrong) if chance.random() < 0.5 else (wrong, pairs)
    return _text(first, at, behind=between + pairs_text(second))


@wrong_reply("a step corrected behind the object")
def _corrected(trace: Trace, chance: random.Random, at: int) -> WrongReply | None:
    pairs, other = answer(trace, chance), _other_entry(trace, chance, at)
    if other is None:
        return None
    first, second = (pairs[at][1], other) if chance.random() < 0.5 else (other, pairs[at][1])
    pairs[at] = pairs[at][0], first
    return _text(pairs, at, behind=f"\nCorrection: {pairs_text([(pairs[at][0], second)])}")


@wrong_reply("another number, object or mark beside the object")
def _beside(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    pairs = answer(trace, chance)
    name, other = trace.steps[at].id, chance.randint(10**5, 10**6)
    ways = (
        *(
            f"A second run gave {other}.",
            f"{name} -> {other}",
            f"Check: {other} - 1 = {other - 1}",
            f"{name} is {other}",
        ),
        *('{"confidence": 0.1}', '{"error": true}', "<draft/>", "Feel free to ask why it is wrong."),
        *("Would you like me to continue with the real numbers?", f"It works for {other} people, too."),
    )
    return _text(pairs, 0, behind=f"\n{chance.choice(ways)}")


@wrong_reply("entries moved by one step")
def _moved(trace: Trace, chance: random.Random, at: int) -> WrongReply | None:
    pairs = answer(trace, chance)
    by = chance.choice([1, -1])
    source = (at + by) % len(pairs)
    if not _differ(trace, at, source):
        return None
    moved = [(name, pairs[(place + by) % len(pairs)][1]) for place, (name, _) in enumerate(pairs)]
    keep = [*pairs[:at], *moved[at:]]  # right up to there, so that it is this step that must be noticed
    return _text(keep, at)


@wrong_reply("two entries exchanged")
def _exchanged(trace: Trace, chance: random.Random, at: int) -> WrongReply | None:
    other = chance.randrange(len(trace.steps))
    if not _differ(trace, at, other):
        return None
    pairs = answer(trace, chance)
    one, two = pairs[at], pairs[other]
    pairs[at], pairs[other] = (one[0], two[1]), (two[0], one[1])
    return _text(pairs, at)


def _differ(trace: Trace, one: int, other: int) -> bool:
    """Whether the value of one step would be wrong for the other."""
    truth, made = trace.steps[other].truth, trace.steps[one]
    return one != other and made.spec.wrong(truth, made.exact)


@wrong_reply("the answer in place of the step")
def _early(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    pairs = answer(trace, chance)[:at]
    name = chance.choice(["answer", "final_answer", "result", "solution", "The answer"])
    pairs.append((name, Case(chance, trace, len(trace.steps) - 1).plain))
    return _text(pairs, at)


@wrong_reply("the last value given early")
def _last_value(trace: Trace, chance: random.Random, at: int) -> WrongReply | None:
    last = trace.steps[-1]
    case = Case(chance, trace, at)
    if at == len(trace.steps) - 1 or type(last.truth) is not type(case.made.truth):
        return None
    entry = wrong_value(case, last.truth)
    if entry is None:
        return None
    pairs = answer(trace, chance)
    pairs[at] = pairs[at][0], entry.entry
    return _text(pairs, at)


@wrong_reply("cut off, and said so")
def _cut(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    text = pairs_text(answer(trace, chance))
    return WrongReply(
        Completion(text[: chance.randrange(len(text))], chance.choice(["length", "max_tokens", "incomplete"])), 0
    )


@wrong_reply("cut off in silence")
def _silently(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    text = pairs_text(answer(trace, chance))
    return WrongReply(Completion(text[: chance.randrange(len(text))]), 0)


@wrong_reply("only thought of")
def _thought(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    text = pairs_text(answer(trace, chance))
    ways = (f"<think>{text}", f"<think>{text}</think>", f"<thinking>\n{text}\n</thinking> Done.", f"{text}</think>")
    return WrongReply(Completion(chance.choice(ways)), 0)


@wrong_reply("a draft in the thinking, no answer for the step")
def _draft(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    pairs = answer(trace, chance)
    before = f"<think>{pairs_text(pairs)}</think>"
    return _text([*pairs[:at], *pairs[at + 1 :]], at, before=before)


@wrong_reply("broken JSON")
def _broken(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    text = pairs_text(answer(trace, chance))
    quote = f'"{trace.steps[at].id}"'
    ways = (
        text.replace('"', "'"),
        text.replace("}", ",}"),
        text.replace(": ", " ", 1),
        text.replace(", ", " "),
        text[1:-1],
        text.replace(quote, trace.steps[at].id),
        text.replace('"', "\u201d"),
        text.replace("{", "{{").replace("}", "}}"),
        text.replace('"', '\\"'),
        f"[{text}, {text[:-1]}]",
        text.replace("{", "// the steps\n{/**/", 1),
        text + "}" + text[:-5] + '"x"}',
    )
    return WrongReply(Completion(chance.choice([each for each in ways if each != text])), 0)


@wrong_reply("NaN as a JSON constant")
def _constant(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    pairs = answer(trace, chance)
    text = pairs_text([*pairs[:at], (pairs[at][0], "@"), *pairs[at + 1 :]])
    return WrongReply(
        Completion(text.replace('"@"', chance.choice(["NaN", "Infinity", "-Infinity", "null", "1e999999"]))), at
    )


@wrong_reply("a tool call that differs from the text")
def _tool(trace: Trace, chance: random.Random, at: int) -> WrongReply | None:
    pairs, other = answer(trace, chance), _other_entry(trace, chance, at)
    if other is None:
        return None
    wrong = [*pairs[:at], (pairs[at][0], other), *pairs[at + 1 :]]
    first, second = (pairs, wrong) if chance.random() < 0.5 else (wrong, pairs)
    call = ToolCall("Steps", pairs_text(second))
    return WrongReply(Completion(pairs_text(first), "tool_calls", tool_calls=(call,)), at)


@wrong_reply("another tool")
def _other_tool(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    call = ToolCall(chance.choice(["steps", "answer", "Steps2", "python"]), pairs_text(answer(trace, chance)))
    return WrongReply(Completion(None, "tool_calls", tool_calls=(call,)), 0)


@wrong_reply("an answer inside another object")
def _nested(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    pairs = answer(trace, chance)
    inside = chance.choice(["steps", "answer", "properties", "t0", "response"])
    text = pairs_text([*pairs[:at], (inside, dict(pairs[at:]))])
    return WrongReply(Completion(text), at)


@wrong_reply("no answer")
def _none(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    ways = (
        "",
        " \n",
        "I cannot help with that.",
        "Sure! Here are the steps.",
        "{}",
        "[]",
        "null",
        "42",
        '""',
        "```json\n```",
        None,
    )
    return WrongReply(Completion(chance.choice(ways)), 0)


@wrong_reply("a refusal or a filter beside an answer")
def _refused(trace: Trace, chance: random.Random, at: int) -> WrongReply:
    text = pairs_text(answer(trace, chance))
    if chance.random() < 0.5:
        return WrongReply(Completion(text, refusal="I cannot help with that."), 0)
    return WrongReply(Completion(text, chance.choice(["content_filter", "refusal", "safety"])), 0)


@wrong_reply("escapes that hide a key")
def _escaped(trace: Trace, chance: random.Random, at: int) -> WrongReply | None:
    pairs, other = answer(trace, chance), _other_entry(trace, chance, at)
    if other is None:
        return None
    name = trace.steps[at].id
    hidden = "".join(f"\\u{ord(char):04x}" for char in name)
    text = pairs_text(pairs)
    return WrongReply(Completion(f'{text[:-1]}, "{hidden}": {json.dumps(other)}}}'), at)


@wrong_reply("the reply to another run")
def _stale(trace: Trace, chance: random.Random, at: int) -> WrongReply | None:
    from certification.traces import make_trace

    other = make_trace(chance, length=len(trace.steps))
    made = trace.steps[0]
    if not made.spec.wrong(other.steps[0].truth, made.exact):
        return None
    return _text(answer(other, chance), 0)
