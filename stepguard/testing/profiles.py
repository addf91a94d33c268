"""The slips of particular models, for `SimulatedModel(slips=...)` and ``stepguard bench --profile``.

A profile makes a simulated model err as often, and at such kinds of steps, as a real one did. It stays a program
that errs on purpose: what the guard makes of it tests the guard, and is no evidence about any model.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from stepguard.testing.slips import ModelSlips

__all__ = ["PROFILES", "QWEN_1_5B", "STUDY"]

STUDY: Final = ModelSlips(
    stopping=0.008,
    missing_step=0.0016,
    wrong_value=0.0016,
    wrong_operand=0.0016,
    self_conditioning=0.6,
    failing=0.33,
    failing_ways=(
        ("stopping", 0.64),
        ("missing_step", 0.09),
        ("extra_step", 0.09),
        ("premature_answer", 0.09),
        ("self_correction", 0.09),
    ),
    # Each of these would add to the step error in free text.
    self_correction=0.0,
    premature_answer=0.0,
    truncated=0.0,
)
"""Averages over many models, as published in a study of long executions without a guard: 0.67 * 0.9873^n of the first
answers are right after n steps (62.9 % at 5, 19.9 % at 95).

A third of the runs fails whatever the length; the step error is 1.27 % (`stopping`, `missing_step`, `wrong_value` and
`wrong_operand` together). Most of both is under-execution, 24 % of the runs at 5 steps and 51 % at 95: 0.64 of the
failures at either length, which is why it has that share of `failing_ways` and of the step error. The study does not
say how the rest is divided: it is, evenly. The slope of `self_conditioning` is another study's; it only acts behind a
first wrong value, so that it changes no share of right answers. Shares of format slips are those of `Slips`.
"""

QWEN_1_5B: Final = ModelSlips(
    wrong_value=0.0276,
    wrong_operand=0.041,
    self_correction=0.000147,
    missing_step=0.000147,
    systematic=0.259,
    extra_step=0.00204,
    premature_answer=0.000261,
    malformed=0.00204,
    truncated=0.00204,
    by_kind=(
        ("*", 0.00688),
        ("* negative", 0.000956),
        ("* negative hundreds", 0.000184),
        ("* plain", 0.00865),
        ("* plain hundreds", 0.00107),
        ("* plain tens", 0.00225),
        ("+", 0.0384),
        ("+ double", 0.0754),
        ("+ double hundreds", 0.09),
        ("+ double tens", 0.0348),
        ("+ negative", 0.043),
        ("+ negative hundreds", 0.0307),
        ("+ plain", 0.0139),
        ("+ plain hundreds", 0.0112),
        ("+ plain tens", 0.00255),
        ("-", 0.0249),
        ("- crossing", 0.0181),
        ("- crossing hundreds", 0.016),
        ("- crossing tens", 0.00367),
        ("- double", 0.0309),
        ("- double hundreds", 0.0297),
        ("- double tens", 0.011),
        ("- negative", 0.045),
        ("- negative hundreds", 0.0486),
        ("- plain", 0.0117),
        ("- plain hundreds", 0.00682),
        ("- plain tens", 0.0176),
    ),
    by_origin=(("given", 0.000977), ("structured", 0.0636), ("free", 0.0315)),
    self_conditioning=0.278,
    failing=0.0179,
)
"""Qwen2.5-Coder-1.5B-Instruct (4-bit, temperature 0) on integer arithmetic.

Fitted by ``python benchmarks/fit_profile.py`` from ``benchmarks/results/qwen2.5-coder-1.5b-arithmetic``: 3,392 first
answers to steps in 244 structured replies and 55 free transcripts, of which the rates rest on the 2,315 that no wrong
value of the same reply stands before. 64 of those were miscalculated, 95 read a wrong operand, and none of these 95
among the 511 steps whose operands all stood in the request. Self-conditioning has a 95 % interval from 0.17 to 0.38;
14 of 55 wrong values came again when their steps were asked by themselves
(``benchmarks/results/qwen2.5-coder-1.5b-rungs``). Slips that were not seen once have (0 + 0.5) / (n + 1).
"""

PROFILES: Final[Mapping[str, ModelSlips]] = MappingProxyType({"qwen2.5-coder-1.5b": QWEN_1_5B, "study": STUDY})
"""The profiles by name; the first is what ``stepguard bench`` takes where no model is named."""
