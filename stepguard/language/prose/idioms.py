"""Phrases that say otherwise than their words do: those that leave a claim as it is, and those that take it away.

They are looked for before single words, which `stepguard.language.prose.lexicon` knows: what no phrase covers is judged
by its words.
"""

from __future__ import annotations

import re
from typing import Final

from stepguard.core.patterns import lazy_pattern

REFUSED: Final = lazy_pattern(
    r"\b(?:not|no|never|cannot|nor|neither|none|nobody|wrong|incorrect|false|untrue|if|unless|whether|maybe|perhaps"
    r"|expected|else|or|other|old|previous|example|guess\w*|say|says|said|claim(?:s|ed)|wrote)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
"""What no word of a procedure makes understood."""
IDIOMS: Final = lazy_pattern(
    r"(?<!\w)(?=[a-z])(?:\bthere(?: is|['\u2019]s) no doubt(?: that)?\b|\bno doubt(?: that)?,?|\bnot (?:bad|only"
    r"|markdown|text|prose)\b|\bnot -?[0-9][0-9.,]*(?![0-9.,]*[0-9%])|\bit should be noted(?: that)?"
    r"|\bas in the example\b|\bhere you (?:go|are)\b|\b(?:as )?you (?:asked|requested|specified|wanted|need|can see"
    r"|see|gave me)(?: for| me)?\b|\b(?:you )?end(?:s|ed|ing)? up with\b|\bleav(?:es?|ing) (?:us|you|them|him"
    r"|her) with\b|\byou (?:(?:will|can) )?(?:get|obtain|find|multiply|add|subtract|divide)\b|\byour (?:instructions"
    r"|request|format|procedure|inputs|details)\b|\bbreak(?:ing)? (?:\w+ ){1,2}down\b|\bno (?:further |more |other "
    r"|unit )?(?:step|rounding|conversion|adjustment|remainder)s?\b(?: (?:was |were |is |are )?(?:needed|necessary"
    r"|required|applied|left))?|\bif you(?:['\u2019]d| would) like(?: (?:more|further))?\b|\bin accordance with\b"
    r"|\bformat json\b|\bin the prompt\b|\bwith (?:the )?keys\b|\becco il?\b|\bpre-(?=[a-z])|\b(?:json|requested"
    r"|required) format\b|\bformatted as\b|\b(?:here(?:['\u2019]s| is)|this is) the (?:corrected|correct|revised"
    r"|fixed) (?:json|object|output|response|reply)\b(?! below)|\blet(?:['\u2019]s| us| me)?\b|\bso far\b"
    r"|\bas expected\b|\b(?:as in|in|with|filled in|following|per) (?:the|this|your)? ?(?:requested |required |given "
    r"|same )?(?:format|template|schema)\b|\b(?:sorry|apologies) for the (?:confusion|delay|inconvenience|wait)\b"
    r"|\bstep by step\b|\bi (?:think|believe)(?: that)?\b|\bplease wait(?: while i \w+)?\b"
    r"|\baccording to the (?:formulas?|rules?|procedures?|instructions?|steps?|order|definitions?)\b"
    r"|\b(?:there is )?nothing (?:is )?wrong\b(?: with (?:it|that|them))?)|(?=[\u4e00-\u9fff])(?:\u4ee5\u4e0b"
    r"|\u5982\u4e0b|\u7ed3\u679c|\u7d50\u679c|\u7b54\u6848|\u8ba1\u7b97|\u8a08\u7b97|\u6240\u4ee5|\u56e0\u6b64"
    r"|\u6700[\u7ec8\u7d42\u540e\u5f8c]|\u9996\u5148|\u597d\u7684|\u6839\u636e|\u7ed9\u5b9a|\u8f93[\u5165\u51fa]"
    r"|\u516c\u5f0f|\u6b65[\u9aa4\u9a5f]?|"
    r"[\u662f\u4e3a\u70ba\u7684\u5f97\u5230\u503c\u7b2c\u4e00\u4e8c\u4e09\u56db\u4e94])",
    re.IGNORECASE,
)
"""Phrases that are understood though not all of their words are."""
TURNING: Final = lazy_pattern(
    r"(?<!\w)(?=[a-z])(?:\b(?:k|m|tsd|mio|mn|bn)\.? ?(?:eur|usd|gbp|chf|euros?|dollars?)\b|(?<![0-9 ] )\bpercentages\b"
    r"|\bto (?:be )?(?:check|confirm|verif)(?:y|ed|ied)?\b(?!:)|\bn/a\b|\b(?:still )?to do\b|\bat first\b|\bfor now\b"
    r"|\bmake sure\b|\bused to be\b|\brul(?:es?|ed|ing) out\b|\bin place of\b|\bwhat is\W*\Z|\bwas once\b|\b(?:up to"
    r"|around)\W*\Z|\b(?:problem|task|question) (?:gives|has|shows|lists)\b|\bgiven (?:answers?|results?|solutions?"
    r"|value)\b|\badd(?:s|ed|ing)? [\w ]{1,30} to\W*\Z|\bcheck(?:s|ing)? (?:this|it|that|the|again|me|my)\b"
    r"|\blast (?:year|quarter|month|week|night|time)\b|\boff by\b|\bgrain of salt\b|\bmade[ -](?:\w+ )?up\b|\b(?:take"
    r"|took|taken)(?: \w+)? back\b|\bwhy not\b)",
    re.IGNORECASE,
)
"""Phrases that are none of the writer's own though all of their words are understood."""
SIGN: Final = lazy_pattern(
    r"!=|[-+*]=(?!=)|//|/\*|;-?\)|:-?\((?!\S)|(?<!-)--(?!-)|~(?![0-9])|[^\w\s~.,:'\u2019\"`*()\[\]{}"
    r"|>=+\-\u2212\u2013\u2014/^<\u2264\u2265%$\u20ac\u00a3\u00a5#&@\u00d7\u00f7\u00b7\u00b2\u00b3\u2248\u2190-\u21ff"
    r"\u2022\u25aa\u25b6\u25b8\u25cf\u25e6\u2705\u2611\u2713\u2714\u27a1\u27a4\u27f6\u2728\u3001\u3002\uff0c\uff08"
    r"\uff09\U0001f389\U0001f3af\U0001f449\U0001f44d\U0001f4a1\U0001f4ca\U0001f4cb\U0001f4cc\U0001f4dd\U0001f522"
    r"\U0001f538\U0001f539\U0001f600-\U0001f604\U0001f60a\U0001f680\U0001f9ee\u2160-\u216b\ufe0f\u20e3!;]"
)
"""A sign that is not understood."""
_POINTING: Final = lazy_pattern(
    r"\b(?:next|following) (?:line|value|number|claim|result|answer)s?\b|\bwhat follows\b|\b(?:line|step|value|number"
    r"|claim|result|answer)s? below\b|\bbelow(?=\W*\Z|[*_`\"')]*[.,;:!])|\b(?:following|next) (?:json|object|call"
    r"|output|reply|response|block)\b",
    re.IGNORECASE,
)


def points_below(line: str) -> bool:
    """Whether a line speaks of what stands below it."""
    return _POINTING.search(line) is not None
