"""Running sums, roots, word lists and the returns desk, each worked out once more from what a model reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from itertools import count

import pytest
from family_harness import rerun
from tables import all_rows

from stepguard.evaluation.families import ReturnsDesk, Roots, RunningSum, Task, WordLists
from stepguard.language.values import Value, to_exact

pytestmark = pytest.mark.once

# Running sums


@pytest.mark.parametrize("words", [1, 2, 7])
def test_a_running_sum_is_the_sum_of_all_words_so_far(words: int) -> None:
    """After each turn the total is what all words of the dictionary named so far are worth, and it changes."""
    for length in (1, 5, 200):
        task = RunningSum(words=words).make(3, length)
        assert len(task.inputs) == 100
        total, seen = 0, 0
        for number, step in enumerate(task.procedure.steps, 1):
            named = [name for name in step.reads if name != f"total_{number - 1}"]
            assert len(named) == words
            added = sum(int(to_exact(task.inputs[name])) for name in named)
            seen += added == 0
            total += added
            assert task.truth[step.id] == total
        assert seen == 0
        assert task.facts["depth"] == length


def test_the_dictionary_stands_in_the_statement_and_only_what_is_read_in_a_prompt() -> None:
    """An arm that gets the whole problem gets all words, a segment those that it names."""
    task = RunningSum().make(0, 3)
    head = task.statement.partition("Steps:\n")[0].splitlines()
    assert len(head) == 101
    assert 0 not in task.inputs.values()


# Roots


@pytest.mark.parametrize(("degree", "largest"), [(2, 40), (3, 40), (2, 1000)])
def test_each_root_is_the_only_one(degree: int, largest: int) -> None:
    """Every equation, as it is worded, has the truth as its only positive whole solution."""
    for seed in range(6):
        task = Roots(degree=degree, largest=largest).make(seed, 25)
        state: dict[str, Value] = {**task.inputs, **task.truth}
        for step in task.procedure.steps:
            assert step.expression is None
            assert step.instruction is not None
            found = equation(step.instruction, state)
            root = next(x for x in count(1) if found(x) >= 0)
            assert found(root) == 0
            assert root == task.truth[step.id]
            assert root <= largest


def equation(text: str, state: dict[str, Value]) -> Callable[[int], int]:
    """Left side less right side of a worded equation; it grows with x."""
    right = re.search(r"(?:= |product is )(\d+)\*(\w+)(?: ([-+]) (\d+))?\.", text)
    assert right is not None
    value = int(right[1]) * int(to_exact(state[right[2]])) + int(f"{right[3] or ''}{right[4] or 0}")
    differ = re.search(r"differ by (\d+)", text)
    if differ is not None:
        return lambda x: x * (x + int(differ[1])) - value
    left = re.search(r"with x\^(\d) \+ (?:(\d+)\*)?x =", text)
    assert left is not None
    return lambda x: int(x ** int(left[1])) + int(left[2] or 1) * x - value


@pytest.mark.parametrize("degree", [2, 3])
def test_a_wrong_root_moves_the_next_one(degree: int) -> None:
    """A root that is wrong by one already moves every later one, also if it is brought to a whole number."""
    task = Roots(degree=degree).make(1, 12)
    for step in task.procedure.steps:
        for by in (-2, -1, 1, 2, 50):
            wrong = int(to_exact(task.truth[step.id])) + by
            assert rerun(task, {step.id: wrong})[task.procedure.answer] != task.answer


# Word lists


@pytest.mark.parametrize("knobs", [{}, {"items": 3, "most": 4}, {"items": 12, "most": 14}], ids=str)
def test_a_list_is_what_its_instructions_say(knobs: dict[str, int]) -> None:
    """Every state follows from the words of its instruction; lists stay within their bounds."""
    for length in (1, 2, 3, 40, 80):
        for seed in range(4):
            task = WordLists(**knobs).make(seed, length)
            state: dict[str, Value] = {**task.inputs, **task.truth}
            for step in task.procedure.steps:
                assert step.instruction is not None
                lists = [str(state[name]).split(", ") for name in step.reads]
                expected = rearranged(step.instruction, lists)
                assert ", ".join(expected) == task.truth[step.id]
                assert 1 <= len(expected) <= WordLists(**knobs).most


def rearranged(text: str, lists: list[list[str]]) -> list[str]:
    items = lists[0]
    numbers = [int(each) for each in re.findall(r"\b\d+\b", re.sub(r"of w\d+", "", text))]
    n = numbers[0] if numbers else 1
    match text.split()[0]:
        case "Reverse":
            return list(reversed(items))
        case "Move":
            cut = n if "to the end" in text else len(items) - n
            return [*items[cut:], *items[:cut]]
        case "Swap":
            order = list(range(len(items)))
            order[numbers[0] - 1], order[numbers[1] - 1] = numbers[1] - 1, numbers[0] - 1
            return [items[at] for at in order]
        case "Insert":
            (word,) = re.findall(r'"(\w+)"', text)
            return [*items[: n - 1], word, *items[n - 1 :]]
        case "Spell":
            return [each if at != n else "".join(reversed(each)) for at, each in enumerate(items, 1)]
        case "Write" if len(lists) == 2:
            return lists[0] + lists[1]
        case "Write":
            turned = items[n - 1].lower() if items[n - 1].isupper() else items[n - 1].upper()
            return [*items[: n - 1], turned, *items[n:]]
        case "Take" if "so on" in text:
            return [each for at, each in enumerate(items, 1) if at % 2 == n % 2]
        case "Take":
            return [items[n - 1]]
        case "Delete":
            return [each for at, each in enumerate(items, 1) if at != n]
    raise AssertionError(text)


def test_no_error_in_a_list_is_erased() -> None:
    """A wrong item, a swapped pair or another case in any state changes the last list."""
    for seed in range(2):
        task = WordLists().make(seed, 40)
        for name, value in task.truth.items():
            items = str(value).split(", ")
            wrong = [[*items[:at], word, *items[at + 1 :]] for at in range(len(items)) for word in ("zoo", "x")]
            wrong += [[*items[:at], items[at].swapcase(), *items[at + 1 :]] for at in range(len(items))]
            wrong += [[*items[: at - 1], items[at], items[at - 1], *items[at + 1 :]] for at in range(1, len(items))]
            for each in wrong:
                if each != items:
                    found = rerun(task, {name: ", ".join(each)})
                    assert found[task.procedure.answer] != task.answer


def test_the_check_of_lists_takes_nothing_else() -> None:
    """Another spacing, a missing or a further item is refused at every step."""
    from stepguard.core.verdicts import Claim

    task = WordLists().make(0, 60)
    state: dict[str, Value] = {**task.inputs, **task.truth}
    for step in task.procedure.steps:
        (check,) = step.checks
        right = str(task.truth[step.id])
        claim = Claim(step.id, (), right, right)
        assert check(step, {**state, step.id: right}, claim) is True
        for wrong in (right + ", zoo", right.partition(", ")[2], right.replace(", ", ","), f" {right}", right + "."):
            if wrong != right:
                assert check(step, {**state, step.id: wrong}, claim) is False


# The returns desk


def settle(stage: str, of: dict[str, Value], before: Value) -> Value:
    """One stage of a return, from the policy as it is written."""
    match stage:
        case "days":
            days: int = date.fromisoformat(str(of["returned"])).toordinal()
            return days - date.fromisoformat(str(of["bought"])).toordinal()
        case "window":
            extra = 10 if of["member"] else 0
            return extra + {"book": 14, "clothing": 30, "electronics": 21, "furniture": 45}[str(of["item"])]
        case "in_time":
            return int(to_exact(of["days"])) <= int(to_exact(of["window"]))
        case "rate":
            base = {"unopened": 100, "opened": 80, "damaged": 50}[str(of["condition"])]
            if (of["item"], of["condition"]) == ("electronics", "opened"):
                base = 70
            return Fraction(base - (0 if of["in_time"] else 30), 100)
        case "size":
            if int(to_exact(of["longest"])) > 120:
                return "large"
            kilograms = float(to_exact(of["weight"]))
            return "small" if kilograms <= 2 else "large" if kilograms > 20 else "medium"
        case "fee":
            fee = {"small": Decimal("4.90"), "medium": Decimal("9.90"), "large": Decimal("24.90")}[str(of["size"])]
            return (fee / 2 if of["member"] else fee) + (15 if of["item"] == "furniture" else 0)
        case "refund":
            rate = Fraction(to_exact(of["rate"]))
            amount = Decimal(str(of["price"])) * rate.numerator / rate.denominator - Decimal(str(of["fee"]))
            return amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
    return Decimal(str(before)) + Decimal(str(of["refund"]))


@all_rows("length", [1, 3, 8, 11, 64])
def test_the_desk_settles_returns_as_its_policy_says(length: int) -> None:
    """Every value is what the policy gives, no refund is a tie, and all amounts are above zero."""
    for seed in range(8):
        task = ReturnsDesk().make(seed, length)
        cases: dict[str, dict[str, Value]] = {}
        for name, value in task.inputs.items():
            stage, _, number = name.rpartition("_")
            shown = Fraction(str(value)[:-1]) / 100 if stage == "rate" else value
            cases.setdefault(number, {})[stage] = shown
        total: Value = task.inputs["paid"]
        for step in task.procedure.steps:
            stage, _, number = step.id.rpartition("_")
            found = settle(stage, cases[number], total)
            assert found == task.truth[step.id], step.id
            cases[number][stage] = found
            if stage == "total":
                total = found
            if stage == "refund":
                assert Decimal(str(found)) > 0
                assert cents_before_rounding(cases[number]) % 1 != Fraction(1, 2)


def cents_before_rounding(case: dict[str, Value]) -> Fraction:
    return 100 * (
        Fraction(to_exact(case["price"])) * Fraction(to_exact(case["rate"])) - Fraction(to_exact(case["fee"]))
    )


def others(task: Task, name: str) -> list[Value]:
    """Other values of a step that a model could take for right."""
    value, kind = task.truth[name], next(step.type for step in task.procedure.steps if step.id == name)
    if kind.kind == "boolean":
        return [not value]
    if kind.options:
        return [option for option in kind.options if option != value]
    if kind.kind == "percent":
        return [each for tens in range(11) if (each := Fraction(tens, 10)) != value]
    if kind.kind == "money":
        return [Decimal(str(value)) + Decimal(by) for by in ("0.01", "-0.01", "10.00", "-4.95")]
    return [int(to_exact(value)) + by for by in (*range(-60, 0), *range(1, 61))]


def test_every_step_of_the_desk_matters() -> None:
    """Of every step some other value changes the answer; of all but the day counts every other value does."""
    for seed in range(2):
        task = ReturnsDesk().make(seed, 21)
        for name in task.truth:
            changes = [rerun(task, {name: each})[task.procedure.answer] != task.answer for each in others(task, name)]
            assert any(changes)
            assert all(changes) or name.startswith(("days_", "window_"))


def test_the_policy_stands_in_the_statement_once() -> None:
    """An arm that gets the whole problem reads each rule, once, and steps that refer to it."""
    task = ReturnsDesk().make(0, 24)
    for rule in ("members have 10 days more", "take 30 percentage points off", "Members pay half", "day 0"):
        assert task.statement.count(rule) == 1
    for step in task.procedure.steps:
        assert step.instruction


def test_half_of_the_returns_are_on_the_edge() -> None:
    """Returns on the last day of their window, or one day late, are as frequent as asked for."""
    for share in (0.0, 1.0):
        task = ReturnsDesk(borderline=share).make(0, 400)
        found = [
            int(to_exact(task.truth[f"days_{number}"])) - int(to_exact(task.truth[f"window_{number}"])) in (0, 1)
            for number in range(1, 51)
        ]
        assert all(found) if share else sum(found) < 15
