"""The slips of particular models, for `SimulatedModel(slips=...)` and ``stepguard bench --profile``.

A profile makes a simulated model err as often, and in such situations, as a real one was seen to. It stays a program
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
    wrong_value=0.0211,
    wrong_operand=0.0435,
    self_correction=0.000217,
    missing_step=0.000217,
    systematic=0.265,
    extra_step=0.00303,
    premature_answer=0.000372,
    malformed=0.00303,
    truncated=0.00303,
    by_situation=(
        ("*", 0.00525),
        ("* negative", 0.00108),
        ("* negative hundreds", 0.000281),
        ("* plain", 0.0057),
        ("* plain hundreds", 0.000876),
        ("* plain tens", 0.00163),
        ("+", 0.0317),
        ("+ double", 0.0678),
        ("+ double hundreds", 0.0818),
        ("+ double tens", 0.0399),
        ("+ negative", 0.0381),
        ("+ negative hundreds", 0.0299),
        ("+ plain", 0.0099),
        ("+ plain hundreds", 0.00766),
        ("+ plain tens", 0.00213),
        ("-", 0.0172),
        ("- crossing", 0.0104),
        ("- crossing hundreds", 0.0142),
        ("- crossing tens", 0.00248),
        ("- double", 0.0292),
        ("- double hundreds", 0.0312),
        ("- double tens", 0.0115),
        ("- negative", 0.0241),
        ("- negative hundreds", 0.0295),
        ("- plain", 0.01),
        ("- plain hundreds", 0.00851),
        ("- plain tens", 0.0109),
    ),
    by_origin=(("given", 0.00139), ("structured", 0.0704), ("free", 0.0323)),
    self_conditioning=0.24,
    failing=0.0179,
)
"""Qwen2.5-Coder-1.5B-Instruct (4-bit, temperature 0) on integer arithmetic.

Fitted by ``python benchmarks/fit_profile.py`` from ``benchmarks/results/qwen2.5-coder-1.5b-arithmetic``: 2,303 first
answers to steps in 164 structured replies and 48 free transcripts, of which the rates rest on the 1,608 that no wrong
value of the same reply stands before. 34 of those were miscalculated, 70 read a wrong operand, and none of these 70
among the 359 steps whose operands all stood in the request. Self-conditioning has a 95 % interval from 0.16 to 0.32;
4 of 16 wrong values came again. Slips that were not seen once have (0 + 0.5) / (n + 1).
"""

PROFILES: Final[Mapping[str, ModelSlips]] = MappingProxyType({"qwen2.5-coder-1.5b": QWEN_1_5B, "study": STUDY})
"""The profiles by name; the first is what ``stepguard bench`` takes where no model is named."""
