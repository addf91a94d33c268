"""No forbidden call passes, however an agent lies, and no permitted one is refused, whatever the policy."""

from __future__ import annotations

import random

import pytest
from policy_hostile_harness import Conversation, honest_call, hostile_turn, make_policy


def hostile(seed: int, attempts: int) -> list[str]:
    """What passed wrongly in so many attempts."""
    chance = random.Random(seed)
    wrong: list[str] = []
    done = passed = 0
    policies = [make_policy(chance) for _ in range(max(4, attempts // 100))]
    while done < attempts:
        talk = Conversation(chance, *chance.choice(policies))
        for _ in range(120):
            hostile_turn(talk)
        wrong += talk.wrong
        done += talk.attempts
        passed += len(talk.bank.transfers)
    assert passed > attempts / 100  # the gate is no wall
    return wrong


def honest(seed: int, attempts: int) -> list[str]:
    """What was refused wrongly in so many calls."""
    chance = random.Random(seed)
    wrong: list[str] = []
    policies = [make_policy(chance) for _ in range(max(4, attempts // 100))]
    done = passed = 0
    while done < attempts:
        talk = Conversation(chance, *chance.choice(policies))
        for _ in range(8):
            found = honest_call(talk)
            wrong += [] if found is None else [found]
        wrong += talk.wrong
        done += talk.attempts // 2 or 1
        passed += len(talk.bank.transfers)
    assert passed > attempts / 10
    return wrong


@pytest.mark.parametrize("seed", [1, 2])
def test_no_forbidden_call_passes(seed: int) -> None:
    """Lies about values, names, amounts, order, yeses and identifiers, slow answers, resumed states."""
    assert hostile(seed, 250) == []


def test_no_permitted_call_is_refused() -> None:
    """An agent that looks things up and waits for its answers is never in the way."""
    assert honest(3, 150) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_none_of_a_hundred_thousand_forbidden_calls_passes(seed: int) -> None:
    """The same at length."""
    assert hostile(100 + seed, 10_000) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_none_of_a_hundred_thousand_permitted_calls_is_refused(seed: int) -> None:
    """The same at length."""
    assert honest(200 + seed, 10_000) == []
