"""Batches in files: rows in, results out, and nothing lost or paid twice when one is interrupted."""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from batch_harness import CALLS, SUMS, CountingModel, asked, results, rows

import stepguard.batches.ledger as ledger_module
from stepguard import Guard, Procedure, Step, Verdict
from stepguard.backends import Completion, Request
from stepguard.batches import BatchSummary, read_rows, run_batch, to_frame
from stepguard.batches.ledger import BatchLedger
from stepguard.engine.batch import BatchRow, RowResult
from stepguard.errors import ConfigError, InputError, StepguardError
from stepguard.testing import SimulatedModel, Slips

RIGHT = SimulatedModel(slips=Slips.none())
DOUBLE = Procedure.parse('inputs: x, note: text = "none"\ny = x * 2')


def batch(
    folder: Path, count: int = 6, *, out: str = "out.jsonl", down: Iterable[int] = (), **options: Any
) -> BatchSummary:
    model = CountingModel(folder / "log", frozenset(down))
    given: dict[str, Any] = {"segment": 1, "key": "id", "concurrency": 2, **options}
    procedure, backend = given.pop("procedure", SUMS), given.pop("model", model)
    return run_batch(procedure, backend, given.pop("rows", rows(count)), folder / out, **given)


def answers(found: list[dict[str, Any]]) -> list[object]:
    return [each.get("answer") for each in found]


def expected(count: int) -> list[int]:
    return [3000 * x + 3 for x in range(count)]


# Files


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "rows.jsonl",
            '{"x": 12, "note": "a, \\"b\\""}\n\n{"x": "twelve"}\n{"x": 1, "x": 2}\n[1]\n{"x": \n\xff\n{"x": 1}',
        ),
        ("rows.csv", '\ufeffx,note\n12,"a, ""b"""\ntwelve,\n1,2,3\n1\n,\n \xff,x\n1,"two\nlines"\n'),
        ("rows.tsv", "x\tnote\n12\ta\ntwelve\t\n1\t2\t3\n1\n\t\nx\ty\n1\tz\n"),
    ],
)
def test_rows_of_files(tmp_path: Path, name: str, text: str) -> None:
    """Good rows run, and each that cannot be read is named with its line, in its place."""
    file = tmp_path / name
    file.write_bytes(text.encode("latin-1" if name == "rows.jsonl" else "utf-8"))
    done = list(Guard(RIGHT).map(DOUBLE, read_rows(file)))  # type: ignore[arg-type]
    assert [row.status for row in done] == ["verified", *["invalid"] * 5, "verified"]
    assert done[0].raise_for_status().values["note"] == ("a" if name == "rows.tsv" else 'a, "b"')
    if name == "rows.jsonl":
        assert "line 4: 'x' stands in it twice" in str(done[2].error)
        assert [f"line {number}" in str(done[index].error) for index, number in ((3, 5), (4, 6), (5, 7))] == [True] * 3
    else:
        assert "line 4: it has 3 cells, and the header 2" in str(done[2].error)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("rows.csv", "x,x\n1,2\n", "two columns"),
        ("rows.csv", "x;note\n1;2\n", "separated by ';'"),
        ("rows.csv", "x,\n1,2\n", "column 2 has no name"),
        ("rows.csv", "", "is empty"),
        ("rows.csv", 'x\n"1" 2\n', "no CSV"),
        ("rows.csv", b"x\n\xff\n", "not UTF-8"),
        ("rows.xlsx", "", "ends in"),
        ("none.csv", None, "cannot be read"),
    ],
)
def test_files_that_are_no_rows_are_refused(tmp_path: Path, name: str, text: str | bytes | None, words: str) -> None:
    """A file that cannot be understood as a whole is refused by what is wrong with it."""
    file = tmp_path / name
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(StepguardError, match=words):
        list(read_rows(file))


def test_long_cells_and_ignored_columns(tmp_path: Path) -> None:
    """A document of a million characters fits into a cell, and columns that are no inputs are left out by name."""
    file = tmp_path / "rows.csv"
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([["x", "note", "colour"], [3, "n" * 1_000_000, "red"]])
    (row,) = read_rows(file, ignore=["colour"])
    assert row == {"x": "3", "note": "n" * 1_000_000}
    (whole,) = Guard(RIGHT).map(DOUBLE, read_rows(file))  # type: ignore[arg-type]
    assert "'colour'" in str(whole.error)


def test_results_of_both_kinds(tmp_path: Path) -> None:
    """Each result stands once, with its key, and the inputs are not copied; CSV and JSON lines say the same."""
    mixed = [*rows(3), {"id": "bad", "x": "none"}]
    for out in ("out.jsonl", "out.csv"):
        summary = batch(tmp_path, out=out, rows=mixed, down=[1], ordered=True)
        ends = {"failed": 1, "invalid": 1, "verified": 2}
        assert {status: count for (status, _), count in summary.counts.items()} == ends
    lines = results(tmp_path / "out.jsonl")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [each["key"] for each in lines] == [each["key"] for each in table] == ["r0", "r1", "r2", "bad"]
    assert [each["status"] for each in lines] == ["verified", "failed", "verified", "invalid"]
    assert lines[2]["values"] == json.loads(table[2]["values"]) == {"a": 6000, "b": 6004, "c": 6003}
    assert "down" in lines[1]["problem"]["reason"]
    assert "down" in table[1]["problem"]
    assert "not a number" in table[3]["error"]


@pytest.mark.parametrize("text", ["=1+1", '=HYPERLINK("http://x","y")', "@SUM(1)", "+cmd|' /C calc'!A0", "-2+A1"])
def test_a_table_holds_no_formula(tmp_path: Path, text: str) -> None:
    """What a row or a reply says is text to a spreadsheet that opens the results; numbers stay as they are."""
    copy = Procedure.parse('inputs: x: text\nt: text = "Copy it." (reads x)')
    model = SimulatedModel(answers={"t": text})
    keys = [text, "-5", "+49 (171) 5-2", "2026-01-31"]
    given = [{"id": key, "x": "a"} for key in keys]
    for out in ("out.csv", "out.jsonl"):
        batch(tmp_path, procedure=copy, model=model, rows=given, out=out, ordered=True)
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [each["key"] for each in table] == [f"'{text}", *keys[1:]]
    assert {each["answer"] for each in table} == {f"'{text}"}
    assert [each["key"] for each in results(tmp_path / "out.jsonl")] == keys


def test_numbers_of_any_length_may_be_keys(tmp_path: Path) -> None:
    """A key that is a number stays one where readers of JSON keep it exact; a longer one is text."""
    keys = ["7", "-9007199254740991", "9007199254740993", "1" * 5_000, "1.50"]
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"id": {key}, "x": 1}}\n' for key in keys), encoding="utf-8")
    batch(tmp_path, rows=tmp_path / "rows.jsonl", ordered=True)
    found = [each["key"] for each in results(tmp_path / "out.jsonl")]
    assert found == [7, -9007199254740991, *keys[2:]]


def test_details_hold_every_step(tmp_path: Path) -> None:
    """With details a result holds the steps and calls of its run."""
    batch(tmp_path, 1, details=True)
    (whole,) = results(tmp_path / "out.jsonl")
    assert [step["step"] for step in whole["steps"]] == ["a", "b", "c"]
    assert len(whole["attempts"]) == CALLS
    with pytest.raises(ConfigError, match="no place for details"):
        batch(tmp_path, 1, details=True, out="out.csv")


# Going on


def test_a_finished_batch_is_gone_on_with_for_nothing(tmp_path: Path) -> None:
    """Without resume results are never written over; with it nothing is asked again, and new rows are added."""
    batch(tmp_path)
    with pytest.raises(ConfigError, match="--resume"):
        batch(tmp_path)
    summary = batch(tmp_path, 8, resume=True)
    assert (summary.rows, summary.taken_over, summary.spent.calls) == (8, 6, 2 * CALLS)
    assert answers(results(tmp_path / "out.jsonl")) == expected(8)
    assert set(asked(tmp_path / "log").values()) == {1}


def test_failed_rows_get_another_try(tmp_path: Path) -> None:
    """What ended as failed is done again on resume, and its old line is gone."""
    for out in ("out.jsonl", "out.csv"):
        batch(tmp_path, out=out, down=[0, 3, 5])
        summary = batch(tmp_path, out=out, resume=True, down=[3])
        assert (summary.rows, summary.taken_over) == (6, 3)
        summary = batch(tmp_path, out=out, resume=True)
        assert (summary.rows, summary.taken_over, summary.spent.calls) == (6, 5, CALLS)
    assert answers(results(tmp_path / "out.jsonl")) == expected(6)
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        assert sorted(int(each["answer"]) for each in csv.DictReader(file)) == expected(6)


def test_no_tool_is_called_twice(tmp_path: Path) -> None:
    """A batch that calls tools needs a ledger, and one that was interrupted behind a call does not make it again."""
    paid: list[int] = []
    interrupted = [True]

    def pay(amount: int) -> str:
        paid.append(amount)
        return f"paid {amount}"

    class Model:
        def complete(self, request: Request) -> Completion:
            if request.steps[0].id == "last" and interrupted[0]:
                raise KeyboardInterrupt
            return RIGHT.complete(request)

    text = "inputs: x\nreceipt: text = tool pay(amount=x)\nlast = x + 1"
    options: dict[str, Any] = {
        "procedure": Procedure.parse(text, tools={"pay": pay}),
        "model": Model(),
        "concurrency": 1,
    }
    with pytest.raises(ConfigError, match="calls the tool pay: give a ledger"):
        batch(tmp_path, **options)
    options |= {"ledger": tmp_path / "runs.db", "rows": [{"id": "same", "x": x} for x in (5, 5, 6)]}
    with pytest.raises(KeyboardInterrupt):
        batch(tmp_path, **options)
    assert paid == [5]
    interrupted[0] = False
    summary = batch(tmp_path, resume=True, **options)
    assert {status: count for (status, _), count in summary.counts.items()} == {"verified": 3}
    assert sorted(paid) == [5, 5, 6]
    assert [each["key"] for each in results(tmp_path / "out.jsonl")] == ["same"] * 3


def test_checks_of_ones_own_do_not_hinder_going_on(tmp_path: Path) -> None:
    """A function among the checks lies elsewhere in every process, and the procedure is the same."""

    def procedure() -> Procedure:
        return Procedure([Step("y", "x + 1", checks=[lambda *_: Verdict("pass", "own")])], inputs=["x"])

    for count in (1, 3):
        summary = batch(tmp_path, procedure=procedure(), rows=[{"id": x, "x": x} for x in range(count)], resume=True)
        assert summary.rows == count


def test_addresses_in_texts_are_texts(tmp_path: Path) -> None:
    """A row whose text names another address of memory is another row."""
    copy = Procedure.parse('inputs: x: text\nt: text = "Copy it." (reads x)')
    options: dict[str, Any] = {"procedure": copy, "model": SimulatedModel(answers={"t": "a"})}
    batch(tmp_path, rows=[{"id": 1, "x": "<fault at 0x1f>"}], **options)
    with pytest.raises(ConfigError, match="row 0 is not what it was"):
        batch(tmp_path, rows=[{"id": 1, "x": "<fault at 0x2f>"}], resume=True, **options)


def test_a_limit_of_money_stops_the_batch(tmp_path: Path) -> None:
    """From the limit on no row is begun; the batch is gone on with under another one."""
    from stepguard import Price
    from stepguard.batches.running import CostLimit

    price = Price(input=1_000_000, output=0)
    summary = batch(tmp_path, 14, limit=CostLimit(1, price), concurrency=1)
    assert summary.stopped
    assert 0 < summary.rows < 14
    summary = batch(tmp_path, 14, resume=True)
    assert (summary.rows, summary.stopped) == (14, False)
    assert set(asked(tmp_path / "log").values()) == {1}


CHANGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "row": ("row 1 is not", lambda path: batch(path, resume=True, rows=[*rows(1), {"id": "r1", "x": 7}, *rows(6)[2:]])),
    "key": ("row 0 is not", lambda path: batch(path, resume=True, key="x", rows=[{"x": 0}, *rows(6)[1:]])),
    "fewer rows": ("there are 3 rows", lambda path: batch(path, 3, resume=True)),
    "segment": ("segment was 1 and is 2", lambda path: batch(path, resume=True, segment=2)),
    "repair": ("repair was None and is 2", lambda path: batch(path, resume=True, repair=2)),
    "details": ("details was None and is on", lambda path: batch(path, resume=True, details=True)),
    "seed": ("seed", lambda path: batch(path, resume=True, seed=-1 % 2**32)),
    "model": (
        "other settings",
        lambda path: run_batch(SUMS, RIGHT, rows(6), path / "out.jsonl", resume=True, segment=1),
    ),
    "procedure": (
        "procedure has changed",
        lambda path: batch(path, resume=True, procedure=Procedure.parse(str(SUMS).replace("+ 4", "+ 5"))),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_batch_is_refused_by_name(tmp_path: Path, change: str) -> None:
    """Rows, procedure, model and options must be what they were: what differs is named, and nothing is asked."""
    batch(tmp_path)
    before = (tmp_path / "out.jsonl").read_bytes()
    words, go_on = CHANGES[change]
    with pytest.raises(ConfigError, match=words):
        go_on(tmp_path)
    assert (tmp_path / "out.jsonl").read_bytes() == before
    assert set(asked(tmp_path / "log").values()) == {1}


@pytest.mark.parametrize("change", ["edited", "longer", "shorter", "gone", "alone"])
def test_results_that_were_changed_are_left_alone(tmp_path: Path, change: str) -> None:
    """A file that is not as the batch left it is neither gone on with nor cut."""
    batch(tmp_path)
    out = tmp_path / "out.jsonl"
    whole = out.read_bytes()
    changed = {
        "edited": whole.replace(b"3003", b"3004"),
        "longer": whole + b"mine\nmine\n",
        "shorter": whole[:-20],
        "gone": b"",
        "alone": whole,
    }[change]
    out.write_bytes(changed)
    if change == "alone":
        ledger_module.ledger_path(out).unlink()
    with pytest.raises(ConfigError, match=r"is not what this batch|cannot be gone on"):
        batch(tmp_path, resume=True)
    assert out.read_bytes() == changed


# Kills


def killed(work: Callable[[], object]) -> None:
    """Do something in a process of its own, which ends by SIGKILL."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the child starts its own
        child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_a_call(at: int) -> None:
    call, calls = CountingModel.__call__, [0]

    def model(self: CountingModel, messages: list[dict[str, str]]) -> str:
        calls[0] += 1
        if calls[0] == at:
            die()
        return call(self, messages)

    CountingModel.__call__ = model  # type: ignore[method-assign]


def in_the_midst_of_a_record(at: int) -> None:
    add, calls = BatchLedger.add, [0]

    def torn(self: BatchLedger, number: int, digest: str, status: str, strength: str, record: bytes) -> None:
        calls[0] += 1
        if calls[0] == at:
            self._file.write(record[: len(record) // 2])
            die()
        add(self, number, digest, status, strength, record)

    BatchLedger.add = torn  # type: ignore[method-assign]


def behind_a_record(at: int) -> None:
    note, calls = BatchLedger._set, [0]

    def unnoted(self: BatchLedger, **facts: object) -> None:
        calls[0] += "crc" in facts
        if calls[0] == at + 1:
            die()
        note(self, **facts)

    BatchLedger._set = unnoted  # type: ignore[method-assign]


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize("where", [in_a_call, in_the_midst_of_a_record, behind_a_record])
@pytest.mark.parametrize(("at", "out"), [(1, "out.jsonl"), (4, "out.csv")])
def test_a_killed_batch_goes_on(tmp_path: Path, where: Callable[[int], None], at: int, out: str) -> None:
    """Killed in a call or around writing a result: every row stands once, and only what was in flight is paid twice."""

    def work() -> None:
        where(at)
        batch(tmp_path, out=out)

    killed(work)
    paid = asked(tmp_path / "log").total()
    assert paid < 6 * CALLS
    assert batch(tmp_path, out=out, resume=True).rows == 6
    again = asked(tmp_path / "log")
    assert len(again) == 6 * CALLS
    assert again.total() <= 6 * CALLS + 2
    if out.endswith("jsonl"):
        assert answers(results(tmp_path / out)) == expected(6)
    else:
        with (tmp_path / out).open(newline="", encoding="utf-8") as file:
            assert sorted(int(each["answer"]) for each in csv.DictReader(file)) == expected(6)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize("before", [True, False])
def test_a_kill_while_failed_rows_are_taken_out(tmp_path: Path, before: bool) -> None:
    """Killed just before or just behind the new file takes the old one's place, nothing is lost."""
    batch(tmp_path, down=[1, 2])

    def work() -> None:
        swap = Path.replace

        def replace(self: Path, target: Path) -> Path:
            if before:
                die()
            swap(self, target)
            die()
            return self

        Path.replace = replace  # type: ignore[method-assign, assignment]
        batch(tmp_path, resume=True)

    killed(work)
    assert batch(tmp_path, resume=True).taken_over == 4
    assert answers(results(tmp_path / "out.jsonl")) == expected(6)


@pytest.mark.skipif(sys.platform == "win32", reason="no advisory locks")
def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    """While one process writes results, another that would go on with them is refused."""
    refused: list[StepguardError] = []

    def meddle(row: RowResult) -> None:
        if not refused:
            with pytest.raises(ConfigError, match="another process") as caught:
                batch(tmp_path, resume=True)
            refused.append(caught.value)

    assert batch(tmp_path, progress=meddle).rows == 6
    assert refused


def test_frames_in_and_out() -> None:
    """A DataFrame in gives rows named by its index; the results are a DataFrame with the same index."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1, 2.5, None], "note": ["a", None, "c"]}, index=["i", "j", "k"])
    dated = Procedure.parse("inputs: d: date, x\ny = x * 2")
    days = pandas.DataFrame({"d": pandas.to_datetime(["2024-01-02"]), "x": [1]})
    assert [row.status for row in Guard(RIGHT).map(dated, days)] == ["verified"]
    found = to_frame(Guard(RIGHT).map(DOUBLE, frame))
    assert list(found.index) == ["i", "j", "k"]
    assert list(found["status"]) == ["verified", "verified", "invalid"]
    assert found.loc["j", "value_y"] == 5
    assert "missing" in found.loc["k", "problem"]


def test_rows_that_have_a_name_already(tmp_path: Path) -> None:
    """Rows as a DataFrame gives them keep their names, and are gone on with like others."""
    named = [BatchRow(number, f"n{number}", {"x": 1000 * number}) for number in range(3)]
    assert batch(tmp_path, rows=named, key=None).rows == 3
    assert batch(tmp_path, rows=named, key=None, resume=True).taken_over == 3
    assert [each["key"] for each in results(tmp_path / "out.jsonl")] == ["n0", "n1", "n2"]


def test_rows_may_be_a_mistake(tmp_path: Path) -> None:
    """Rows that are no rows, and results of no known kind, are refused before anything is made."""
    for given, out, error in (
        (5, "out.jsonl", ConfigError),
        ([], "out.txt", ConfigError),
        ("no.csv", "o.csv", InputError),
    ):
        with pytest.raises(error):
            run_batch(SUMS, RIGHT, given, tmp_path / out)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
