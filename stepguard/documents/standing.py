"""Whether a document states an amount or a date that is written in it, or says that it is not so.

An amount stands there with what belongs to it. As its currency and its scale do, so does what makes it a guess
(``approx. 80 EUR``, ``80 EUR or so``). And what is called void, wrong, old or an example, and what would only be so on
a condition, is not stated, unless the question asks for just that: ``if paid late, 90 EUR`` answers the question for
the late fee, and no other one. Ends of ranges and limits are stated.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cache
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.documents.sentences import begun_before
from stepguard.language.currencies import CODE, SIGN
from stepguard.language.neighbours import guessed
from stepguard.language.retraction import denied_before

_REACH: Final = 80
_ASKED: Final = lazy_pattern(r"(?:is|are|was|were|did|does|do|can|could|would|should|has|have)\b", re.IGNORECASE)
_QUESTION: Final = lazy_pattern(r"(?:[^.!?\n]|[.](?=[0-9])){0,80}\?")
_MONEY: Final = rf"(?:(?:{SIGN}|(?:{CODE})\b)\s?)?"
_CALLED: Final = (
    r"wrong|incorrect|false|invalid|not (?:right|correct|true|valid|due|payable|applicable|final)"
    r"|no longer (?:valid|due|applicable)|void(?:ed)?|cancell?ed|annulled|superseded|obsolete|outdated|draft|specimen"
    r"|example|sample|hypothetical|typo|an? (?:typo|mistake|error|example)|error|sic|correction|withdrawn|waived"
    r"|crossed out|struck out|deleted|removed|expired|lapsed|rejected|refused|disputed"
    r"|proposed|unconfirmed|expected|placeholder|dummy"
    r"|falsch|ung\u00fcltig|storniert|entwurf|muster|beispiel|exemple|ejemplo|annul[\u00e9e]e?|anulad[oa]"
)
"""What says of an amount that nobody is to take it for one."""
_NAMED: Final = (
    "(?:total|sum|amount|price|fee|figure|value|invoice|bill|quote|entry|version|summe|betrag|preis|prix|montant"
    "|precio)"
)
_LABEL: Final = lazy_pattern(  # whole parts of a line: VOID, Wrong total, Old price, Example for a fee
    rf"\W*(?:(?:the )?(?:{_CALLED}|old|former)(?: {_NAMED})?|(?:an )?example(?: [^\W\d_]+)*"
    rf"|(?:alte[rs]?|fr\u00fchere[rs]?|ancien(?:ne)?) {_NAMED})(?:\W*(?:{SIGN}|{CODE}))?\W*",
    re.IGNORECASE,
)
_ENDED: Final = lazy_pattern(r"[;.!?]\s")
_ENTRY: Final = lazy_pattern(  # an entry in front, with its own amount: `Cancelled: 3, confirmed: `
    rf".*(?::|\s[-\u2013\u2014])\s?{_MONEY}[0-9][^|;:]*?(?:,|\||\s{{2}})(?=[^:|]*(?::|\s[-\u2013\u2014])\s)", re.DOTALL
)
_PARTS: Final = lazy_pattern(r"[:|\t;(]|\s[-\u2013\u2014]\s|\s{2,}")
_CALLED_BEHIND: Final = lazy_pattern(
    r"[)\]]?,? (?:(?:which )?(?:is|was|are|were|has been|has(?= expired| lapsed)) |[(\[]|[-\u2013\u2014] )"
    rf"(?:{_CALLED})\b"
    r"(?! (?!(?:by|on|since|as|due)\b)[a-z0-9])"
    rf"|[^\w\n|]+(?:since |now |already )?(?:{_CALLED})"
    r"(?: (?:by|on|since|as)\b|[^\w\n|]*(?=\n|\||\Z))|,? (?:does not apply|no longer applies)\b"
    r"|[)\]]? (?:is|was) (?:wrong|incorrect|false|not right|an? (?:typo|mistake|error))\b"
    r"| [(\[](?:old|alt|bisher|previous(?:ly)?|former(?:ly)?)[)\]]"
    r"|,? (?:is|are) no longer\b|,? would (?:be (?:due|payable|charged|owed|added)|have been|apply)\b"
    r"|[.;,!]? (?:this|that|it) (?:is|was) (?:wrong|incorrect|false|not right|a typo)\b(?! to\b)"
    r"|[.;,!]? (?:sorry|correction|erratum|korrektur|berichtigung|rectificatif)[:,][^.\n]{0,20}[0-9]"
    rf"|[.;,!]?\s(?:corrected|korrigierte[rs]?|berichtigte[rs]?) {_NAMED}\b[^.\n]{{0,12}}[0-9]"
    r"|(?: until [^,.;\n]{1,20})?[,;]?\s?[(\[]?(?:but )?(?:it )?(?:is )?(?:now|since then|jetzt"
    r"|down to|should (?:be|read)|(?:superseded|replaced) by"
    r"|(?:corrected|changed|reduced|raised) to)\b[^.\n]{0,12}[0-9]",
    re.IGNORECASE,
)
_REPLACED: Final = lazy_pattern(rf"\s?(?:->|=>|[\u2192\u21d2])\s?{_MONEY}[0-9]", re.IGNORECASE)
_CALLED_BEFORE: Final = lazy_pattern(
    r"(?:(?:\A|[(,;\u2013\u2014-]\s?)(?:was|were|war)|formerly|previously|originally|until now|used to be|bisher"
    r"|fr\u00fcher|ehemals|vormals|zuvor|urspr\u00fcnglich|auparavant|anciennement|autrefois|initialement|antes"
    r"|(?:reduced|lowered|raised|increased|changed|discounted|down|up|cut|rose|fell|dropped) from|such as"
    r"|(?:stieg|sank|fiel|erh\u00f6ht|gesenkt|reduziert) von|(?:pass\u00e9|augment\u00e9|baiss\u00e9|r\u00e9duit)e? de"
    r"|(?P<never>(?:wrongly|incorrectly|mistakenly|falsely)(?: [^\W\d_]+){0,2}|no [^\W\d_]+ of"
    r"|anything but|far from(?: being)?"
    r"|(?:not|n['\u2019]t|never) (?:charged?|ha[dv]e?|ask for|require|owed?|offer(?:ed)?|received?)(?: you)? an?"
    r" [^\W\d_]+ of"
    r"|(?:thought|believed|meant|supposed)(?: [^\W\d_]+){0,3}"
    rf"|read [^.\n]{{1,24}} for))[:,]?\s(?:the |an? )?{_MONEY}\Z"
    r"|(?<!\w)(?:e\. ?g\.?|eg[.,:]|for (?:example|instance)|z\. ?B\.|zum beispiel|p\. ?ex\.|par exemple)[^)|;]{0,40}\Z"
    r"|(?<!\w)(?P<then>(?:until|till) [^,.;]{1,40} (?:was|were) [^,.;]{0,20}\Z)"
    r"|(?<!\w)(?P<untrue>(?:false|wrong|incorrect|untrue|not (?:true|correct|right|the case)|den(?:y|ie[ds])) that\b)",
    re.IGNORECASE,
)
"""What stands in front of an amount that nobody is to take for one; a question may ask for an old one or an example."""
_CONDITION: Final = (
    r"(?:(?:if|wenn|falls)(?! (?:any|applicable|needed|necessary|required|so|gew\u00fcnscht|vorhanden|n\u00f6tig"
    r"|(?:it is |you have )?not (?:yet|already)|noch nicht|(?:you|there) (?:have|are) (?:any |further )?questions)\b)"
    r"|unless(?! (?:otherwise|agreed|stated|noted|indicated|specified))|in (?:the )?case|in the event|on condition"
    r"|provided (?:that|you|it|he|she|they|no)|assuming|supposing|should (?:you|the|it)|sofern"
    r"|(?-i:[Ss]i)|en cas (?:de|d['\u2019][^\W\d_]+)|en caso de|im falle?|vorausgesetzt|\u00e0 condition)(?=\s)"
)
_CONDITIONAL: Final = lazy_pattern(rf"\W*(?:{_CONDITION})\b", re.IGNORECASE)
_CONDITION_BEFORE: Final = lazy_pattern(
    rf"(?<!\w)(?:{_CONDITION})\b.*?(?:[,:](?! ?[0-9])|\bthen\b).*"
    r"|(?<!\w)(?:suppos|assum|imagin|pretend|hypothe|let['\u2019]s say\b).*",
    re.IGNORECASE,
)
_CONDITION_BEHIND: Final = lazy_pattern(
    rf"[)\]]?,? [(]?(?:only |but |even |except )*(?!unless)(?:{_CONDITION})\b"
    rf"(?![^;|\n)]{{1,60}}[:=]\s?{_MONEY}[0-9])[^;|\n]*",  # and no condition of the amount behind it
    re.IGNORECASE,
)
_BARE: Final = lazy_pattern("[0-9.,]+")
_CELL: Final = lazy_pattern("[;|]")
_BAR: Final = lazy_pattern(r"(?<!\\)\|")
_GUESSING: Final = lazy_pattern(r"\b(?:estimat|approx|guess|rough|provisional|circa)", re.IGNORECASE)
_STAMPED: Final = (
    "VOID|CANCELL?ED|SPECIMEN|INVALID|NOT VALID|DRAFT|SAMPLE|REVERSED"
    "|TRAINING MODE|UNG\u00dcLTIG|STORNIERT|ENTWURF|MUSTER"
)
_PAPER: Final = (
    "(?:invoice|receipt|bill|quote|offer|copy|document|statement|contract|rechnung|quittung|angebot|beleg|vertrag"
    "|facture|re\u00e7u|devis|contrat|factura|recibo)"
)
_STAMP: Final = lazy_pattern(
    rf"^[^\w\n]*(?:(?i:this|the) \w+ (?i:is) )?(?:{_STAMPED})(?: (?i:invoice|receipt|bill|quote|offer|copy))?[^\w\n]*$"
    rf"|^[^\w\n]*(?i:(?:{_STAMPED}|example|storno)[ -]?{_PAPER}|{_PAPER} (?:annul\u00e9e?|storniert))[^\w\n]*$"
    rf"|\b(?i:(?:this|diese[rs]?|cette?) (?:[^\W\d_]+ )?{_PAPER} (?:is|was|has been|ist|wurde|est|a \u00e9t\u00e9)"
    rf" (?:only |nur )?(?:an? |eine? |une? )?(?:{_CALLED})\b"
    r"(?! (?:after|at|for|if|once|to|unless|until|when|where|with|without)\b)"
    rf"|this is (?:only )?an? (?:{_CALLED}) {_PAPER}\b)"
    rf"|^[^\n0-9|]{{0,40}}\b(?i:{_PAPER})\b[^\n0-9|]{{0,20}}(?:[(\[]|[-\u2013\u2014] ?)(?i:{_STAMPED})[^\w\n]*$",
    re.MULTILINE,
)
"""A line that says of the whole document that nothing in it holds."""
_NOTE_MARKS: Final = "*\u2020\u2021\u00a7\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
_NOTE_MARK: Final = lazy_pattern(rf"(?:[^\S\n]?(?:{SIGN}|{CODE}))?[^\S\n]?(?P<mark>[{_NOTE_MARKS}]+)(?!\w)")
_NOTE: Final = lazy_pattern(rf"^[^\S\n]*(?P<mark>[{_NOTE_MARKS}]+)[)\s]*(?P<note>.*)", re.MULTILINE)
_DOUBTING_NOTE: Final = lazy_pattern(
    rf"\b(?:estimate|approx|provisional|preliminary|thousands?\b|millions?\b|(?:{_CALLED}|{_CONDITION})\b)",
    re.IGNORECASE,
)
_WORD: Final = lazy_pattern(r"[^\W\d_]{3,}")
_ENDING: Final = lazy_pattern("(?:e?s|e?d|ing|e)$")
_STEM: Final = 5
_COMMON: Final = frozenset((
    "the", "you", "your", "and", "are", "was", "were", "not", "has", "had", "have", "its", "for", "that", "this",
    "with", "from", "copy", "read", "what", "which", "who", "when", "how", "out", "much", "many", "does", "must",
    "shall", "will", "say", "says", "list", "every", "each", "all", "any", "there", "document", "text", "total",
    "sum", "amount", "price", "value", "figure", "number", "fee", "invoice", "bill", "paid", "pay", "payable",
    "due", "order", "money", "none",
))  # fmt: skip
"""Words that stand in many questions: they do not tell which amount is meant."""


class Statements:
    """What a document states.

    Args:
        text: the document, as it is seen.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        stamp = _STAMP.search(text)
        self._stamp = "" if stamp is None else stamp[0]
        self._notes: dict[str, list[tuple[int, str]]] | None = None

    def hold(self, span: tuple[int, int], question: str) -> bool:
        """Whether an amount or a date at a place is stated.

        Args:
            span: the place.
            question: what is asked for: an instruction, a label, the name of a field.
        """
        start, end = span
        if denied_before(self._text, start):
            return False
        if guessed(self._text, start, end) and not _GUESSING.search(question):
            return False
        front = f"{begun_before(self._text, start)} "
        if _ASKED.match(front) and _QUESTION.match(self._text, end):
            return False
        called, condition = self._called(front, start, end), self._condition(front, end)
        said = " ".join((called, condition, self._note(end))).strip()
        named = not said or not _stems(question).isdisjoint(_stems(said))
        return named and (not self._stamp or not _words(question).isdisjoint(_words(self._stamp)))

    def _called(self, front: str, start: int, end: int) -> str:
        """The words by which an amount is called none, empty where there are none."""
        line = self._text[max(self._text.rfind("\n", 0, start) + 1, start - 4 * _REACH) : start]
        line = _ENDED.split(line)[-1]
        entry = _ENTRY.match(line)
        parts = _PARTS.split(line if entry is None else line[entry.end() :])
        labels = [*self._heading(start), self._column(start), *parts]
        found = [part for part in labels if _LABEL.fullmatch(part)]
        found += [part for part in labels[:-1] if _CONDITIONAL.match(part)]
        before = _CALLED_BEFORE.search(front, max(len(front) - 2 * _REACH, 0))
        if before is not None:
            found.append("-" if before["never"] or before["then"] or before["untrue"] else before[0])
        behind = _CALLED_BEHIND.match(self._text, end)
        if behind is None and not _BARE.fullmatch(self._text, start, end):
            behind = _REPLACED.match(self._text, end)
        found += [] if behind is None else [behind[0]]
        return " ".join(found)

    def _heading(self, start: int) -> list[str]:
        """The heading above a place, and what ends with a colon above its paragraph."""
        above = self._text[max(start - 8 * _REACH, 0) : start].split("\n")[:-1]
        found: list[str] = []
        ended = apart = False
        for line in reversed(above):
            if line.startswith("#"):
                return [*found, line]
            if line.strip():
                if not ended and line.rstrip(" *_").endswith(":"):
                    found.append(line)
                ended = ended or apart or bool(found)
            else:
                apart = True
        return found

    def _column(self, start: int) -> str:
        """The cell of the first row of a table above a place, empty where it stands in none."""
        begin = self._text.rfind("\n", 0, start) + 1
        at, head = len(_BAR.findall(self._text, begin, start)), ""
        if at:
            for line in reversed(self._text[max(begin - 50 * _REACH, 0) : begin].split("\n")[:-1]):
                if "|" not in line:
                    break
                head = line
        return "".join(_BAR.split(head)[at : at + 1])

    def _condition(self, front: str, end: int) -> str:
        """The condition on which an amount would be so, empty where there is none."""
        found = _CONDITION_BEFORE.search(_CELL.split(front)[-1])
        found = found or _CONDITION_BEHIND.match(self._text, end, end + _REACH)
        return "" if found is None else found[0]

    def _note(self, end: int) -> str:
        """The footnote of an amount, where it says that the amount is not so; else empty."""
        while self._text[end - 1] in _NOTE_MARKS:  # as a word that is found whole ends with them
            end -= 1
        mark = _NOTE_MARK.match(self._text, end)
        if mark is None:
            return ""
        if self._notes is None:
            self._notes = {}
            for line in _NOTE.finditer(self._text):
                note = line["note"][: 5 * _REACH]
                doubt = note if _DOUBTING_NOTE.search(note) else ""
                self._notes.setdefault(line["mark"], []).append((line.start(), doubt))
        notes = self._notes.get(mark["mark"], [])
        at = bisect_right(notes, (end, ""))
        return notes[at][1] if at < len(notes) else ""


@cache
def _common() -> frozenset[str]:
    return frozenset(_ENDING.sub("", word) for word in _COMMON)


def _words(text: str) -> set[str]:
    plain = "".join(each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))
    return {_ENDING.sub("", word.casefold()) for word in _WORD.findall(plain.replace("_", " "))} - _common()


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _words(text)}
