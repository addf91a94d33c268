"""Words by which a writer says that something is another's, or no claim at all: ``Hint: 42``, ``42 (from the book)``.

One reader for labels and clauses in front and for remarks behind, in transcripts and around the answer of a reply.
"""

from __future__ import annotations

import re
from typing import Final

from stepguard.core.patterns import lazy_pattern

_TEXT: Final = (
    r"(?:book|textbook|(?:answer |solution )?key|internet|web(?:site|page)?|forum|google|wikipedia|chatgpt|gpt\S{0,9}"
    r"|manual|handout|lecture|slides|hint|example|solution (?:manual|sheet|key)|sample solution|model answer"
    r"|cheat ?sheet"
    r"|[^\W\d_]{2,20}['\u2019]s? (?:notes|book|answers?|solutions?|work|homework|paper))"
)
_PERSON: Final = r"(?:teacher|tutor|professor|instructor|grader|reviewer)"
_SPEAKER: Final = (
    rf"(?:they|he|she|you|some(?:body|one)|others?|people|{_PERSON}|{_TEXT}"
    r"|friends?|classmates?|neighbou?rs?|colleagues?|students?|customers?|clients?|users?|critics)"
)
_THE: Final = r"(?:(?:the|an?|my|his|her|their|some) )?(?:[^\W\d_]{1,15} )?"
_CLAIM: Final = (
    r"(?:final )?(?:answers?|values?|results?|solutions?|outputs?|responses?|claims?|guess|attempt|version"
    r"|work(?:ing)?)"
)
_OWNER: Final = (
    r"(?:your|his|her|their"
    r"|(?!(?:it|that|here|there|let|what|today|this|where|who)['\u2019])[^\W\d_]{2,20}(?:['\u2019]s|s['\u2019]))"
)
_NO_CLAIM: Final = (
    r"(?:q|question|input|prompt|user|human|customer|system|to-?do|hint|clue|tip|(?:(?:my|best|rough|first"
    r"|educated) )*(?:guess|estimate|draft)|prediction|goal"
    r"|suggestion"
    r"|placeholder|template|sample|bad|source|quote|quotation|citation|claim|myth|counter-?example|proposal|candidate"
    r"|(?:option|choice) [a-z0-9]|suggested|proposed|predicted|guessed|estimated|tentative|provisional|possible"
    r"|alternative|hypothetical|(?:common )?(?:mistake|misconception|pitfall)|fallacy)"
)
_FALSE: Final = r"(?:wrong|incorrect|untrue|invalid|fallacious|not (?:correct|right|true|valid))"
_LABELLED: Final = lazy_pattern(
    r"(?:^|[.!?;,(\n|>]) *(?:[-+*\u2022] )?[*_]{0,2}(?:(?:the|an?|one|another|my) ){0,3}(?:"
    r"(?:expected|reference|target|desired|ground truth|gold(?: standard)?|official|old|outdated|musterl\u00f6sung"
    r"|erwartet|attendu|esperado|\u671f\u671b|\u9884\u671f|answer key|solution key|model answer|textbook|for example"
    r"|example|e\.g\.)[^:\n]{0,24}"
    rf"|{_NO_CLAIM}(?: {_CLAIM})?|(?:student|pupil|classmate|participant|friend|colleague)"
    rf"(?: (?:[a-z]|[0-9]{{1,2}}|one|two|three))?|{_OWNER} (?:own )?{_CLAIM}"
    rf"|(?:{_PERSON}|{_TEXT})(?: (?!value|result|work){_CLAIM})?"
    rf"|(?:[^:.!?;\n]{{0,20}}\b(?:{_CLAIM}|taken|copied|quoted|says|said|given|stated) )?(?:from|per|by|in) "
    rf"{_THE}(?:{_PERSON}|{_TEXT})"
    rf"|(?:[^:.!?;\n]{{1,20}} )?{_FALSE}\b[^:.!?;\n]{{0,20}}"
    r")[*_]{0,2} ?:[*_]{0,2} *(?:the )?\Z",
    re.IGNORECASE,
)
_NAMES: Final = (
    "ada|adam|ahmed|alan|albert|alex|ali|alice|amir|amy|ana|andrea|andrew|andy|angela|ann|anna|anne|arthur|ben|bernd"
    "|bob|brian|carl|carla|carlos|carol|charles|charlie|chen|chloe|chris|claire|clara|daniel|dave|david|diana|diego"
    "|ed|elena|eli|ella|emil|emily|emma|eric|erik|erin|eva|eve|fatima|felix|finn|frank|fred|george|greg|hana|hannah|hans"
    "|harry|helen|henry|hugo|ian|ivan|jack|jacob|james|jane|jean|jens|jim|joe|john|jonas|jose|jos\u00e9|juan|judy"
    "|julia|karen|karl|kate|kevin|kim|laura|lee|lena|leo|li|liam|lily|linda|lisa|lucas|lucy|luis|luke|maria|marie|mario"
    "|martin|mary|matt|maya|mei|mia|mike|mohammed|nina|noah|olga|oliver|olivia|omar|oscar|pablo|pat|paul|pedro"
    "|peggy|peter|pierre|priya|rachel|raj|ravi|rob|robert|rosa|sally|sam|sara|sarah|sofia|sophie|steve|susan|sven|tim"
    "|tom|tony|trent|victor|walter|wei|yuki|zoe|j\u00fcrgen|claude|gemini|chatgpt|gpt-?[0-9][\\w.]{0,6}|llama|mistral"
    "|qwen|deepseek|grok|copilot|siri|alexa"
)
"""Given names, as a line that quotes a conversation begins with them."""
_TALKING: Final = (
    rf"(?:(?:mr|mrs|ms|dr|prof)\.? [^\W\d_]{{2,20}}|(?:{_NAMES})(?: [^\W\d_]{{1,20}}\.?)?|@\w{{2,20}}"
    r"|(?:(?:ai )?assistant|agent|model|bot|llm|speaker|player|person|participant|candidate|caller|guest|solver|expert)"
    r" (?:[a-z]|[0-9]{1,2}|one|two|three))(?: ?[(\[][^()\[\]\n]{1,20}[)\]])?"
)
_SPOKEN: Final = lazy_pattern(
    rf"(?:^|[.!?;>|\n]) *(?:[-+*\u2022] )?(?:[(\[]?[0-9][0-9:. apm]{{1,12}}[)\]]? *(?:- )?)?[*_]{{0,2}}{_TALKING}"
    r"[*_ ]{0,4}:[*_]{0,2} *(?:(?:so|the|my|our|final) ){0,3}\Z",
    re.IGNORECASE,
)
_SPEECH: Final = lazy_pattern(
    rf"\b{_SPEAKER}(?: (?:sometimes|often|always|usually|also|may|might|once))?"
    r" (?:say|says|said|claims?|claimed|wrote|writes?|thinks?|thought|states?|stated|suggests?|suggested"
    r"|believes?)(?: that)?[,:]?(?: the| my| an?)? *\Z"
    rf"|\b(?:they|he|she|{_PERSON}|{_TEXT}|friend|neighbou?r|some(?:body|one)|others?)"
    r" (?:gets?|got|gives|gave|has|had|was|is)(?: that)?(?: the| my| an?)? *\Z"
    r"|\b(?!(?:i|we|it|that|which|this|formula|step|rule|procedure|instruction|text)\b)\w{2,30}"
    r" (?:wrote|says?|said|claims|claimed)(?: that)?[,:]?(?: the| my| an?)? *\Z"
    r"|\baccording to (?!(?:the |our |this |these )?(?:formulas?|rules?|procedures?|instructions?|steps?|order|above"
    r"|definitions?|task|recipe|text)\b)[^,:\n]{1,30}[,:](?: the| my| an?)? *\Z"
    rf"|(?:^|[.!?;:\n]) *as {_THE}{_SPEAKER} [^,:.!?\n]{{1,15}}, *\Z"
    rf"|(?:^|[.!?;:\n]) *(?:from|per|in) {_THE}(?:{_TEXT}|(?<=old )[^\W\d_]{{2,12}}), *\Z"
    r"|\b(?:previously|formerly|originally|incorrectly|wrongly|falsely|mistakenly|hypothetically|allegedly|supposedly"
    r"|reportedly),? *\Z|\bcommon mistakes? (?:is|was|would be) *\Z"
    r"|(?:^|[.!?;:\n]) *(?:had|were) [^,:.!?\n]{1,30}, *\Z"
    r"|\bif [^,.;!?\n]{1,30} (?:were|was|had)\b[^,.;!?\n]{0,20},(?: then)? *\Z"
    r"|\b(?:old|previous|former|outdated)(?: value (?:of|for))? *\Z"
    r"|\b(?:e\.g\.|for (?:example|instance)),? *\Z"
    r"|\b(?:was|were|been) (?:told|informed|promised|assured)(?: that)? *\Z",
    re.IGNORECASE,
)
_REMARK: Final = lazy_pattern(
    r"[^\w\n]{0,6}(?:as |is |was |(?:it|value|number|result) (?:is |was )?)?(?:"
    r"(?:copied|quoted|taken|cited|borrowed|given|stated|printed|claimed|shown|reported|found|read|looked up)"
    rf" (?:straight )?(?:from|per|by|in|on|off) {_THE}(?:{_SPEAKER}|{_TEXT})\b"
    r"|i (?:guess|suppose)\b|at a guess\b|as an? (?:rough |first )?(?:placeholder|guess|estimate|draft|example)\b"
    rf"|according to {_THE}(?:{_SPEAKER}|{_TEXT})\b|from {_THE}{_TEXT}\b"
    rf"|(?:what |so )?{_THE}{_SPEAKER} (?:says?|said|claims?|states?|wrote)\b"
    rf"|(?:says?|said|claims?|wrote) (?:{_THE}{_SPEAKER}\b|(?-i:(?!Step|Formula|Rule)[A-Z][a-z]{{1,20}}\b))"
    r"|source ?:)"
    rf"|[^\w\n]{{0,4}}[(\[,;\u2014\u2013-] ?(?:from|per) (?:the|an?|my|his|her"
    rf"|their) (?:[^\W\d_]{{1,15}} )?{_SPEAKER}\b"
    r"|[^\w\n]{0,4}[(\[]by (?-i:[A-Z])[^()\[\]\n]{0,20}[)\]]|[^\w\n]{0,3}for the sake of argument\b"
    r"|[^\w\n]{0,4}[(\[] ?(?:(?:an?|the|just|only|not|my|rough) )*"
    r"(?:copied|quoted|cited|borrowed|hint|theirs|his|hers|yours|guess|guessed|placeholder|not mine|not my own|made up"
    r"|invented|old|outdated|unverified|example|sample|draft|to be checked)"
    r"(?: (?:one|box|value|answer|result))?[)\],;]",
    re.IGNORECASE,
)
_ANOTHER: Final = lazy_pattern(
    r"\b(?:no|previous|old|earlier|former|outdated|original|initial|first|suggested|proposed|sample|example|template"
    rf"|possible|tentative|provisional|candidate|alternative|hypothetical|guessed|estimated|predicted"
    rf"|{_OWNER}(?: (?:own|last|first|boxed))?)[\s*_]*\Z",
    re.IGNORECASE,
)

_HOLDER: Final = (
    r"(?:box(?:ed (?:answer|value|number|result))?|numbers?|tags?|(?:final )?(?:answer|value|result|solution|guess))"
)
# "the box of the student" is not the answer of the one who writes.
_BOXED_BY_ANOTHER: Final = lazy_pattern(
    rf"(?:\b{_OWNER}(?: (?:own|final|last|first|boxed))? {_HOLDER}|\b{_HOLDER} (?:of|by|from) {_THE}{_SPEAKER}"
    rf"|\b(?:theirs|hers|yours|his)|\bnot (?:my|our|the|an?) (?:final )?{_HOLDER})"
    r"[\s*_$]*(?:[:=\uff1a]|(?:is|was|says|said|reads|contains|holds|shows|goes)\b)?[\s*_$:]*\Z"
    rf"|\bin(?:to)? {_OWNER} {_HOLDER}\b[^.!?\n]{{0,20}}\Z"
    r"|(?:\be\.g\.|\bfor (?:example|instance)|\bsuch as|\blike(?: this| so)?|\b(?:format|template|syntax|sample)"
    r"|(?:^|[.!?;:\n] *)(?:please )?(?:write|put|give|return|enclose|box|state)"
    r" (?:it|that|this|(?:your|the) [^.:\n]{1,30}?) (?:as|like|in the form))[\s*_$]*[,:]?[\s*_$]*\Z"
    r"|(?:\bnot|n['\u2019]t) (?:box|answer|write|say|give|put)\b[^.!?;\n]{0,12}\Z",
    re.IGNORECASE,
)


_OTHER_HEADS: Final = frozenset((
    "expected", "reference", "previous", "earlier", "former", "prior", "before", "correct", "target", "theirs",
    "their", "key", "gold", "truth", "official", "desired", "true", "right", "wrong", "should", "teacher",
    "theoretical", "ideal", "book", "textbook", "check", "checks", "checked", "checking", "verification", "verify",
    "proof", "test", "inverse", "reverse", "control", "crosscheck", "cross-check", "sanity", "note", "notes",
    "comment", "comments", "remark", "remarks", "status", "ok",
))  # fmt: skip
"""What heads a column that holds another's values, or no step's."""


def attributed_before(said: str) -> bool:
    """Whether a label or a clause right in front of a claim says that it is another's, or none.

    Args:
        said: what stands in front, as far as it matters.
    """
    return any(pattern.search(said) is not None for pattern in (_LABELLED, _SPOKEN, _SPEECH))


def attributed_after(behind: str) -> bool:
    """Whether the remark right behind a claim says whose it is instead of the writer's, or that it is none."""
    return _REMARK.match(behind) is not None


def another_answer(said: str) -> bool:
    """Whether the words right in front of the word "answer" say that it is another one: ``Your answer: 52``."""
    return _ANOTHER.search(said) is not None


def another_box(said: str) -> bool:
    """Whether the words right in front of a box or a tag say that another fills it, or how: ``Your box:``, ``like``."""
    return _BOXED_BY_ANOTHER.search(said) is not None


def heads_another(head: str) -> bool:
    """Whether the head of a column, or a key, says that what is below it is another's or no step's: ``expected``."""
    words = re.findall(r"[^\W_]+(?:-[^\W_]+)*", head.lower())
    return (
        not _OTHER_HEADS.isdisjoint(words) or attributed_before(f"{' '.join(words)}:") or attributed_before(f"{head}:")
    )
