"""What stands beside a number and makes it another one: ``5 million``, ``5-10``, ``10^5``, ``5 ½``, ``minus 5``.

One reader for documents, names in them and transcripts.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.language.currencies import CODE, PARTS, SIGN, SURE_CODE
from stepguard.language.digits import GROUPING, MINUS_SIGNS, VULGAR
from stepguard.language.numerals import WIDE_DIGITS
from stepguard.language.prose.retraction import denied_before
from stepguard.language.prose.struck_text import JOINT
from stepguard.language.unit_names import factors_of
from stepguard.language.unseen import BLANKS

_UNITS: Final = (
    "st|nd|rd|th|km|cm|mm|nm|kg|mg|g|t|lb|lbs|oz|ft|in|mi|yd|h|hr|hrs|min|s|sec|ms|l|L|ml|mL|kW|kWh|MW|MWh|GHz|MHz|kHz"
    "|Hz|kB|KB|MB|GB|TB|px|pt|x|°C|°F|°"
)
RANGE: Final = "\u2013"
"""The dash of a range: between two numbers both of them stand there, where a hyphen may be part of a code."""
_BLANKS: Final = f"[{BLANKS}]"
_WIDE: Final = "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Letters of scripts that write words without blanks between them."""
_MINUS: Final = f"-{MINUS_SIGNS}"
_ENDS: Final = r"\s;|()\[\]{}\"“”„«»<>—、。!?"
"""What ends a number for certain, so that another may begin right behind it."""
# Ids, versions, powers, and digits that are grouped or go on: `Q3`, `1.2.3`, `10^5`, `1'234`.
_GLUED_BEFORE: Final = lazy_pattern(
    rf"(?![{_WIDE}])[\w#@±]\Z|[{WIDE_DIGITS}]\Z|[\w)\]][{_MINUS}+/._*^~%]\Z|[/\\\u2044\u2215{JOINT}]\Z"
    rf"|\w['’\u00b4`\u02bc\u066c]\Z|[\w)](?:\*\*| \*\* | ?\^ ?)\Z|[0-9][^\w{_ENDS}]\Z|[0-9][{GROUPING}]\Z"
    rf"|[{_MINUS}]\({_BLANKS}?\Z|\b(?:CR|Cr|DR|Dr)\.?{_BLANKS}?\Z"
)
_SIGN_AFTER: Final = lazy_pattern(rf"[\s(\[{{=<>≤≥≠≈~:;,|\"'“‘*{_WIDE}、。]\Z")
_GLUED_BEHIND: Final = lazy_pattern(
    rf"(?!(?:{_UNITS})(?![^\W{_WIDE}]))(?![{_WIDE}])\w|[^\w{_ENDS}]\d|[-_/@][A-Z]\b|[/_@]\w|\*+\w|-\w?\d|[⁻⁺±{JOINT}]"
    rf"|\+/|[{GROUPING}]\d|[割分成折半倍{WIDE_DIGITS}]|[円元块塊圓원]{_BLANKS}?\d"
)
_LARGER: Final = (  # stems, in languages that write our digits
    "hundred|thousand|[mb]ill?ion|trill?ion|quadrill?ion|mill?iard|mil[jy]|miliar|milio|millon|millón|milh[ãõo]|bil[jy]"
    "|bilh[ãõo]|tril[jy]|trilh[ãõo]|billiard|hundert|tausend|duizend|tusen|tusind|tisíc|tysi|tuhat|tuhan|ezer|lakh"
    "|crore|juta|ribu|тысяч|тисяч|хиляд|миллион|миллиард|милион|милиард|мільйон|мільярд|триллион|[万萬億亿兆千百만억조천백]"
    "|000(?![0-9])"
)
_LARGER_WORDS: Final = (
    "mille|milliers?|mil|mila|mill|mii|mie|bin|crs?|lacs?|dozens?|th?sd|tds|tys|tis|mio|mia|mln|ml?rd|mld|mds?|bio|brd"
    "|bln|[mbt]n|trn|(?-i:MM)|m?[mt]kr|mdkr|тыс|тис|млн|млрд|трлн"
)
_SMALLER_WORDS: Final = (
    "bps?|basis[ \u00a0]points?|per[ \u00a0-]?(?:mil(?:le?)?|thousand)|pro[ \u00a0]?mill?e?|(?:ten|hundred|thousand"
    "|million)ths?|halves|thirds|quarters"
)
_SEPARATED: Final = (
    rf"(?:{_BLANKS}|\s)?[)\]]?(?:[\s{BLANKS}\-{MINUS_SIGNS}]{{0,3}}|\s?[(\[\"'“‘„«*_]{{1,3}}(?:in{_BLANKS})?"
    rf"|,?{_BLANKS}in{_BLANKS})"
)
"""What may stand between a number and the word for thousands or millions that belongs to it."""
_GOES_ON: Final = lazy_pattern(
    r"[ \u00a0]?\\[dtc]?frac(?![a-z])|"
    "[ \u00a0]?(?:[¼-¾⅐-⅞]|[0-9]{1,3}/[0-9])|['’\u00b4`\u02bc\u066c][0-9]"
    rf"|\*\*[{_MINUS}+]?[0-9]| \*\* ?[{_MINUS}+0-9(]| ?\^ ?[{_MINUS}+0-9({{]| ?[⁻⁺][⁰¹²³⁴-⁹]|{_BLANKS}(?:squared|cubed"
    rf"|to{_BLANKS}the{_BLANKS}power)\b|[- ]?fold\b|![!\w^*/=]|!{_BLANKS}(?-i:[a-z=+*/])|{_BLANKS}:{_BLANKS}[0-9]"
    rf"|{_BLANKS}[.,]{_BLANKS}?[0-9]|,\r?\n?{_BLANKS}?000(?![0-9])|{_BLANKS}&{_BLANKS}?[0-9]/[0-9]"
    "|[ \u00a0]?[\u2044\u2215][ \u00a0]?[0-9]|[ \u00a0]?(?:[×x*·\u22c5\u2217]|times|\\\\times"
    "|\\\\cdot)[ \u00a0]?10[ \u00a0]?(?:\\^|\\*\\*|[⁻⁺⁰¹²³⁴-⁹])"
    rf"|{_SEPARATED}(?:{_LARGER})|{_BLANKS}?\(?[×x*]{_BLANKS}?1[,.]?000(?={_BLANKS}?(?:[)\n|;,]|\Z))"
    rf"|{_SEPARATED}(?:(?:{_LARGER_WORDS}|{_SMALLER_WORDS})(?![^\W\d_])|[‰‱])|{_BLANKS}?[(\[][%‰]"
    rf"|(?:{_BLANKS}(?:{SIGN}){_BLANKS}|(?:{SIGN}){_BLANKS}?)[0-9]{{2}}(?![0-9.,])|{_BLANKS}?[(\[]?(?:credit|debit"
    rf"|haben|soll|cr|dr)(?![\w-])|(?<=[.,][0-9]{{2}}){_BLANKS}(?-i:[HS]|OD|O/D)(?={_BLANKS}*(?:\n|\||\Z))"
    rf"|[-{MINUS_SIGNS.replace(RANGE, '')}{RANGE}]?{_BLANKS}*[{_MINUS}]{_BLANKS}*(?=\n|\||\Z)|{_BLANKS}?[(\[;"
    rf"|\t]?{_BLANKS}?(?:in{_BLANKS})?[tkmbg][dn]?\.?{_BLANKS}?(?:(?:{SIGN})(?!{_BLANKS}?[0-9])|(?-i:{CODE})\b)"
    rf"|{_BLANKS}?[(\[](?:in{_BLANKS})?(?:{SIGN}|(?-i:{CODE})){_BLANKS}?[tkmb]n?[)\]]|{_BLANKS}and{_BLANKS}(?:an?|one"
    rf"|two|three){_BLANKS}(?:hal|third|quarter)|[-{MINUS_SIGNS.replace(RANGE, '')}](?!\w|[{_MINUS}>])",
    re.IGNORECASE,
)
"""What makes a number another one: ``5 ½``, ``1'234``, ``5⁄8``, ``1.5 × 10^6``, ``(5) million``, ``5 lakh``, ``5-``."""
_MONEY_GOES_ON: Final = lazy_pattern(
    rf"{_BLANKS}?[(\[\"'“‘*_]*(?:[kKmMbBtT]|[mM][mM]|[bBtT]r?[nN])(?![\w-])|,?{_BLANKS}?(?:(?i:and|und|et|y"
    rf"|e){_BLANKS})?[0-9]{{1,2}}{_BLANKS}?(?:¢|(?i:{'|'.join(PARTS)})\b)|{_BLANKS}(?i:con"
    rf"|com){_BLANKS}[0-9]{{2}}(?![0-9.,])|(?<!\.[0-9]{{2}}),(?:{_BLANKS}|\r?\n)[0-9]{{3}}(?![0-9%])|\.(?:{_BLANKS}"
    rf"|\r?\n)[0-9]{{2,3}}(?=\s*(?:{SIGN}|(?:{CODE})\b|\||\n|\Z))"
)
"""Behind an amount of money, what may be the unit of another number, or the rest of it: ``$3 M``, ``$3 20 cents``."""
_SCALED_BEFORE: Final = lazy_pattern(
    rf"\b(?:[tTkKmM]|[mMbB][nN])(?:{SIGN}|{CODE}){_BLANKS}?\Z|\b(?i:mio|mrd|tsd|thousands?|millions?"
    rf"|billions?)\.?{_BLANKS}(?:{SIGN}|{CODE}){_BLANKS}?\Z|(?:{SIGN}|\b(?:{CODE})){_BLANKS}?(?:[kKmMbB]|[mMbB][nN]"
    rf"|(?i:thousands?|millions?|billions?)|['\u2019]?000s?){_BLANKS}\Z"
)
"""In front of a number, its scale with a currency: ``TEUR 5``, ``Mio. EUR 5``, ``€m 5``, ``USD million 5``."""
_NEGATED: Final = lazy_pattern(
    r"\b(?:minus|negative|(?<!\bau )moins|(?<!\bal )menos|meno|минус|мінус)[\s:)]{1,3}\Z"
    rf"|[:=|(\t][^\S\n]?[{_MINUS}][^\S\n]\Z|[↓⬇]\ufe0f?\s?\Z|(?:マイナス|마이너스|[負负減▲△▼])\s?\Z"
    r"|(?:[√∛∜]|\\(?:[dtc]?frac|sqrt(?:\[[0-9]\])?))[\s({]{0,2}\Z|\}\s?\{\s?\Z|[*\u2022\u25cf\u2217]{3,}[ -]?\Z",
    re.IGNORECASE,
)
"""In front of a number, what makes it another one: below zero, a root, part of a fraction."""
_PER_UNIT: Final = lazy_pattern(r"/[a-z]+(?![\w/-])")
"""Behind an amount: ``$0.75/share``."""

_SMALLER_UNITS: Final = (
    "days?|h|hrs?|hours?|min|mins|minutes?|s|secs?|seconds?|ft|feet|in|inch(?:es)?|oz|ounces?|lbs?|pounds?|cm|mm|g"
    "|grams?|mg|ml|months?|weeks?|m|qts?|quarts?|pts?|pints?|cups?|tbsp|tsp|fl oz|c|cts?|cents?|p|pence|rappen"
)
_LARGER_UNITS: Final = (
    "years?|months?|weeks?|wks?|days?|d|h|hrs?|hours?|mins?|minutes?|ft|feet|foot|yds?|yards?|miles?|mi|lbs?|pounds?|st"
    "|stone|kg|g|l|km|m|dollars?|euros?|francs?|degrees?|gal|gallons?|qt|quarts?"
)
_BOUNDS: Final = (
    "up to|at most|at least|(?:no |not )?(?:more|less|fewer|greater|higher|lower) than|under|over|above|below|max|min"
    "|max\\.|min\\.|a (?:maximum|minimum) of|maximum|minimum|as (?:much|little|many|few) as|up to a total of|exceed(?:s"
    "|ed|ing)?|beyond|bis zu|h\u00f6chstens|mindestens|\u00fcber|unter|au plus|au moins|jusqu'\u00e0|hasta|al menos"
    "|como m\u00e1ximo|fino a|almeno"
)
"""Behind which an amount is no more than the end of what is meant."""
_MARKED: Final = rf"(?:(?:{SIGN}|(?:{CODE})\b)\s?)?"
_GUESSED: Final = (
    r"approx\.?|approximately|about|around|roughly|circa|(?-i:ca\.?)|nearly|almost|some|close to|somewhere (?:near"
    r"|around)|est\.|estimated(?: at)?|(?:an )?estimate of|in the region of|(?:in|on) the order of|give or take"
    r"|more or less|a good|maybe|perhaps|possibly|probably|presumably|likely|allegedly|reportedly|supposedly|i (?:think"
    r"|guess|believe|suppose|assume)|as far as i (?:know|remember|recall)|unless i am mistaken|apparently|from memory"
    r"|ballpark|roughly speaking|(?:would|could|might|may)(?: have)? (?:be(?:en)?|come to|amount to|cost|total)"
    r"|(?:serait|co\u00fbterait|s'\u00e9l\u00e8verait|ser\u00eda|costar\u00eda|sarebbe|costerebbe)(?: de| di| \u00e0)?"
    r"|un[oa]s|voraussichtlich|sch\u00e4tzungsweise|zirka|\u00e0 peu pr\u00e8s|alrededor de|m\u00e1s o menos|etwa"
    r"|ungef\u00e4hr|rund|knapp|gesch\u00e4tzt|vielleicht|wahrscheinlich|vermutlich|environ|presque|peut-\u00eatre"
    r"|quiz\u00e1s?|casi|aproximadamente|aprox\.?|circa"
)
_GUESSED_BEFORE: Final = lazy_pattern(
    rf"(?:(?<![^\W_])(?:{_GUESSED})[:,]?(?: an?| the| exactly)?\s?[\"'(]?|(?<=[\w:] )(?-i:c)\. ?"
    rf"|[~\u2248\u223c\u2243\u2245\u00b1] ?|(?<![\w)])\?+|\\(?:approx|sim|simeq|pm)\s?){_MARKED}\Z",
    re.IGNORECASE,
)
_GUESSED_BEHIND: Final = lazy_pattern(
    r"-?ish\b|-something\b|[- ]odd\b|[ ,(]{1,3}(?:tbc|tbd|not sure|pending|to be (?:confirmed|determined|agreed)"
    r"|provisional|preliminary|roughly speaking)\b|[\s,]{0,2}\(?(?:\u00b1|\+/-|plus/minus)|\s?[\[(]?\?(?!\w)"
    r"|,? (?:or so|or thereabouts|give or take)\b"
    rf"|[^\S\n]{{0,9}},?[^\S\n]{{0,9}}[\[(]?(?:{_GUESSED}|(?:an )?estimate[ds]?)(?:[\])]|[.,;"
    rf"|]?(?!{_BLANKS}?{_MARKED}[0-9])(?=\W|\Z)(?!{_BLANKS}\w))",
    re.IGNORECASE,
)
_SHARES: Final = (
    "(?:one )?half|(?:a|one) third|two thirds|(?:a|one|three) quarters?|a tenth|a fifth|twice|thrice|double|triple"
    "|multiples?|die h\u00e4lfte|la moiti\u00e9|la mitad|das doppelte"
)
"""Behind which an amount is what another one is made of."""
_SHARED: Final = lazy_pattern(rf"\b(?:{_SHARES})(?: of)?(?: (?:the|an?))? [^\w\s]?\Z", re.IGNORECASE)
_COUNTS: Final = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|several|both|each|many|dozen"
_BEGINS_NUMBER: Final = lazy_pattern(rf"(?:(?:{SURE_CODE}) ?)?[^\w\s]*[0-9]", re.IGNORECASE)
_NUMBER_BEFORE: Final = lazy_pattern(
    r"[\w)\]][+/.*^~%@]\Z|[0-9][:,=]\Z|[/\\\u2044\u2215±]\Z|(?<![.-])[-.]\Z|(?:[\s(\[{$€£]|\A),\Z|\b(?:minus"
    r"|negative) \Z|- ?\([^\w\s]?\Z|[0-9)\]] ?(?:[x×*·⋅]|times|-|to) ?\(?\Z|\btimes \Z|[0-9]\w{0,3} ?[×*·⋅] ?\(?\Z"
    r"|[<>≤≥∓…≲≳≪≫⩽⩾] ?\Z|\\[lg](?:eq?|t)(?:slant)? ?\Z|[0-9]\(\Z|[0-9] ?(?:to|or|and|bis|und|à|~) \Z|\.\. ?\Z"
    r"|[\u221a\u221b] ?\Z|[0-9] ?[^\W\d_]{1,12}\.? ?(?:to|bis|à|up to|[-~]|\.\.+) ?\Z|\bbetween [^.;\n]{1,20} and \Z"
    r"|\b(?:per|every) \Z"
    rf"|\b(?:{_BOUNDS})(?: (?:the|an?|to|of))? \Z|\b(?:{_SHARES})(?: of)?(?: (?:the|an?|these|those))? \Z"
    rf"|\b(?:[0-9]+(?<!\b1)|{_COUNTS})%? (?:[^\W\d_]+ ){{0,2}}of (?:the )?\Z|\b(?:[0-9]+|{_COUNTS}) times \Z"
    rf"|\b(?:{_COUNTS}|[0-9]+ ?[^\W\d_]{{1,10}}\.? ?[x×*]) \Z"
)
"""In front of a number, what makes it the rest of another one: ``0.``, ``1,``, ``1/``, ``10^``, ``12:``, ``-``."""
_NUMBER_BEHIND: Final = lazy_pattern(rf"[:.,@^*=+/\u2044\u2215][0-9]|[/_@]\w|[±⁻⁺{JOINT}]|\+/")
_ENDS_AMOUNT: Final = lazy_pattern(r"[0-9][^\s0-9]*(?: [^\s0-9]{1,20}){0,2}\Z")
_AMOUNT_BEHIND: Final = lazy_pattern(
    r"[),]? ?\(?(?:/|per\b|p\.a\.|an? (?:day|week|month|year|hour|minute|second|night|piece|person|head|kilo|dose)\b"
    r"|(?:for )?(?:each|every)\b|apiece\b|je\b|pro\b)|\)? (?:par (?!carte)|por (?!favor)|cada |chaque "
    r"|al(?:la)? (?:giorno|mese|ora|chilo|kg|d\u00eda|mes)\b)|\)? ?(?:[×*·⋅] ?|x )[0-9(]|\^|\)\^|\*\w| ?[·⋅] ?\w"
    r"| [a-z]{1,4}\^?[-\u2212][0-9]"
    rf"|,? (?:[0-9]+|{_COUNTS}) times\b| (?:zwei|drei|vier)mal\b| \(x ?[0-9]"
    r"|\+(?!\w)| ?(?:[-+]|to|bis|\.\.+|~) ?[0-9]| (?:more|less|fewer)\b| (?:or|and) (?:more|less|fewer|above|below|over"
    r"|under|up|higher|lower|older)\b|%| (?:twice|thrice|daily|hourly|weekly|monthly|yearly|nightly)\b| [bt]\.?i\.?d\b"
    r"| q[0-9i]{1,2}[hd]?\b| x ?[0-9]|\u2215|,? (?:or|in) [0-9]|, no[,:] | (?:at (?:most|least)|max|min|maximum"
    r"|minimum)\b|[- ]?(?:plus|minus)\b"
    rf"|(?:,? | and |, and )[0-9]+(?:[.,][0-9]+)? ?(?:{_SMALLER_UNITS})(?!\w)"
)
"""Behind an amount with its unit, what makes it another one: a rate, a factor, a power, the rest of it."""
_NUMBER_TAIL: Final = lazy_pattern(r"[0-9]{3}(?![0-9])|[0-9]{1,3}[/\u2044]")
"""What may belong to a short number with a blank in front of it: ``234``, ``1/2``."""
_SHORT_BEFORE: Final = lazy_pattern(r"(?<![0-9A-Za-z])[0-9]{1,3} \Z")
_SHORT: Final = lazy_pattern(r"(?<![0-9])[0-9]{1,3}\Z")
_GROUP_BEHIND: Final = lazy_pattern(r" [0-9]{3}(?![0-9A-Za-z])")
_SMALLER: Final = lazy_pattern(rf"[0-9.,]+ ?(?:{_SMALLER_UNITS}|['\"\u2032\u2033])\Z")
_LARGER_BEFORE: Final = lazy_pattern(rf"[0-9] ?(?:{_LARGER_UNITS}|['\u2032\u00b0])(?:,? |,? and |)\Z")
_LARGER_UNIT: Final = lazy_pattern(rf"[0-9][^\S\n]?-?(?:{_LARGER_UNITS}|['\u2032\u2019\u00b0])\Z", re.IGNORECASE)
_LESS_BEHIND: Final = lazy_pattern(
    r"(?:\.(?=\s?[0-9]+(?:\.[0-9])?\s*(?:[.;,)\n]|\Z)))?"
    rf"(?:{_BLANKS}|{_BLANKS}?-{_BLANKS}?|)(?![0-9]+(?:\.[0-9])?{_BLANKS}?(?:(?!(?:{_SMALLER_UNITS})(?!\w))(?:{_UNITS})"
    rf"(?!\w)|[%*\u00d7$\u20ac\u00a3\u00a5/]|(?:{CODE})\b))[0-9]{{1,3}}(?:\.[0-9])?(?![0-9]|[.,:/-][0-9]"
    rf"|(?![{VULGAR}])[^\W\d_])"
)
"""Behind a larger unit, a number that is in the next smaller one, named or not: ``5 ft 10``, ``2 h 30``, ``1 m 80``."""
_NEXT_UNIT: Final = lazy_pattern(
    r"(?<=[A-Za-z\u00b5\u03bc\u03a9] )(?!(?:in|as?|at|bar)\b)(?:[A-Za-z\u00b5\u03bc\u03a9]{1,3}|[a-z]{3,11}s"
    r"|feet)(?![\w'\u2019])"
)
"""Behind a unit and a blank, what may be another factor of it: ``10 N m``, ``3 kW h``, ``5 watt hours``."""
_UNIT: Final = lazy_pattern(r"[0-9] ?([A-Za-z\u00b5\u03bc\u03a9]{1,20})\Z")
_NUMBER_IN_FRONT: Final = lazy_pattern(r"(?:(?<![\w.,:/-])|\A)[0-9]{1,3}[^\S\n]\Z")
ACCOUNT: Final = (
    r"(?<![\w.,-])(?:[A-Z]{2}[0-9]{2}(?: [0-9A-Z]{4}){2,7}(?: [0-9A-Z]{1,4})?"
    r"|\+[0-9]{1,3}(?:[ /-]\(?[0-9]{2,12}\)?){2,6})(?!\w)"
)
"""The number of an account or a telephone in groups, of which none is an amount."""


def changed_before(text: str, start: int, digits: int) -> bool:
    """Whether what stands in front makes an amount another one: a minus in words, a denial, a root, a scale."""
    return (
        _NEGATED.search(text, max(start - 10, 0), start) is not None
        or _SCALED_BEFORE.search(text, max(digits - 24, 0), digits) is not None
        or denied_before(text, start)
    )


def guessed(text: str, start: int, end: int) -> bool:
    """Whether an amount is only a guess at another one: ``about 80 EUR``, ``80 EUR or so``."""
    front = _GUESSED_BEFORE.search(text, max(start - 40, 0), start)
    return front is not None or _GUESSED_BEHIND.match(text, end) is not None


def shared_before(text: str, start: int) -> bool:
    """Whether an amount is what another one is made of: ``half of 10 EUR``."""
    return _SHARED.search(text, max(start - 24, 0), start) is not None


def joined_before(text: str, start: int) -> bool:
    """Whether a number is part of what stands right in front of it: ``Q3``, ``1.2.3``, ``10^5``."""
    return _GLUED_BEFORE.search(text, max(start - 5, 0), start) is not None


def may_be_signed(before: str) -> bool:
    """Whether a minus or a plus behind a character is a sign."""
    return _SIGN_AFTER.search(before) is not None


def joined_behind(text: str, end: int, *, unit: bool) -> bool:
    """Whether a number is part of what stands right behind it; ``$0.75/share`` is an amount with its `unit`."""
    return _GLUED_BEHIND.match(text, end) is not None and not (unit and _PER_UNIT.match(text, end))


def number_goes_on(text: str, end: int, *, money: bool) -> bool:
    """Whether what stands behind a number, or behind an amount of money, makes it another one."""
    return _GOES_ON.match(text, end) is not None or (money and _MONEY_GOES_ON.match(text, end) is not None)


def begins_amount(text: str, start: int, end: int) -> bool:
    """Whether a part of a text begins with a number, whatever signs stand in front of it."""
    return _BEGINS_NUMBER.match(text, start, end) is not None


def quantity_stands_alone(text: str, start: int, end: int) -> bool:
    """Whether an amount with its unit is all of what its line says there.

    It is not where a smaller unit goes on, named or not (``5 ft 10``), where its unit does (``10 N m``), and where a
    number stands right in front of it, which may be its first digits or how many there are (``50 10 mg``).
    """
    if not text[start].isdigit():
        return True
    end -= text[end - 1] == "."
    return not (
        _NUMBER_IN_FRONT.search(text, max(start - 8, 0), start)
        or _unit_goes_on(text, start, end)
        or (_LARGER_UNIT.search(text, max(start, end - 24), end) and _LESS_BEHIND.match(text, end))
    )


def _unit_goes_on(text: str, start: int, end: int) -> bool:
    unit, behind = _UNIT.search(text, max(start, end - 24), end), _NEXT_UNIT.match(text, end + 1)
    return unit is not None and behind is not None and None not in (factors_of(unit[1]), factors_of(behind[0]))


def amount_stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a part of a text that begins or ends with a number is all of its amount.

    It is not where it is bounded (``up to 5 mg``), the end of a range (``5 to 10 mg``), a share or a multiple of it
    (``half of 10 mg``, ``3 tablets of 10 mg``), a rate (``10 mg per kg``) or one of several units (``5 ft 10 in``).
    """
    if begins_amount(text, start, end):
        first = max(start - 40, 0)
        tail = _NUMBER_TAIL.match(text, start) is not None and _SHORT_BEFORE.search(text, first, start) is not None
        if tail or _NUMBER_BEFORE.search(text, first, start):
            return False
        if _SMALLER.match(text[start:end]) and _LARGER_BEFORE.search(text, first, start):
            return False
    if guessed(text, start, end) or (_ENDS_AMOUNT.search(text, start, end) and _AMOUNT_BEHIND.match(text, end)):
        return False
    if not text[end - 1].isdigit():
        return True
    money = text[start].isalpha() or unicodedata.category(text[start]) == "Sc"
    if _NUMBER_BEHIND.match(text, end) or number_goes_on(text, end, money=money):
        return False
    return not (_GROUP_BEHIND.match(text, end) and _SHORT.search(text, max(end - 4, start), end))
