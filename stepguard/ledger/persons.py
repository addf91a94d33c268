"""Finds and erases what a ledger holds about one person who asks what is kept of them, or to be forgotten.

Nothing in a record says whom it is about, so that it is found by what it says: an e-mail address, a customer's number,
a name. Each is looked for in whatever a run holds, as a whole word, however it is escaped or spelled in capitals. What
stands inside a longer word is another person's, perhaps: it is named, and left.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from unicodedata import normalize
from urllib.parse import unquote

from stepguard.errors import ConfigError, RunConflict
from stepguard.language.unseen import without_unseen
from stepguard.ledger.ledger import Ledger

_PAGE: Final = 1_000
# Fewer letters stand by chance in every run.
# Two letters stand by chance in every run.
_SHORTEST: Final = 3
_LONGEST: Final = 1_000
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_BLANKS: Final = str.maketrans("nrt", "   ")
_HEX: Final = re.compile(r"-?0x[0-9a-f]+")
# As a whole word, and no part of a longer number: 12 is not found in 12.50.
_NAME: Final = r"(?<![^\W_])(?<!\d[.,]){}(?![^\W_])(?![.,]\d)"
_ADDRESS: Final = r"(?<![\w.+%-]){}(?![\w-])(?!\.\w)"
"""An e-mail address, which is another one with anything more that may stand in one."""
_FOUND_IN: Final = {
    "begin": "inputs",
    "step": "steps",
    "call": "calls of tools",
    "answer": "answers of persons",
    "attempt": "model calls",
    "gate": "the conversation of a gate",
    "end": "how it ended",
}
"""What is said of a record, by its kind."""


class PersonNames:
    """What one person is called by, in texts.

    Args:
        names: each name, number or address.

    Raises:
        ConfigError: there is none, or one is so short that it would be found everywhere.
    """

    def __init__(self, names: Iterable[str]) -> None:
        given = [names] if isinstance(names, str) else list(names)
        if isinstance(names, str) or not all(isinstance(name, str) for name in given):
            raise ConfigError(f"a person is a list of names, which are texts, not {names!r:.60}", option="person")
        plain = [_plain(name) for name in given]
        short = next((name for name in plain if len(name) < _SHORTEST), None)
        if short is not None or not plain:
            what = "no name" if short is None else f"{short!r}, which stands everywhere by chance"
            raise ConfigError(f"a person is found by {what}: give {_SHORTEST} characters or more", option="person")
        whole = (((_ADDRESS if "@" in name else _NAME).format(re.escape(name))) for name in plain)
        self._whole: Final = re.compile("|".join(whole))
        self._within: Final = re.compile("|".join(map(re.escape, plain)))

    def find(self, text: str) -> bool | None:
        """Whether a text, or JSON data as text, holds one of them as a whole word; None where not even inside one."""
        try:
            # Read as JSON, in which a name may be escaped.
            read = json.loads(text) if text[:1] in ("{", "[") else text
        except (ValueError, RecursionError):
            read = text
        texts = [_plain(spelling) for spelling in _spellings("\n".join(_leaves(read)))]
        if not any(map(self._within.search, texts)):
            return None
        return any(map(self._whole.search, texts))


@dataclass(frozen=True, slots=True)
class PersonTraces:
    """Where something about a person stands.

    Attributes:
        runs: of each run that holds it, by its run_id, where it stands and how often.
        doubtful: the same of other runs, which hold it only inside a longer word.
    """

    runs: Mapping[str, Mapping[str, int]]
    doubtful: Mapping[str, Mapping[str, int]]


def find_person(ledger: Ledger, names: Iterable[str] | PersonNames) -> PersonTraces:
    """Find the runs that hold something about a person, the conversations of gates among them. Every record is read.

    Args:
        ledger: the ledger, which may be opened read-only.
        names: what the person is called by: addresses, numbers, names, each as it is written.

    Raises:
        ConfigError: `names` finds nobody.
        LedgerError: the ledger cannot be read.
    """
    person = names if isinstance(names, PersonNames) else PersonNames(names)
    found: dict[int, Counter[str]] = {}
    whole: set[int] = set()
    for runs, where, text in _texts(ledger):
        if (hit := person.find(text)) is not None:
            for run in runs:
                found.setdefault(run, Counter())[where] += 1
            whole.update(runs if hit else ())
    named = {number: name for number, name in ledger.file.read("select number, name from runs") if number in found}
    traces = {number: dict(found[number]) for number in sorted(found)}
    return PersonTraces(
        {named[number]: where for number, where in traces.items() if number in whole},
        {named[number]: where for number, where in traces.items() if number not in whole},
    )


def erase_person(
    ledger: Ledger,
    names: Iterable[str] | PersonNames,
    *,
    forget: Callable[[Sequence[str]], object] = lambda run_ids: None,
) -> PersonTraces:
    """Erase every run that holds something about a person, see `Ledger.erase`; one that is named after the person is
    called otherwise from then on, so that its name is free. The chain of the records stays whole.

    Args:
        ledger: the ledger.
        names: what the person is called by.
        forget: is given the names of the runs that were erased, and takes them out of what lies elsewhere.

    Returns:
        What still stands there: of runs that are under way, which are left, and what is `PersonTraces.doubtful`.

    Raises:
        ConfigError: `names` finds nobody.
        LedgerError: as `Ledger.erase`; doing the same again ends it.
    """
    person = names if isinstance(names, PersonNames) else PersonNames(names)
    found = find_person(ledger, person)
    with suppress(RunConflict):  # what is under way is found again below
        ledger.erase(found.runs)
    erased = [name for name in found.runs if (run := ledger.summary(name)) is not None and run.status == "erased"]
    forget(erased)  # before the runs are renamed: after a kill in here their names are still found
    if named := [name for name in erased if not found.runs[name].keys().isdisjoint(("name", "procedure"))]:
        ledger.erase(named, hide=lambda text: person.find(text) is True)
    return find_person(ledger, person)


def _texts(ledger: Ledger) -> Iterator[tuple[Iterable[int], str, str]]:
    """Every text of a ledger: the numbers of the runs that hold it, where it stands, and the text."""
    read = ledger.file.read
    procedures = dict[str, list[int]]()
    for run, name, title, procedure in read("select number, name, title, procedure from runs"):
        yield (run,), "name", name
        yield (run,), "procedure", title
        procedures.setdefault(procedure, []).append(run)
    for digest, source, operations in read("select digest, source, operations from procedures"):
        yield procedures.get(digest, ()), "procedure", f"{source}\n{operations}"
    last = 0
    sql = f"select number, run, kind, body from records where number > ? order by number limit {_PAGE:d}"
    while rows := read(sql, last):
        last = rows[-1][0]
        yield from (((run,), _FOUND_IN.get(kind, "name"), body) for _, run, kind, body in rows if body is not None)


def _leaves(data: Any) -> Iterator[str]:
    """The texts and numbers of JSON data, names of fields among them."""
    match data:
        case dict():
            for name, item in data.items():
                yield name
                yield from _leaves(item)
        case list():
            for item in data:
                yield from _leaves(item)
        case str():
            yield data
            if len(data) < _LONGEST and _HEX.fullmatch(data):  # how a long number is kept
                yield str(int(data, 16))
        case None | bool():
            pass
        case _:
            yield str(data)


def _spellings(text: str) -> Iterator[str]:
    """A text as it stands, and as what it may be escaped as: JSON in a reply, an address of the web, HTML."""
    yield text
    if "\\" in text:
        yield _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2].translate(_BLANKS), text)
    if "%" in text:
        yield unquote(text)
    if "&" in text:
        yield html.unescape(text)


def _plain(text: str) -> str:
    """A text in small letters, with single blanks, as Unicode writes it shortest."""
    if not text.isascii():
        text = normalize("NFKC", without_unseen(text))
    return " ".join(text.casefold().split())
