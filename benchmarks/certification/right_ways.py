"""The many ways in which models write right steps.

A way gives the entry of a step, or None where it does not apply. It is made from the truth and from how an expression
is shown, so what it says is right by construction. `REFUSED_WAYS` are ways that a person would understand and that the
package refuses by its documentation; they are counted apart.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from certification.cases import Case
from certification.looks import Look, show
from certification.truth import Bin, Cmp, Lit, number_text

__all__ = ["REFUSED_WAYS", "RIGHT_WAYS", "right_way"]

Way = Callable[[Case], object]
RIGHT_WAYS: dict[str, Way] = {}
"""Ways that must pass."""
REFUSED_WAYS: dict[str, Way] = {}
"""Ways that are refused, and where that is said."""


def right_way(name: str, *, refused: bool = False) -> Callable[[Way], Way]:
    """Register a way of writing."""

    def register(way: Way) -> Way:
        ways = REFUSED_WAYS if refused else RIGHT_WAYS
        assert name not in ways
        ways[name] = way
        return way

    return register


def _grouped(value: Fraction, inside: bool, comma: str = ",") -> str:
    text = number_text(value)
    if inside or "/" in text:
        return text
    whole, point, part = text.partition(".")
    return f"{int(whole):,}".replace(",", comma) + point + part if whole not in ("-0", "0") else text


def _looks(name: str, look: Look, needs: str = "") -> None:
    """Register a look of the working; `needs` is what the working must hold for it to make a difference."""

    @right_way(name)
    def way(case: Case) -> object:
        plain, shown = case.work(), case.work(look)
        if plain is None or shown is None or shown == plain or (needs and needs not in plain):
            return None
        return f"{shown} = {case.plain}"


_looks("no blanks", Look(blank=""))
_looks("wide blanks", Look(blank="   "))
_looks("signs of print", Look(signs={"*": "\u00d7", "-": "\u2212", "/": "\u00f7"}))
_looks("middle dots", Look(signs={"*": "\u00b7"}))
_looks("dot operators", Look(signs={"*": "\u22c5", "-": "\u2013"}))
_looks("stars for powers", Look(signs={"^": "**"}))
_looks("mod", Look(signs={"%": "mod"}))
_looks("signs of comparison", Look(signs={"<=": "\u2264", ">=": "\u2265", "!=": "\u2260"}))
_looks("bare negatives", Look(bare=True))
_looks("brackets around numbers", Look(boxed=True))
_looks("square brackets", Look(brackets=("[", "]")))
_looks("names as working", Look(names=True))
_looks("LaTeX operators", Look(signs={"*": "\\times", "/": "\\div", "%": "\\bmod"}))
_looks("LaTeX dots", Look(signs={"*": "\\cdot"}))
_looks("LaTeX fractions", Look(latex=True, signs={"*": "\\cdot"}), "/")
_looks("LaTeX brackets", Look(brackets=("\\left(", "\\right)"), signs={"*": "\\times"}))
_looks("grouped operands", Look(leaf=_grouped))
_looks("trailing zeros of operands", Look(leaf=lambda value, inside: _zeros(value)))


def _zeros(value: Fraction) -> str:
    """Zeros behind a number; three places are left out, since a point before three digits may group thousands."""
    text = number_text(value)
    if "/" in text:
        return text
    whole, _, places = text.partition(".")
    return f"{whole}.{places}{'00' if len(places) == 2 else '0'}"


@right_way("plain")
def _plain(case: Case) -> object:
    return case.right()


@right_way("variables first")
def _variables(case: Case) -> object:
    work = case.work()
    return None if work is None else f"{case.work(Look(names=True))} = {work} = {case.plain}"


@right_way("the step's name first")
def _named(case: Case) -> object:
    entry = case.right()
    return f"{case.made.id} = {entry}" if isinstance(entry, str) and case.made.work else None


@right_way("the step's name and its formula first")
def _named_formula(case: Case) -> object:
    work = case.work()
    return None if work is None else f"{case.made.id} = {case.work(Look(names=True))} = {work} = {case.plain}"


@right_way("the step's name and a colon")
def _colon(case: Case) -> object:
    entry = case.right()
    return f"{case.made.id}: {entry}" if isinstance(entry, str) and case.made.work and case.spec.numeric else None


@right_way("no blanks around the equals sign")
def _tight(case: Case) -> object:
    work = case.work()
    return None if work is None or isinstance(case.made.tree, Cmp) else f"{work}={case.plain}"


def _around(name: str, left: str, right: str) -> None:
    @right_way(name)
    def way(case: Case) -> object:
        entry = case.right()
        return f"{left}{entry}{right}" if isinstance(entry, str) and case.work() is not None else None


_around("bold", "**", "**")
_around("code", "`", "`")
_around("inline LaTeX", "\\( ", " \\)")
_around("displayed LaTeX", "\\[", "\\]")
_around("dollars around it", "$", "$")
_around("two dollars around it", "$$", "$$")
_around("blanks around it", "  ", " ")


@right_way("a line break behind it")
def _broken(case: Case) -> object:
    entry = case.right()
    # A text that is copied is verbatim.
    return f"{entry}\n" if isinstance(entry, str) and case.spec.kind != "text" else None


# The value


def _value(name: str, write: Callable[[Case, Fraction], str | None], *, refused: bool = False) -> None:
    """Register a way of writing the number that a step has come to; `write` gets what is shown of it."""

    @right_way(name, refused=refused)
    def way(case: Case) -> object:
        number = case.number
        if number is None:
            return None
        percent = case.spec.kind == "percent"
        text = write(case, number * 100 if percent else number)
        return None if text is None else case.with_work(case.work(), f"{text}%" if percent else text)


def _finite(text: str) -> str | None:
    return None if "/" in text else text


_value("a plus in front", lambda case, number: f"+{number_text(number)}" if number > 0 else None)
_value("a typographic minus", lambda case, number: number_text(number).replace("-", "\u2212") if number < 0 else None)
_value("grouped value", lambda case, number: _grouped(number, False) if abs(number) >= 1000 else None)
_value("thin blanks between thousands", lambda case, number: _spaced(number, "\u2009"))
_value("no-break blanks between thousands", lambda case, number: _spaced(number, "\u202f"))
_value("zeros behind", lambda case, number: _zeros(number) if _finite(number_text(number)) else None)
_value("many zeros behind", lambda case, number: f"{_zeros(number)}000" if _finite(number_text(number)) else None)
_value("as few places as possible", lambda case, number: number_text(number) if "." in case.plain else None)
_value("a point behind", lambda case, number: f"{number_text(number)}." if number.denominator == 1 else None)
_value(
    "a fraction", lambda case, number: f"{number.numerator}/{number.denominator}" if number.denominator > 1 else None
)
_value("a fraction not reduced", lambda case, number: f"{number.numerator * 3}/{number.denominator * 3}")
_value("a mixed number", lambda case, number: _mixed(number))
_value("a fraction of LaTeX", lambda case, number: _latex_fraction(number))
_value("a power of ten", lambda case, number: _scientific(number, "e"))
_value("a power of ten with a capital", lambda case, number: _scientific(number, "E+"))
_value("times a power of ten", lambda case, number: _scientific(number, " x 10^"))
_value("zero in front left out", lambda case, number: _no_zero(number))


def _marked_up(name: str, mark: str) -> None:
    @right_way(name)
    def way(case: Case) -> object:
        return None if case.number is None else case.with_work(case.work(), f"{mark}{case.plain}{mark}")


_marked_up("bold value", "**")
_marked_up("value as code", "`")


def _spaced(number: Fraction, blank: str) -> str | None:
    text = number_text(number)
    return None if "/" in text or abs(number) < 1000 else _grouped(number, False, blank)


def _no_zero(number: Fraction) -> str | None:
    text = number_text(number)
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else None


def _mixed(number: Fraction) -> str | None:
    whole, rest = divmod(abs(number.numerator), number.denominator)
    if not whole or number.denominator == 1 or len(str(rest)) == 3:
        return None
    return f"{'-' * (number < 0)}{whole} {rest}/{number.denominator}"


def _latex_fraction(number: Fraction) -> str | None:
    if number.denominator == 1:
        return None
    return f"{'-' * (number < 0)}\\frac{{{abs(number.numerator)}}}{{{number.denominator}}}"


def _scientific(number: Fraction, sign: str) -> str | None:
    text = number_text(number)
    if "/" in text or number == 0:
        return None
    digits = text.lstrip("-").replace(".", "").lstrip("0")
    exponent = 0
    while abs(number) >= Fraction(10) ** (exponent + 1):
        exponent += 1
    if abs(number) < 1 or len(digits) < 2:
        return None
    return f"{'-' * (number < 0)}{digits[0]}.{digits[1:]}{sign}{exponent}"


# Percentages and money


@right_way("a percentage without its sign")
def _unsigned(case: Case) -> object:
    return case.with_work(case.work(), case.plain[:-1]) if case.spec.kind == "percent" else None


@right_way("a percent sign behind a blank")
def _blank_percent(case: Case) -> object:
    return case.with_work(case.work(), f"{case.plain[:-1]} %") if case.spec.kind == "percent" else None


@right_way("percent in a word")
def _percent_word(case: Case) -> object:
    return case.with_work(case.work(), f"{case.plain[:-1]} percent") if case.spec.kind == "percent" else None


@right_way("a percent sign of LaTeX")
def _latex_percent(case: Case) -> object:
    return case.with_work(case.work(), f"{case.plain[:-1]}\\%") if case.spec.kind == "percent" else None


@right_way("a hundred times as much")
def _hundred(case: Case) -> object:
    tree = case.made.tree
    if case.spec.kind != "percent" or tree is None or case.work() is None:
        return None
    return f"{show(Bin('*', tree, Lit(Fraction(100))), case.state)} = {case.plain}"


_MARKS = {
    "USD": ("$", "US$"),
    "EUR": ("\u20ac", "\u20ac "),
    "GBP": ("\u00a3", "\u00a3"),
    "JPY": ("\u00a5", "\u00a5"),
    "KWD": ("KWD ", "KWD"),
}


def _currency(name: str, write: Callable[[str, str], str]) -> None:
    @right_way(name)
    def way(case: Case) -> object:
        if case.spec.kind != "money":
            return None
        sign = "-" if case.plain.startswith("-") else ""
        mark = case.chance.choice(_MARKS[case.spec.currency])
        return case.with_work(case.work(), sign + write(case.plain.lstrip("-"), mark))


_currency("a currency sign in front", lambda text, mark: f"{mark}{text}")
_currency("a currency sign and a blank", lambda text, mark: f"{mark.strip()} {text}")


@right_way("a currency code behind")
def _code(case: Case) -> object:
    return case.with_work(case.work(), f"{case.plain} {case.spec.currency}") if case.spec.kind == "money" else None


@right_way("currency signs in the working")
def _marked(case: Case) -> object:
    if case.spec.kind != "money" or case.work() is None:
        return None
    mark = _MARKS[case.spec.currency][0]

    def leaf(value: Fraction, inside: bool) -> str:
        text = number_text(value)
        return text if "/" in text else f"{'-' * text.startswith('-')}{mark}{text.lstrip('-')}"

    return f"{case.work(Look(leaf=leaf))} = {case.plain}"


# Fields


@right_way("a number of JSON's own")
def _bare(case: Case) -> object:
    number = case.number
    if number is None or case.work() is not None or case.spec.kind == "percent":
        return None
    text = number_text(number)
    value: object = int(text) if number.denominator == 1 else float(text) if "." in text and len(text) < 12 else None
    return None if value is None else case.with_work(None, value)


@right_way("a truth value of JSON's own")
def _json_truth(case: Case) -> object:
    truth = case.made.truth
    return case.with_work(None, truth) if isinstance(truth, bool) and case.work() is None else None


@right_way("a capital letter")
def _capital(case: Case) -> object:
    if isinstance(case.made.truth, bool) or case.spec.options:
        return case.with_work(case.work(), case.chance.choice([case.plain.capitalize(), case.plain.upper()]))
    return None


@right_way("quotes or a full stop around a choice")
def _quoted(case: Case) -> object:
    if not (isinstance(case.made.truth, bool) or case.spec.options):
        return None
    ways = (f'"{case.plain}"', f"{case.plain}.", f"'{case.plain}'", f"**{case.plain}**", f" {case.plain} ")
    return case.with_work(case.work(), case.chance.choice(ways))


@right_way("an entry encoded twice")
def _encoded(case: Case) -> object:
    if case.made.tree is not None:
        return None
    import json

    return json.dumps(case.right())


@right_way("an arrow to the result")
def _arrow(case: Case) -> object:
    work = case.work()
    return None if work is None else f"{work} {case.chance.choice(['->', chr(0x2192), '=>'])} {case.plain}"


@right_way("a verb of equality before the result")
def _verb(case: Case) -> object:
    work = case.work()
    return None if work is None else f"{work} {case.chance.choice(['is', 'equals', 'gives', 'ergibt'])} {case.plain}"


@right_way("a tick or a word that affirms behind the result")
def _affirmed(case: Case) -> object:
    work = case.work()
    said = case.chance.choice([" \u2713", " \u2705", " (verified)", " (correct)"])
    return None if work is None else f"{work} = {case.plain}{said}"


# Understood by a person, and refused by the package: each says where its documentation refuses it.


@right_way("no working (the working is asked for)", refused=True)
def _no_working(case: Case) -> object:
    return None if case.work() is None else case.plain


_value(
    "a decimal comma (refused unless the format has decimal=',')",
    lambda case, number: number_text(number).replace(".", ",") if "." in number_text(number) else None,
    refused=True,
)
_value("thousands by ordinary blanks (two numbers, or one)", lambda case, number: _spaced(number, " "), refused=True)
_value("a unit of measure (no unit is declared)", lambda case, number: f"{number_text(number)} km", refused=True)


@right_way("a multiplication without its sign (always written)", refused=True)
def _juxtaposed(case: Case) -> object:
    tree = case.made.tree
    if not isinstance(tree, Bin) or tree.operator != "*" or case.work() is None:
        return None
    return f"({show(tree.left, case.state)})({show(tree.right, case.state)}) = {case.plain}"


@right_way("the product of two terms multiplied out (other working)", refused=True)
def _multiplied(case: Case) -> object:
    tree = case.made.tree
    if not isinstance(tree, Bin) or tree.operator != "*" or not isinstance(tree.left, Bin) or case.work() is None:
        return None
    if tree.left.operator not in "+-":
        return None
    if show(tree.right, case.state) == "1":
        return None  # a factor of one changes nothing
    text = show(
        Bin(tree.left.operator, Bin("*", tree.left.left, tree.right), Bin("*", tree.left.right, tree.right)), case.state
    )
    return f"{text} = {case.plain}"


@right_way("a letter x for times")
def _cross(case: Case) -> object:
    return None if "x" in case.made.step.reads else _crossed(case)


@right_way("a letter x for times, where a variable is called so (two readings)", refused=True)
def _ambiguous_cross(case: Case) -> object:
    return _crossed(case) if "x" in case.made.step.reads else None


def _crossed(case: Case) -> object:
    plain, shown = case.work(), case.work(Look(signs={"*": "x"}))
    return None if plain is None or shown is None or shown == plain else f"{shown} = {case.plain}"


@right_way("a colon for a division")
def _colon_division(case: Case) -> object:
    plain, shown = case.work(), case.work(Look(signs={"/": ":"}))
    return None if plain is None or shown is None or shown == plain else f"{shown} = {case.plain}"


@right_way("the result first (the value is the last side)", refused=True)
def _result_first(case: Case) -> object:
    tree = case.made.tree
    if not isinstance(tree, Bin) or tree.operator == "/" or case.work() is None:
        return None  # a quotient of two numbers is a value too
    return f"{case.plain} = {case.work()}"


@right_way("a remark behind the result that says more of it (the value stands alone)", refused=True)
def _remark(case: Case) -> object:
    work = case.work()
    return None if work is None else f"{work} = {case.plain}{case.chance.choice([' (estimated)', ';', ' exactly'])}"
