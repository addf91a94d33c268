"""Where a step stands: its place in a run, its name there, and the statement that it comes from."""

from __future__ import annotations

import pytest
from control_flow_harness import places, run_watched

WAYS = """
procedure double:
  inputs: v
  if v > 3:
    w = by code v * 2
  else if v > 2:
    w = by code v * 3
  else:
    w = by code v * 4
  answer: w + 0
inputs: x
for each n in [1, 3, 5]:
  d = call double(v=n)
  for each m in [n]:
    e = by code m + 1
k = by code x
repeat at most 3 times until k > 1:
  k = by code k + 1
repeat at most 2 times until true:
  j = by code k
  for each m in [7]:
    e2 = by code m
if k > 9:
  unused = by code 1
c = call double(v=k)
"""


def test_every_step_tells_its_place_its_name_and_its_statement() -> None:
    """Branches, loops, rounds and calls are counted as they are entered."""
    result, requests, _ = run_watched(WAYS, {"x": 0})
    assert (result.status, result.answer, requests) == ("verified", 8, [])
    assert places(result) == [
        ("n[0].d.w", "w_0_d", "0.0.0.2.0"),
        ("n[1].d.w", "w_1_d", "0.0.0.1.0"),
        ("n[2].d.w", "w_2_d", "0.0.0.0.0"),
        ("n[0].m[0].e", "e_0_0", "0.1.0"),
        ("n[1].m[0].e", "e_1_0", "0.1.0"),
        ("n[2].m[0].e", "e_2_0", "0.1.0"),
        ("k", "k", "1"),
        ("repeat[0].k", "k_b0", "2.0"),
        ("repeat[1].k", "k_b1", "2.0"),
        ("repeat2[0].j", "j_c0", "3.0"),
        ("repeat2[0].m[0].e2", "e2_c0_0", "3.1.0"),
        ("c.w", "w_c", "5.0.2.0"),
    ]
    assert result.ways == {
        "0": 3, "0.0": 3, "0.0.0.2": 1, "0.0.0.1": 1, "0.0.0.0": 1, "0.1": 3,
        "2": 2, "3": 1, "3.1": 1, "4.1": 1, "5": 1, "5.0.2": 1,
    }  # fmt: skip
    assert dict(result.values) == {
        "x": 0, "d": (4, 9, 10), "e": ((2,), (4,), (6,)), "k": 2, "j": 2, "e2": (7,), "c": 8,
    }  # fmt: skip


def test_what_some_rounds_do_not_set_is_no_list() -> None:
    """It is no value of the run either, since there is none for every item."""
    text = "for each n in [1, 2]:\n  a = by code n\n  if n > 1:\n    b = by code n * 2\nanswer: sum of a\n"
    result, _, _ = run_watched(text, {})
    assert (result.answer, dict(result.values)) == (3, {"a": (1, 2)})


def test_loops_are_told_apart_however_many_there_are() -> None:
    """What the rounds of each set has a name of its own."""
    result, _, _ = run_watched("".join(f"for each n in [{at}]:\n  a{at} = by code n\n" for at in range(54)), {})
    assert [record.occurrence.step for record in result.steps] == [
        f"a{at}_{letters}0"
        for at, letters in enumerate(
            ["", *"bcdefghijklmnopqrstuvwxyz", *(f"{a}{b}" for a in "bc" for b in "abcdefghijklmnopqrstuvwxyz")][:54]
        )
    ]


CALLED = "procedure f:\n  inputs: v\n  y = by code 1 / v\n  answer: y + 1\n"


@pytest.mark.parametrize(
    ("text", "path", "site"),
    [
        ("for each x in xs:\n  for each y in [xs[5]]:\n    a = by code x\n", "xs[0].for each", "0.0"),
        ("k = by code 1\nrepeat at most 2 times until xs[k] > 0:\n  k = by code k + 1\n", "repeat", "1"),
        ("for each x in xs:\n  if xs[5] > 0:\n    a = by code x\nanswer: 1\n", "xs[0].if", "0.0"),
        ("if true:\n  z = by code 1\n  c = by code z + xs[5]\nanswer: 1\n", "c", "0.0.1"),
        (f"{CALLED}for each x in xs:\n  c = call f(v=x - 9)\n", "xs[0].c.y", "0.0.0"),
        (f"{CALLED}for each x in xs:\n  c = call f(v=xs[5])\n", "xs[0].c", "0.0"),
        ("for each x in xs:\n  repeat at most 1 times until x > 0:\n    a = by code x\n"
         "  repeat at most 3 times until x < 0:\n    b = by code x\n", "xs[0].repeat2[2]", "0.1"),
        ("a = by code 1\nanswer: xs[5]\n", "the answer", ""),
    ],
)  # fmt: skip
def test_what_ends_a_run_is_told_by_its_place(text: str, path: str, site: str) -> None:
    """The innermost statement, in the round and the call that it is in."""
    head, tail = ("", text) if not text.startswith("procedure") else (CALLED, text.removeprefix(CALLED))
    result, _, _ = run_watched(f"{head}inputs: xs: list of number\n{tail}", {"xs": [9, 8]})
    assert result.problem is not None
    assert (str(result.problem.occurrence), result.problem.occurrence.site) == (path, site), result.problem
    assert result.status in ("failed", "exhausted")
