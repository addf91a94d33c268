"""Texts that are meant to do harm: to run code, to take forever, to fill memory, to break a parser."""

from __future__ import annotations

import random

__all__ = ["HOSTILE", "extreme"]

HOSTILE: tuple[str, ...] = (
    "__import__('os').system('true')", "().__class__.__bases__[0].__subclasses__()", "(lambda: 1)()", "x.__class__",
    "[x for x in (1, 2)]", "exec('1')", "eval('1')", "open('a')", "{}['a']", "f'{x}'", "x if y else z", "x := 5", "*x",
    "'a' * 9", "getattr(x, 'y')", "globals()", "x; y", "import os", "9**9**9", "9^9^9^9", "2^2^2^2^2^2", "10^(10^10)",
    "2^6643", "2^6644", "(2^6000)^6000", "2^-6643 + 3^-4000", "(1/3)^4000", "sqrt(2^6642)", "sqrt(-1)", "0^0", "0^-1",
    "1/0", "5 % 0", "5 // 0", "1/(x - x)", "factorial(1000000)", "gamma(5)", "max()", "min(,)", "round(1, 2, 3)",
    "round(1.5, 1e9)", "round(x, 100)", "round(x, -100, half_even)", "round(2, half_up)", "1e999999999", "1e-999999999",
    "1e1000", "1e-1000", "." * 50, "-" * 41 + "1", "((((((((((1))))))))))", "(" * 41 + "1" + ")" * 41, "1 < 2 < 3", "1 == 1 == 1",
    "x = 5", "x == x", "!x", "~5", "5!", "5%", "5 % % 3", "50% * 3", "10% of 50", "a[0]", "[1]", "[[x]]", "{x}", "|x|",
    "\\frac{1}{2}", "\\sqrt{4}", "\\frac{1}{0}", "\\frac" * 20, "\\left(" * 20, "$5 + $6", "\u20ac5 * 3", "1,234 * 2", "max(1,200)",
    "max(1,2,3)", "1,2,3", "12,34", "\u0661\u0662", "\uff11\uff12", "\u00b2", "x\u00b2", "\u221e", "\u03c0", "e^(i*pi)", "NaN", "inf",
    "true", "True + 1", "None", "0x10", "0b11", "1_000", "1j", "007", "1.2.3", "..5", "5..", "1e", "1e+", "e5", "1 000",
    "\0", "\ud800", "\u202e5", "5\u200b5", "%s", "%(x)s", "{0}", "${x}", "`x`", "x\n+\ny", "# 5", "5 # 6", "'''", '"', "\\",
    "12 or 13", "about 12", "12, wait, 13", "~12", "12 = 13", "12 + 7 = 19 = 20", "= 19", "19 =", "12 -> 13",
)  # fmt: skip
"""Short ones, to be changed further."""


def extreme(chance: random.Random) -> str:
    """A long one, near the limits or beyond them."""
    size = chance.choice([40, 400, 2_000, 5_000, 9_900, 20_000])
    ways = (
        lambda: "+".join(["1"] * (size // 2)),
        lambda: "*".join(["9"] * (size // 2)),
        lambda: "+".join(f"1/{chance.randint(2, 10**4)}" for _ in range(size // 7)),
        lambda: "+".join(f"1/{2 * at + 1}" for at in range(size // 6)),
        lambda: "*".join(f"({at}/{at + 1})" for at in range(1, size // 9)),
        lambda: "-" * size + "1",
        lambda: "(" * size + "1" + ")" * size,
        lambda: "(" * 39 + "+".join(["x"] * (size // 2)) + ")" * 39,
        lambda: "9" * size,
        lambda: f"0.{'3' * size}",
        lambda: f"{'7' * 900}*{'7' * 900}//{'3' * 400}",
        lambda: "^".join(["2"] * (size // 2)),
        lambda: f"({'+'.join(['x'] * 20)})^{size}",
        lambda: " " * size + "1" + " " * size,
        lambda: f"max({','.join(['1'] * (size // 2))})",
        lambda: f"min({','.join(f'{chance.randint(1, 99)}/{chance.randint(1, 99)}' for _ in range(size // 8))})",
        lambda: "a" * size,
        lambda: "+".join(f"v{at}" for at in range(size // 6)),
        lambda: "1," + ",".join(["234"] * (size // 4)),
        lambda: "1e" + "9" * size,
        lambda: f"{'1' * 400}.{'1' * 400}e-{size}",
        lambda: "%".join(["7"] * (size // 2)),
        lambda: "//".join([f"{'8' * 999}"] + ["3"] * (size // 3)),
        lambda: "sqrt(" * 39 + "1" + ")" * 39,
        lambda: f"sqrt({'1' * 999})",
        lambda: "round(" * 38 + "1.5" + ")" * 38,
        lambda: "<".join(["1"] * (size // 2)),
        lambda: "\\frac{1}{" * (size // 9) + "2" + "}" * (size // 9),
        lambda: "$" * size,
        lambda: "1 " * (size // 2),
        lambda: "".join(chance.choice("0123456789+-*/^%(),. ") for _ in range(size)),
        lambda: "".join(chr(chance.randrange(1, 0x11000)) for _ in range(size)),
        lambda: "*".join(f"(1/3+{at})" for at in range(size // 9)),
        lambda: f"(1/{'7' * 300} + 1/{'9' * 301}) * " * 3 + "1",
        lambda: f"2^{chance.randint(6000, 7000)} % {chance.randint(2, 10**6)}",
    )
    return chance.choice(ways)()
