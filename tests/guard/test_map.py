"""`Guard.map` and `Guard.amap`: many runs, read lazily, each row's outcome its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest
from tables import all_rows

from stepguard import Guard, Procedure, RetryPolicy
from stepguard.backends import Completion, Request
from stepguard.engine.batch import READ_AHEAD, RowResult
from stepguard.errors import BackendError, ConfigError, InputError
from stepguard.testing import SimulatedModel, Slips

DOUBLE = Procedure.parse("inputs: x\ny = x * 2")
RIGHT = SimulatedModel(slips=Slips.none())

Rows = Iterable[Mapping[str, object]]
Map = Callable[..., list[RowResult]]


def blocking(guard: Guard, rows: Rows, **options: Any) -> list[RowResult]:
    return list(guard.map(DOUBLE, rows, **options))


def awaited(guard: Guard, rows: Rows, **options: Any) -> list[RowResult]:
    async def main() -> list[RowResult]:
        return [row async for row in guard.amap(DOUBLE, rows, **options)]

    return asyncio.run(main())


both = pytest.mark.parametrize("run", [blocking, awaited])


class Slow:
    """Answers rightly, every row after a time of its own; counts what is under way."""

    def __init__(self, seconds: Callable[[int], float] = lambda _: 0.0) -> None:
        self.seconds = seconds
        self.calls = self.active = self.most = self.cancelled = 0

    async def acomplete(self, request: Request) -> Completion:
        self.calls += 1
        self.active += 1
        self.most = max(self.most, self.active)
        try:
            await asyncio.sleep(self.seconds(int(str(request.values["x"]))))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.active -= 1
        return RIGHT.complete(request)


@both
def test_every_row_has_its_result_in_order(run: Map) -> None:
    """Results come in the order of the rows, whichever run ends first, with no more at a time than allowed."""
    model = Slow(lambda x: 0.01 if x % 3 == 0 else 0.0)
    rows = run(Guard(model), ({"x": x} for x in range(40)), concurrency=4)
    assert [(row.index, row.raise_for_status().answer) for row in rows] == [(x, 2 * x) for x in range(40)]
    assert model.most == 4


@both
def test_results_as_they_come(run: Map) -> None:
    """Without order a slow row holds nobody up."""
    rows = run(Guard(Slow(lambda x: 0.2 if x == 0 else 0.0)), ({"x": x} for x in range(10)), ordered=False)
    assert rows[-1].index == 0
    assert sorted(row.index for row in rows) == list(range(10))


@both
def test_a_failed_row_loses_nothing_else(run: Map) -> None:
    """Wrong inputs, what is no row at all, and a model that does not answer: each is named in its own row."""

    def model(messages: list[dict[str, str]]) -> str:
        if "13" in messages[-1]["content"]:
            raise BackendError("the endpoint is down", retryable=False)
        return '{"y": "4 * 2 = 8"}'

    rows: list[Any] = [{"x": 4}, {"x": "four"}, {}, {"x": 4, "z": 1}, 7, InputError("line 6 is torn"), {"x": 13}]
    done = run(Guard(model, retry=RetryPolicy(retries=0)), [*rows, {"x": 4}])
    assert [row.status for row in done] == ["verified", *["invalid"] * 5, "failed", "verified"]
    said = [str(row.error) for row in done[1:6]]
    for words, where in zip(("not a number", "'x'", "'z'", "int", "line 6"), said, strict=True):
        assert words in where
    assert "down" in str(done[6].result)
    with pytest.raises(InputError, match="torn"):
        done[5].raise_for_status()


@both
def test_rows_are_called_by_their_key(run: Map) -> None:
    """A key is a field of the row, which is no input unless the procedure has it, or a function of the row."""
    rows = [{"id": "a", "x": 1}, {"x": 2}]
    named, unnamed = run(Guard(RIGHT), rows, key="id")
    assert (named.key, named.raise_for_status().answer, unnamed.status) == ("a", 2, "invalid")
    assert [row.key for row in run(Guard(RIGHT), [{"x": 1}], key="x")] == [1]
    assert [row.key for row in run(Guard(RIGHT), [{"x": 1}], key=lambda row: f"no {row['x']}")] == ["no 1"]


@both
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_what_ends_the_program_in_a_run_ends_the_batch(run: Map, error: BaseException) -> None:
    """A model or tool that asks the program to end is heard by who iterates, who would else wait for ever."""

    class Ending:
        async def acomplete(self, request: Request) -> Completion:
            if request.values["x"] == 3:
                raise error
            return RIGHT.complete(request)

    with pytest.raises(type(error)):
        run(Guard(Ending()), ({"x": x} for x in range(40)), concurrency=2)
    assert "stepguard-batch" not in {thread.name for thread in threading.enumerate()}


def endless(read: list[int]) -> Iterator[dict[str, object]]:
    while True:
        read.append(len(read))
        yield {"x": read[-1]}


def test_inputs_are_read_lazily_and_abandoning_stops_it() -> None:
    """Of endless rows only some are read ahead, and who stops iterating leaves no call, task or thread behind."""
    model, read = Slow(lambda x: 0.0 if x < 3 else 60.0), list[int]()
    for row in Guard(model).map(DOUBLE, endless(read), concurrency=3):
        if row.index == 2:
            break
    assert len(read) <= 3 + 3 * READ_AHEAD
    assert model.active == 0
    assert model.cancelled
    assert "stepguard-batch" not in {thread.name for thread in threading.enumerate()}


def test_abandoning_the_awaited_way_stops_it() -> None:
    """Leaving the loop cancels the calls under way, with nothing left on the event loop."""
    model, read = Slow(lambda x: 0.0 if x < 3 else 60.0), list[int]()

    async def main() -> None:
        async for row in Guard(model).amap(DOUBLE, endless(read), concurrency=3):
            if row.index == 2:
                break
        async with asyncio.timeout(10):
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0)

    asyncio.run(main())
    assert len(read) <= 3 + 3 * READ_AHEAD
    assert model.active == 0


@both
def test_a_slow_first_row_holds_a_bounded_number(run: Map) -> None:
    """In order, what waits behind a slow row is bounded: reading stops there, and goes on after it."""
    ahead = 0

    def rows() -> Iterator[dict[str, object]]:
        nonlocal ahead
        for x in range(60):
            ahead = max(ahead, 0 if model.first_done else x)
            yield {"x": x}

    class Model(Slow):
        first_done = False

        async def acomplete(self, request: Request) -> Completion:
            reply = await super().acomplete(request)
            self.first_done = self.first_done or request.values["x"] == 0
            return reply

    model = Model(lambda x: 0.2 if x == 0 else 0.0)
    assert len(run(Guard(model), rows(), concurrency=2)) == 60
    assert 2 < ahead < 2 * READ_AHEAD


def test_what_reading_raises_comes_after_the_results() -> None:
    """Rows that cannot be read on end the batch with their error, once all results of earlier rows were given."""
    seen: list[int] = []

    def rows() -> Iterator[dict[str, object]]:
        yield {"x": 1}
        yield {"x": 2}
        raise OSError("the disk is gone")

    def take(guard: Guard) -> None:
        seen.extend(row.index for row in guard.map(DOUBLE, rows()))

    async def atake(guard: Guard) -> None:
        async for row in guard.amap(DOUBLE, rows()):
            seen.extend([row.index])

    with pytest.raises(OSError, match="disk"):
        take(Guard(RIGHT))
    with pytest.raises(OSError, match="disk"):
        asyncio.run(atake(Guard(RIGHT)))
    assert seen == [0, 1, 0, 1]


def test_rows_may_be_awaited() -> None:
    """An async iterable is read while runs go on: a row that is long in coming keeps no result waiting."""

    async def rows() -> AsyncIterator[dict[str, object]]:
        for x in range(3):
            yield {"x": x}
        await gave.wait()
        yield {"x": 3}

    async def main() -> list[int]:
        taken = []
        async for row in Guard(RIGHT).amap(DOUBLE, rows()):
            taken.append(row.index)
            if len(taken) == 3:
                gave.set()
        return taken

    gave = asyncio.Event()
    assert asyncio.run(asyncio.wait_for(main(), 10)) == [0, 1, 2, 3]


@both
def test_a_fault_of_the_set_up_ends_the_batch(run: Map) -> None:
    """What would fail for every row, such as a missing key of the API, is raised and not written into each row."""

    class NoKey:
        calls = 0

        async def acomplete(self, request: Request) -> Completion:
            self.calls += 1
            raise ConfigError("there is no API key", option="api_key")

    model = NoKey()
    with pytest.raises(ConfigError, match="no API key"):
        run(Guard(model), ({"x": x} for x in range(1000)), concurrency=2)
    assert model.calls <= 2 * READ_AHEAD


@both
def test_rows_of_a_seeded_guard_are_repeatable_and_unlike(run: Map) -> None:
    """A guard with a seed gives the same batch twice, and its rows do not share one seed."""
    seeds: list[object] = []

    def model(request: Request) -> Completion:
        seeds.append(request.seed)
        return RIGHT.complete(request)

    class Model:
        complete = staticmethod(model)

    guard = Guard(Model(), seed=5)
    for _ in range(2):
        run(guard, [{"x": 1}, {"x": 2}], concurrency=1)
    assert seeds[:2] == seeds[2:]
    assert seeds[0] != seeds[1]


@all_rows(
    "options, words",
    [
        ({"inputs": {"x": 1}}, "iterable of mappings"),
        ({"inputs": "x"}, "iterable of mappings"),
        ({"concurrency": 0}, "concurrency"),
        ({"ordered": 1}, "ordered"),
        ({"key": 3}, "key"),
        ({"procedure": "y = 1"}, "Procedure"),
    ],
)
def test_arguments_that_cannot_work_are_refused_at_once(options: dict[str, Any], words: str) -> None:
    """Before anything is read, not at the first result."""
    given = {"procedure": DOUBLE, "inputs": [], **options}
    for start in (Guard(RIGHT).map, Guard(RIGHT).amap):
        with pytest.raises(ConfigError, match=words):
            start(**given)


class Frame:
    """What `map` uses of a DataFrame of pandas."""

    columns: tuple[object, ...] = ("x",)
    index = ("a", "b", "c")

    def itertuples(self, index: bool = True, name: str | None = "Pandas") -> Iterator[tuple[object, ...]]:
        assert index
        assert name is None
        return iter([("a", 1.0), ("b", float("nan")), ("c", None)])


@both
def test_rows_of_a_frame(run: Map) -> None:
    """A DataFrame gives its rows, called as its index calls them; an empty cell is an input that is not given."""
    rows = run(Guard(RIGHT), Frame())
    assert [(row.key, row.status) for row in rows] == [("a", "verified"), ("b", "invalid"), ("c", "invalid")]
    assert "missing" in str(rows[1].error)
    twice = Frame()
    twice.columns = (1, "1")
    with pytest.raises(ConfigError, match="two columns are called '1'"):
        Guard(RIGHT).map(DOUBLE, twice)  # type: ignore[arg-type]
    named, unnamed, _ = run(Guard(RIGHT), Frame(), key="x")
    assert (named.key, named.status, unnamed.status) == (1.0, "verified", "invalid")
