"""Draft rules from a written policy: what can be read in one way only, and a list of everything else.

A sentence becomes a rule where all of it is one of a few forms and names its tool as such: in backticks, with an
underscore, or with brackets behind it. One that stands below a heading, below an item, or beside other words is only
proposed, as a comment, since those may narrow it. Nothing is a rule until a person has taken it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from stepguard.errors import PolicyError
from stepguard.policy.policy import Policy
from stepguard.policy.prose_blocks import A_HEADING, TOOL, ProseBlock, prose_blocks, sentences_of
from stepguard.policy.tool_schemas import ToolDeclarations

_T, _FIRST = TOOL.format("tool"), TOOL.format("first")
_CALL, _CALLING, _CALLED = "(?:call|use)", "(?:calling|using)", "(?:called|used)"
_WHO: Final = "(?:you|the agent|agents|the assistant)"
_ROLE: Final = r"(?:(?:the|a|an) (?P<role>[a-z]+)|(?P<known>user|customer))"
_YES: Final = "(?:confirmation|approval|consent)"
_NUMBER: Final = r"(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]{1,2}|\.[0-9]{4,})?)"
"""Of three digits behind a point nobody can tell whether they are thousands."""
_OFTEN: Final = (
    r"at most (?:(?P<word>once|twice)|(?P<times>[1-9][0-9]{0,5}|two|three|four|five|six|seven|eight|nine|ten) times)"
    r"(?: per (?:`(?P<perq>\w+)`|(?P<per>\w+)))?"
)
_WORDS: Final = {
    "once": 1, "twice": 2, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10,
}  # fmt: skip
_BOUNDS: Final = {
    "not exceed": "<=", "be at most": "<=", "not be more than": "<=", "not be greater than": "<=",
    "be less than": "<", "be at least": ">=", "not be less than": ">=", "be more than": ">", "be greater than": ">",
}  # fmt: skip


class ProseNote(NamedTuple):
    """The outcome of a sentence that is no rule of the draft.

    Attributes:
        line: its line, from 1; None for what was said of a tool.
        kind: ``proposed`` (a comment of the draft), ``left_out``, or ``assumed`` (in the draft, and not in the text).
        text: the sentence.
        reason: why.
    """

    line: int | None
    kind: Literal["proposed", "left_out", "assumed"]
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class DraftedPolicy:
    """A draft of rules.

    Attributes:
        text: the draft, in the language of policies.
        policy: what it comes to; None where it is no policy yet.
        rules: how many sentences became rules.
        notes: everything that did not, and what was assumed.
    """

    text: str
    policy: Policy | None
    rules: int
    notes: tuple[ProseNote, ...]


class _DraftedRule(NamedTuple):
    """A rule: its tool, what it demands before a call of it (None: it is never called), and why it is only proposed."""

    tool: str
    demand: str | None = None
    doubt: str | None = None

    def lines(self, words: str) -> list[str]:
        """The rule in the language."""
        if self.demand is None:
            return [f"never {self.tool} {words}"]
        return [f"before {self.tool}:", f"  {self.demand} {words}"]


_SentenceForm = Callable[[re.Match[str], Mapping[str, Mapping[str, str]]], "_DraftedRule | str"]
"""From a sentence that fits to its rule, or to why it is none."""


def draft_policy(text: str, tools: ToolDeclarations | None = None, *, name: str = "policy") -> DraftedPolicy:
    """The draft of a written policy.

    Args:
        text: the policy, as plain text or Markdown.
        tools: the tools of the agent; None: those that the rules name, with arguments that are not known.
        name: what it is called.
    """
    known = tools or ToolDeclarations()
    rules: list[str] = []
    notes = [ProseNote(None, "assumed", name, "it only reads, as it says of itself") for name in known.reads]
    notes += [ProseNote(None, "left_out", each, "write its declaration yourself") for each in known.left_out]
    ruled: dict[str, None] = {}
    drafted: dict[_DraftedRule, int] = {}
    for sentences, doubt in _read_blocks(text, known, listed=tools is not None):
        for line, sentence, rule in sentences:
            if not isinstance(rule, str) and rule in drafted:
                rule = f"line {drafted[rule]} says the same"
            if isinstance(rule, str):
                notes.append(ProseNote(line, "left_out", sentence, rule))
                continue
            why = " ".join((rule.doubt or doubt or "").split())
            plain = " ".join(sentence.split())  # nothing in it ends a line for some readers
            lines = [f"# line {line}: {plain}", *rule.lines(json.dumps(plain, ensure_ascii=False))]
            if not why:
                ruled[rule.tool] = None
                drafted[rule] = line
            else:
                notes.append(ProseNote(line, "proposed", sentence, why))
                lines = [lines[0], f"# {why}:", *(f"# {each}" for each in lines[1:])]
            rules.append("\n".join(lines))
    declared = dict(known.tools) if tools is not None else {tool: f"tool {tool}(...)" for tool in ruled}
    wanted = {rule.demand.removeprefix("done ") for rule in drafted if rule.demand is not None}
    for tool in declared:
        if tool in ruled or tool in known.reads:
            continue
        # Forbidden, it would make the rule that waits for it impossible to keep.
        if tool in wanted:
            notes.append(ProseNote(None, "assumed", tool, "a rule of the draft wants it first, so that it is free"))
            rules.append(f"allow {tool}")
        else:
            notes.append(ProseNote(None, "assumed", tool, "no rule of the draft speaks of it, so that it is forbidden"))
            rules.append(f'never {tool} "Nothing of the written policy that is a rule yet speaks of it."')
    head = f"# A draft: read every line, and the list beside it, before you use it.\nname: {name}"
    draft = "\n\n".join([head, *known.records, "\n".join(declared.values()), *rules]) + "\n"
    policy = None
    try:
        policy = Policy.parse(draft)
    except PolicyError as error:
        notes.append(ProseNote(error.line, "left_out", "the draft", f"it is no policy yet: {error.message}"))
    return DraftedPolicy(draft, policy, len(drafted), tuple(notes))


_Sentences = list[tuple[int, str, "_DraftedRule | str"]]


def _read_blocks(text: str, known: ToolDeclarations, *, listed: bool) -> Iterator[tuple[_Sentences, str | None]]:
    """The sentences of each block, each with its rule or why it is none, and why its rules are only proposed."""
    blocks = list(prose_blocks(text))
    read = [
        [(line, each, block.other or _read_sentence(each, known, listed)) for line, each in sentences_of(block)]
        for block in blocks
    ]
    unread = [any(isinstance(rule, str) for _, _, rule in sentences) for sentences in read]
    narrowed = _narrowed(blocks, read)
    behind = False  # words that are no rule, in this section
    for number, (block, sentences) in enumerate(zip(blocks, read, strict=True)):
        following = read[number + 1] if number + 1 < len(read) else []
        referred = any(isinstance(rule, str) and _REFERS.match(each) for _, each, rule in following[:1])
        joined = number + 1 < len(read) and _is_joined(block, blocks[number + 1])
        beside = unread[number] or behind or referred or joined or narrowed[number]
        yield sentences, block.below or (_NARROWED if beside else None)
        behind = block.other != A_HEADING and (behind or (unread[number] and not block.item))


def _is_joined(block: ProseBlock, following: ProseBlock) -> bool:
    """Whether the line right below a block is no sentence, such as a quotation or HTML: it may go on there."""
    return following.other not in (None, A_HEADING) and following.parts[0][0] == block.parts[-1][0] + 1


def _narrowed(blocks: list[ProseBlock], read: list[_Sentences]) -> list[bool]:
    """Whether words that are no rule take something back: in the section of a block, of all rules, or in its item."""
    sections = [0]
    for block in blocks[1:]:
        sections.append(sections[-1] + (block.other == A_HEADING))
    narrow: set[int] = set()
    for section, sentences in zip(sections, read, strict=True):
        backs = [each for _, each, rule in sentences if isinstance(rule, str) and _TAKES_BACK.search(each)]
        narrow |= {section} if backs else set()
        # "The rules above no longer apply": which ones are meant cannot be told.
        if any(map(_OF_ALL.search, backs)):
            return [True] * len(blocks)
    within, narrowed = False, []  # from the end: whether what follows is part of the item, and no rule
    for block, section, sentences in zip(reversed(blocks), reversed(sections), reversed(read), strict=True):
        narrowed.append(section in narrow or within)
        within = block.inner and (within or any(isinstance(rule, str) for _, _, rule in sentences))
    return narrowed[::-1]


_TAKES_BACK: Final = re.compile(
    r"\b(?:except\w*|exempt\w*|unless|however|no longer|(?:not|n[o']t) (?:apply|hold|count|bind\w*|valid|ours|in force)"
    r"|withdrawn?|void|invalid|suspended|superseded|obsolete|outdated|deprecated|replaced|struck|deleted|expired?|wrong"
    r"|disregard|ignore|examples?|proposals?|proposed|drafts?)\b|~~|:[\s\"'*_)]{0,9}$|^\W+$",
    re.IGNORECASE,
)
"""Words that take a rule back or say that something is none; a colon that begins a list; marks alone."""
_OF_ALL: Final = re.compile(r"\b(?:rules?|polic(?:y|ies)|above|below|document|guidelines?)\b", re.IGNORECASE)
_REFERS: Final = re.compile(
    r"(?:this|these|that|those|it|they|such|the above|the (?:former|latter|rules?)|except|unless|but|however|only|if|"
    r"not|note|though|although|still|there|when|otherwise|exceptions?)\b",
    re.IGNORECASE,
)
"""The beginnings of sentences that may narrow the one before."""
_NARROWED: Final = "it stands beside or behind words that are no rule, which may narrow it"
_UNREAD: Final = "it fits none of the forms that can be read in one way only"


# ---- from a sentence to a rule


def _read_sentence(sentence: str, known: ToolDeclarations, listed: bool) -> _DraftedRule | str:
    # Emphasis changes no meaning; __ within a name does.
    plain = re.sub(r"\*\*|__(?=[\s`])|(?<=[\s`])__", "", sentence).strip()
    # One mark at the end: three points leave the sentence open.
    plain = re.sub(r"(?<![.!?])[.!]$", "", plain)
    for form, build in _FORMS:
        match = form.fullmatch(plain)
        if match is None:
            continue
        for role in ("tool", "first"):
            tool = _name_in(match, role)
            if tool is not None and listed and tool not in known.tools:
                return f"no tool {tool!r} is among those that were given"
        return build(match, known.arguments)
    return _UNREAD


def _name_in(match: re.Match[str], role: str) -> str | None:
    groups = match.groupdict()
    return next((groups[role + kind] for kind in "quc" if groups.get(role + kind)), None)


def _tool_of(match: re.Match[str]) -> str:
    return str(_name_in(match, "tool"))


def _never(match: re.Match[str], known: Mapping[str, Mapping[str, str]]) -> _DraftedRule | str:
    return _DraftedRule(_tool_of(match))


def _before(match: re.Match[str], known: Mapping[str, Mapping[str, str]]) -> _DraftedRule | str:
    first = str(_name_in(match, "first"))
    if first == _tool_of(match):
        return "a call cannot come before itself"
    # A tool without arguments has only one call.
    doubt = "of which arguments is not said: any call of it will do" if known.get(first) != {} else None
    return _DraftedRule(_tool_of(match), f"done {first}", doubt)


def _limit(match: re.Match[str], known: Mapping[str, Mapping[str, str]]) -> _DraftedRule | str:
    word = match["word"] or match["times"]
    times = _WORDS.get(word.lower()) or int(word)
    per = match["perq"] or match["per"]
    if per is not None and per.lower() == "conversation":
        per = None
    if per is not None and per not in known.get(_tool_of(match), {}):
        return f"{_tool_of(match)} has no argument {per!r} that is known"
    often = "once" if times == 1 else f"{times} times"
    return _DraftedRule(_tool_of(match), f"at most {often}{f' per {per}' if per else ''}")


def _bound(match: re.Match[str], known: Mapping[str, Mapping[str, str]]) -> _DraftedRule | str:
    name = match["argq"] or match["arg"]
    kind = known.get(_tool_of(match), {}).get(name)
    if kind not in ("integer", "number"):
        return f"{_tool_of(match)} has no argument {name!r} that is known as a number"
    operator = _BOUNDS[" ".join(match["bound"].lower().split())]
    return _DraftedRule(_tool_of(match), f"require {name} {operator} {match['number']}")


def _confirmed(match: re.Match[str], known: Mapping[str, Mapping[str, str]]) -> _DraftedRule | str:
    return _DraftedRule(_tool_of(match), f"confirmed by {(match['role'] or match['known']).lower()}")


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE)


_FORMS: Final[tuple[tuple[re.Pattern[str], _SentenceForm], ...]] = (
    (_form(rf"(?:{_WHO} (?:must|may) (?:not|never)|never|do not(?: ever)?|don't(?: ever)?) {_CALL} {_T}"), _never),
    (_form(rf"{_T} (?:must|may) (?:not|never) be {_CALLED}"), _never),
    (_form(rf"{_T} is (?:always )?(?:forbidden|prohibited)"), _never),
    (_form(rf"(?:always )?{_CALL} {_FIRST} before (?:{_CALLING} )?{_T}"), _before),
    (_form(rf"before {_CALLING} {_T}, (?:{_WHO} must |always )?{_CALL} {_FIRST}(?: first)?"), _before),
    (_form(rf"{_T} (?:may|must) only be {_CALLED} after {_FIRST}"), _before),
    (_form(rf"{_CALL} {_T} only after (?:{_CALLING} )?{_FIRST}"), _before),
    (_form(rf"{_T} (?:may|must) be {_CALLED} {_OFTEN}"), _limit),
    (_form(rf"{_CALL} {_T} {_OFTEN}"), _limit),
    (
        _form(
            rf"(?:the )?(?:`(?P<argq>\w+)`|(?P<arg>\w+)) of {_T} must (?P<bound>{'|'.join(_BOUNDS)}) {_NUMBER}"
        ),
        _bound,
    ),
    (_form(rf"{_T} (?:requires|needs) (?:the )?{_YES} (?:of|by|from) {_ROLE}"), _confirmed),
    (_form(rf"{_T} must be (?:confirmed|approved) by {_ROLE}"), _confirmed),
    (_form(rf"(?:get|obtain) the {_YES} of {_ROLE} before {_CALLING} {_T}"), _confirmed),
)  # fmt: skip
