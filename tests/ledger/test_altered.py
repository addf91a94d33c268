"""Records that were altered by hand, with every hash made right again: an error that names them, or nothing wrong."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from ledger_harness import CHAIN, LOOP, SURE, Counting, chain_again, kill, payment
from policy_harness import NOW, ORDER, SHOP

from stepguard import Guard, Policy, Procedure
from stepguard.errors import StepguardError
from stepguard.ledger import Ledger, read_run, verify_ledger
from stepguard.ledger.conversations import conversation_lines
from stepguard.show import draw_text

POLICY: Final = Policy.parse(SHOP)
RUNS: Final[dict[str, tuple[Procedure, dict[str, object]]]] = {
    "chain": (CHAIN, {"x": 12}),
    "loop": (Procedure.parse(LOOP), {"items": [1, 2, 3]}),
    "paid": (payment([]), {"x": 3}),
    "waits": (payment([], approval=True), {"x": 3}),
}
ODD: Final[tuple[Any, ...]] = (
    None,
    True,
    -1,
    1.5,
    10**30,
    "",
    "x",
    "verified",
    "\ud800",
    [],
    {},
    [1],
    {"a": 1},
    [[]],
    "1/0",
    "9" * 400,
)


@cache
def _ledger() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        with Ledger(path, full_sync=False) as ledger:
            for name, (procedure, inputs) in RUNS.items():
                Guard(SURE, segment=2, ledger=ledger).run(procedure, inputs, run_id=name)
            ledger.answer("waits", "approve_receipt", "yes")
            gate = POLICY.gate(facts={"customer": "C1"}, ledger=ledger, run_id="agent")
            gate.offer("get_order", {"id": "A1"}, id="1", now=NOW)
            gate.result("1", ORDER)
            asked = gate.offer("refund", {"order": "A1", "amount": 120}, id="2", now=NOW)
            gate.confirm(asked, by="manager")
            gate.offer("refund", {"order": "A1", "amount": 120}, id="2", now=NOW)
            gate.failed("2", done=False)
            gate.close()
        return path.read_bytes()


def _places(data: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield from _places(data[key], (*place, key))


def _altered(data: Any, chance: random.Random) -> Any:
    """The data with one part taken out, doubled, or replaced by something odd."""
    place = chance.choice(list(_places(data)))
    if not place:
        return chance.choice(ODD)
    holder = data
    for key in place[:-1]:
        holder = holder[key]
    match chance.randrange(4):
        case 0 if isinstance(holder, dict):
            del holder[place[-1]]
        case 1 if isinstance(holder, list):
            holder.append(holder[place[-1]])
        case _:
            holder[place[-1]] = chance.choice(ODD)
    return data


def _use(ledger: Ledger, name: str) -> list[Callable[[], object]]:
    """Everything that is made of a run: a picture, and going on with it."""
    if name == "agent":
        gate = lambda: POLICY.gate(facts={"customer": "C1"}, ledger=ledger, run_id=name).close()  # noqa: E731
        return [lambda: list(conversation_lines(read_run(ledger, name))), gate]

    def draw() -> None:
        reading = read_run(ledger, name)
        assert reading.procedure is not None
        draw_text(reading.procedure, reading.result)

    return [draw, lambda: Guard(SURE, ledger=ledger).run(*RUNS[name], run_id=name)]


def test_whatever_is_listed_is_held_against_the_records(tmp_path: Path) -> None:
    """No cell of the tables beside the records can be altered, and no row taken out, that verifying does not name: of a
    run that has ended, waits, was answered, killed or erased, and of a gate."""
    path, copy = tmp_path / "runs.db", tmp_path / "copy.db"
    path.write_bytes(_ledger())
    with Ledger(path, full_sync=False) as ledger:
        Guard(SURE, ledger=ledger).run(payment([], approval=True), {"x": 4}, run_id="waits on")
        Guard(SURE, ledger=ledger).run(CHAIN, {"x": 13}, run_id="gone")
        ledger.erase(["gone"])
        kill(Guard(Counting(die_at=3), segment=1, ledger=ledger), CHAIN, {"x": 14}, "killed")
        assert verify_ledger(ledger, policies=[POLICY]).right
    told_by_nothing = {"updated", "epoch"}
    connection = sqlite3.connect(path)
    missed: list[str] = []
    for table in ("runs", "procedures"):
        columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
        for row in connection.execute(f"select * from {table}").fetchall():
            where = f"where {columns[0]} = ?"
            changes: list[tuple[str, list[object]]] = [(f"delete from {table} {where}", [row[0]])]
            for column, value in zip(columns, row, strict=True):
                other = value + 100 if isinstance(value, int | float) else 5 if column == "total" else f"{value}x"
                if column not in told_by_nothing:
                    changes.append((f"update {table} set {column} = ? {where}", [other, row[0]]))
            for change in changes:
                copy.write_bytes(path.read_bytes())
                altered = sqlite3.connect(copy)
                altered.execute(*change)
                altered.commit()
                altered.close()
                with Ledger(copy, read_only=True) as ledger:
                    missed += [change[0]] if verify_ledger(ledger, policies=[POLICY]).right else []
    connection.close()
    assert [each for each in missed if "set source" not in each and "set operations" not in each] == []
    assert len(missed) <= 2  # of a policy, which has neither


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 200))])
def test_an_altered_record_is_named_and_breaks_nothing(tmp_path: Path, seed: int) -> None:
    """Whatever stands in a record, verifying, drawing and going on end with a result or an error that is ours."""
    path, chance = tmp_path / "runs.db", random.Random(seed)
    path.write_bytes(_ledger())
    connection = sqlite3.connect(path)
    sql = "select records.number, name, body from records join runs on runs.number = run"
    number, name, body = chance.choice(connection.execute(sql).fetchall())
    altered = json.dumps(_altered(json.loads(body), chance))
    connection.execute("update records set body = ? where number = ?", (altered, number))
    connection.commit()
    connection.close()
    chain_again(path)
    with Ledger(path, full_sync=False) as ledger:
        faults = verify_ledger(ledger, policies=[POLICY]).faults
        assert all(each.run_id == name for each in faults)
        for work in _use(ledger, name):
            with suppress(StepguardError):
                work()
