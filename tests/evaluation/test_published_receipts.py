"""Receipts as a family, on receipts of our own in the file's form."""

from __future__ import annotations

import json
import random
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from family_harness import check_arms, run_arm

from stepguard import Guard
from stepguard.cli import main
from stepguard.errors import ConfigError
from stepguard.evaluation.published import published_named
from stepguard.testing import ScriptedBackend, ScriptedSteps

pytestmark = pytest.mark.once

RIGHT = {"all fields": 1.0, "date": 1.0, "company": 1.0, "total": 1.0}


def item(seed: int) -> dict[str, Any]:
    """A receipt, with its key."""
    chance = random.Random(seed)
    cents, day = chance.randint(1000, 9000), date(2018, chance.randint(1, 12), chance.randint(13, 28))
    company = f"{chance.choice(('NORTH', 'SOUTH'))} CORNER SHOP {chance.randint(2, 99)} LTD"
    total, written = f"{cents / 100:.2f}", day.strftime(chance.choice(("%d/%m/%Y", "%d-%m-%y", "%d %b %Y")))
    text = f"{company}\n4 HIGH STREET\nDATE {written} 11:40\nTEA  {total}\nTOTAL  {total}\nCASH  100.00\nTHANK YOU"
    return {
        "id": str(seed),
        "text": text,
        "date": written,
        "company": company,
        "total": total,
        "address": "4 HIGH STREET",
    }


def write(folder: Path, items: list[dict[str, Any]]) -> Path:
    """A folder with these receipts."""
    (folder / "receipts.jsonl").write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, [item(seed) for seed in range(8)])


def test_every_arm_of_a_perfect_model_reads_every_receipt(folder: Path) -> None:
    """Whatever the date is written like, the guard accepts the right fields, and free text gives them."""
    check_arms(published_named("receipts", folder), ("cot", "trace", "chunk", "guard"), RIGHT)


def test_what_does_not_stand_there_is_refused_and_what_does_may_be_wrong(folder: Path) -> None:
    """A total of nowhere is never accepted; the cash of the same receipt is, and counts as silently wrong."""
    task = published_named("receipts", folder).task(0)
    day, company, total = (task.truth[name] for name in ("date", "company", "total"))
    replies: dict[str, Any] = {"date": str(day), "company": str(company)}
    result = Guard(ScriptedSteps({**replies, "total": ["77.77", str(total)]})).run(task.procedure, task.inputs)
    assert (result.status, result.answer) == ("checked", total)
    outcome = run_arm("guard", task, ScriptedSteps({**replies, "total": "100.00"}))
    assert (outcome.verified, outcome.right, outcome.silent_errors) == (True, False, 1)
    assert outcome.authors == {"all fields": 0.0, "date": 1.0, "company": 1.0, "total": 0.0}


@pytest.mark.parametrize(
    ("changes", "scores"),
    [
        ({}, RIGHT),
        ({"total": "RM 12.30"}, {**RIGHT, "all fields": 0.0, "total": 0.0}),
        ({"date": "12/2018"}, {**RIGHT, "all fields": 0.0, "date": 0.0}),
        ({"company": "corner"}, {**RIGHT, "all fields": 0.0, "company": 0.0}),
    ],
)
def test_one_call_is_scored_field_by_field(folder: Path, changes: dict[str, Any], scores: dict[str, float]) -> None:
    """A reply in JSON is read as it is written, numbers as numbers or as text; case and blanks do not matter."""
    task = published_named("receipts", folder).task(0)
    total = task.truth["total"]
    assert isinstance(total, Decimal)
    said = {"date": str(task.truth["date"]), "company": str(task.truth["company"]).lower(), "total": float(total)}
    backend = ScriptedBackend(f"```json\n{json.dumps({**said, **changes})}\n```")
    assert run_arm("authors", task, backend).authors == scores
    assert backend.requests[0].messages[-1].content.endswith(item(0)["text"])


def test_the_bench_tells_what_is_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Receipts whose key does not stand in their text are counted, not asked."""
    write(folder, [*(item(seed) for seed in range(4)), {**item(5), "total": "1.23"}, {**item(6), "company": "NOBODY"}])
    assert main(["bench", "--task", "receipts", "--data", str(folder), "--arms", "trace,guard", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert "LEFT OUT: 2 of 6 items" in results["meta"]["warning"]
    assert [row["n"] for row in results["whole"]["rows"]] == [4, 4]


def test_a_file_without_receipts_is_named(tmp_path: Path) -> None:
    """The file and where it is to be had."""
    write(tmp_path, [{**item(5), "total": ""}])
    with pytest.raises(ConfigError, match=r"receipts.jsonl, line 1: the total of the key.*https://github.com"):
        published_named("receipts", tmp_path)
