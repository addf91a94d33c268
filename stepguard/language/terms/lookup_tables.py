"""Tables: values that are looked up by one or more keys, exact ones and ranges.

::

    Table("daily", {"country": "text"}, "money(EUR)", [("DE", "28"), ("FR", "35"), ("otherwise", "24")])
    Table("fee", {"weight": "quantity(kg)", "zone": "text"}, "money(EUR)", [
        ("0 to 5 kg", "near", "4.90"), ("over 5 to 30 kg", "near", "9.90"), ("over 30 kg", "otherwise", "25")])

A key is a value of its type as a reply would write it, ``otherwise`` (in quotes where it is a text itself), or of what
has an order a range:

=========================================  ======================================================
``0 to 5``, ``from 0 to 5``                from 0 up to and with 5
``over 5 to 30``                           more than 5, up to and with 30
``0 to under 5``                           from 0, less than 5
``over 30`` ``above 30`` ``more than 30``  more than 30
``from 18`` ``at least 18``                18 and more
``under 18`` ``below 18`` ``less than 18`` less than 18
``up to 18`` ``at most 18``                18 and less
=========================================  ======================================================

No key may fit two rows; the table is refused when it is made. ``otherwise`` stands for every key that has no row of its
own, and the keys count from left to right: a row with the first key itself goes before one with ``otherwise`` there.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from io import StringIO
from typing import Any, Final

from stepguard.errors import EvaluationError, InexactError, ProcedureError, UndefinedError, ValueRefused
from stepguard.language.quantities import Amount
from stepguard.language.terms.lookup_tree import Bound, Branch, KeyRange, RangeCheck, TableKey, begins_before_end
from stepguard.language.terms.measure_arithmetic import named_kind
from stepguard.language.value_types import NUMERIC, TypeLike, ValueType
from stepguard.language.values import Value, show_value, to_exact

OTHERWISE: Final = "otherwise"
"""The key of a row for every key that has none of its own."""

_MAX_ROWS: Final = 100_000
_MAX_KEYS: Final = 8  # rows are compared key by key, and nobody reads a wider table
_ORDERED: Final = NUMERIC | {"date", "time", "duration", "quantity"}
_ABOVE: Final = r"(?:over|above|more than)"
_BELOW: Final = r"(?:under|below|less than)"
_RANGE: Final = re.compile(
    rf"(?:(?P<above>{_ABOVE}) |from |at least )?(?P<low>(?!up to )\S.*?) to (?P<below>{_BELOW} )?(?P<high>\S.*)"
    rf"|{_ABOVE} (?P<more>\S.*)|(?:from|at least) (?P<least>\S.*)"
    rf"|{_BELOW} (?P<less>\S.*)|(?:up to|at most) (?P<most>\S.*)",
    re.IGNORECASE,
)
_RANGE_FORMS: Final = "`0 to 5`, `over 5 to 30`, `over 30`, `at least 18`, `under 18` or `up to 18`"
_QUOTED: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"')
# As a key of type text, `A or B` would match only itself, and every look-up of A would miss it.
_SEVERAL: Final = re.compile(r"\b(?:or|oder|ou)\b|^(?:not|any|every|all|everything|anything)\b|^[*_]$|\bexcept\b", re.I)
_DIGIT: Final = re.compile("[0-9]")
# `1,200` in a row that is split at commas gives two cells; the error then names the comma.
_SPLIT_NUMBER: Final = re.compile(r"[0-9](?:,[0-9]{3})+(?![0-9])")


class Table:
    """An immutable table of keys and values; all of its rows are read and checked when it is made.

    Args:
        name: the name that procedures look it up by.
        keys: the name of each key with its type.
        value: the type of the values.
        rows: the keys of a row and behind them its value, as values or as text; a mapping from keys to values.

    Raises:
        ProcedureError: a row cannot be read, fits a key that another row fits, or has too many or too few parts.
    """

    __slots__ = ("_root", "keys", "name", "rows", "value")

    name: str
    keys: tuple[tuple[str, ValueType], ...]
    value: ValueType
    rows: tuple[tuple[str, ...], ...]
    """The rows as text: keys, and the value."""

    def __init__(
        self,
        name: str,
        keys: Mapping[str, TypeLike],
        value: TypeLike,
        rows: Iterable[Sequence[object]] | Mapping[Any, object],
    ) -> None:
        self.name = name
        self.keys = tuple((key, ValueType.parse(kind)) for key, kind in keys.items())
        self.value = ValueType.parse(value)
        if not 1 <= len(self.keys) <= _MAX_KEYS:
            raise ProcedureError(f"table {name!r} has {len(self.keys)} keys: 1 to {_MAX_KEYS} are possible")
        for key, kind in self.keys:
            if kind.structured or kind.kind == "period":
                raise ProcedureError(f"table {name!r}: its key {key!r} is {kind}, by which nothing is looked up")
        self._root = Branch()
        shown: list[tuple[str, ...]] = []
        for number, row in enumerate(_listed(rows), 1):
            if number > _MAX_ROWS:  # no mutate: a limit
                raise ProcedureError(f"table {name!r} has more than {_MAX_ROWS} rows")
            shown.append(self._add(number, row))
        if not shown:
            raise ProcedureError(f"table {name!r} has no rows")
        self.rows = tuple(shown)
        RangeCheck(name, len(shown)).check(self._root)

    @classmethod
    def from_csv(
        cls, name: str, text: str, *, keys: Mapping[str, TypeLike] | None = None, value: TypeLike = "text"
    ) -> Table:
        """A table from the text of a CSV file, whose first line names the columns: the keys, and last the value.

        Args:
            name: the name of the table.
            text: what the file holds.
            keys: the types of the keys, by column, in the order in which one looks up; by default all columns are of
                type text, in the order of the file.
            value: the type of the last column.

        Raises:
            ProcedureError: a column is missing, or as for a table.
        """
        try:
            lines = [
                row
                # Excel begins its CSV files with a byte order mark, which would be part of the first column's name.
                for row in csv.reader(StringIO(text.removeprefix("\ufeff")), strict=True)
                if any(map(str.strip, row))
            ]
        except csv.Error as error:
            raise ProcedureError(f"table {name!r}: it is no CSV: {error}") from None
        if len(lines) < 2 or len(lines[0]) < 2:
            raise ProcedureError(
                f"table {name!r}: a CSV file has a line of names, with a key and a value, and rows below"
            )
        columns = [cell.strip() for cell in lines[0]]
        if len(set(columns)) < len(columns):
            raise ProcedureError(f"table {name!r}: two columns have the same name")
        given = dict.fromkeys(columns[:-1], "text") if keys is None else keys
        unknown = [key for key in given if key not in columns[:-1]]
        if unknown:
            raise ProcedureError(f"table {name!r}: the file has no column {unknown[0]!r}: it has {', '.join(columns)}")
        if len(given) < len(columns) - 1:
            left_out = next(column for column in columns[:-1] if column not in given)
            raise ProcedureError(
                f"table {name!r}: the file has a column {left_out!r} in front of the value: make it a key"
            )
        order = [*map(columns.index, given), len(columns) - 1]
        rows = [[row[at] for at in order] if len(row) == len(columns) else row for row in lines[1:]]
        return cls(name, given, value, rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        mine, theirs = ((each.name, each.keys, each.value, each.rows) for each in (self, other))
        return mine == theirs

    def __hash__(self) -> int:
        return hash((self.name, self.keys, self.value, self.rows))

    def __repr__(self) -> str:
        keys = {key: str(kind) for key, kind in self.keys}
        return f"Table({self.name!r}, {keys!r}, {str(self.value)!r}, {list(self.rows)!r})"

    def look_up(self, keys: Sequence[Value]) -> Value:
        """The value of the row that some keys select.

        Raises:
            InexactError: a key is of another type.
            UndefinedError: no row has these keys; the message names them and the table.
        """
        found = self._root.look_up(self._comparable(keys))
        if found is None:
            shown = ", ".join(f"{key} {show_value(each)}" for (key, _), each in zip(self.keys, keys, strict=True))
            raise UndefinedError(f"the table {self.name} has no row for {shown}")
        return found

    def has_row(self, keys: Sequence[Value]) -> bool:
        """Whether a row has these keys themselves; ``otherwise`` does not count."""
        return self._root.look_up(self._comparable(keys), own=True) is not None

    def _comparable(self, keys: Sequence[Value]) -> list[Any]:
        if len(keys) != len(self.keys):
            names = ", ".join(key for key, _ in self.keys)
            raise InexactError(f"the table {self.name} is looked up by {names}, not by {len(keys)} keys")
        return [self._key_of(kind, each, key) for (key, kind), each in zip(self.keys, keys, strict=True)]

    def _key_of(self, kind: ValueType, value: Value, key: str) -> Any:
        plain = to_exact(value)
        if isinstance(plain, Amount) and kind.unit is not None:
            return _comparable_key(kind.convert(plain))
        texts = kind.kind in ("text", "one_of")
        if not (type(plain) in (int, Fraction) if kind.numeric else type(plain) is str if texts else kind.holds(plain)):
            raise InexactError(f"the key {key} of the table {self.name} is {kind}, not {named_kind(value)}")
        return plain

    def _add(self, number: int, row: Sequence[object]) -> tuple[str, ...]:
        if len(row) != len(self.keys) + 1:
            columns = ", ".join([*(key for key, _ in self.keys), "value"])
            wanted = f"{len(row)} parts instead of {len(self.keys) + 1} ({columns}; `{OTHERWISE}` may be any key)"
            if _SPLIT_NUMBER.search(",".join(str(part).strip() for part in row)):
                wanted += ": leave the comma that groups digits out"
            raise ProcedureError(f"table {self.name!r}, row {number}: {wanted}")
        *given, value = row
        branch, shown = self._root, list[str]()
        try:
            for (_, kind), part in zip(self.keys, given, strict=True):
                key, text = _read_key(kind, part)
                branch = branch.under(key)
                shown.append(text)
            read = self.value.accept(value)
        except (ValueRefused, EvaluationError) as error:
            raise ProcedureError(f"table {self.name!r}, row {number}: {error}") from None
        if branch.value is not None:
            raise ProcedureError(f"table {self.name!r}, row {number}: the key {', '.join(shown)} has a row already")
        branch.value = read
        return (*shown, self.value.write(read))


def _listed(rows: Iterable[Sequence[object]] | Mapping[Any, object]) -> Iterable[Sequence[object]]:
    if not isinstance(rows, Mapping):
        return rows
    return [(*(key if isinstance(key, tuple) else (key,)), value) for key, value in rows.items()]


def _read_key(kind: ValueType, given: object) -> tuple[TableKey, str]:
    """Read one key of a row, with its text as it is shown."""
    if isinstance(given, str):
        text = " ".join(given.split())
        if text.lower() == OTHERWISE:
            return None, OTHERWISE
        # The text as given: blanks inside quotes are part of the key.
        if _QUOTED.fullmatch(given.strip()):
            text = str(json.loads(given.strip()))
        elif kind.kind == "text" and _is_several(text):
            raise ValueRefused(
                "it may stand for several keys, and a key of type text is itself alone: write a row for each, give the "
                "key its type for a range (`weight: number`), or put the key in quotes",
                text=text,
            )
        if kind.kind in _ORDERED and (match := _RANGE.fullmatch(text)) is not None:
            return _read_range(kind, match, text), text
        try:
            value = kind.read(text)
        except ValueRefused as error:
            if kind.kind not in _ORDERED:
                raise
            raise ValueRefused(f"{error.reason}; a range is {_RANGE_FORMS}", text=text) from None
    else:
        value = kind.accept(given)
    written = kind.write(value)
    if isinstance(value, str) and (
        _is_several(value) or value.lower() == OTHERWISE or value.startswith('"') or value != value.strip()
    ):
        written = json.dumps(value, ensure_ascii=False)
    return (_comparable_key(value),), written


def _is_several(text: str) -> bool:
    """Whether a key of type text reads as if it stood for several: ``A or B``, ``not A``, ``over 5``."""
    return _SEVERAL.search(text) is not None or (_RANGE.fullmatch(text) is not None and _DIGIT.search(text) is not None)


def _read_range(kind: ValueType, match: re.Match[str], text: str) -> KeyRange:
    low = match["low"] or match["more"] or match["least"]
    high = match["high"] or match["less"] or match["most"]
    lower = upper = Bound(None)
    if high is not None:
        upper = Bound(_bound(kind, high), inside=not (match["below"] or match["less"]))
    if low is not None:
        try:
            number = _bound(kind, low)
        except ValueRefused:
            if high is None or kind.unit is None:
                raise
            number = _bound(kind, f"{low} {high.lstrip('-+0123456789.,/ ')}")  # `0 to 5 kg`: the unit stands once
        lower = Bound(number, inside=not (match["above"] or match["more"]))
    found = KeyRange(lower, upper, text)
    if not begins_before_end(lower, upper):
        raise ValueRefused("a range that ends before it begins", text=text)
    return found


def _bound(kind: ValueType, text: str) -> Any:
    # Read as a reply, `5` is 5%; in a table 0.05 may as well have been meant.
    if kind.kind == "percent" and "%" not in text:
        raise ValueRefused("a percentage needs its sign", text=text)
    return _comparable_key(kind.read(text))


def _comparable_key(value: Value) -> Any:
    """A value as keys compare: a number exactly, a quantity by its number in the unit of the key."""
    return value.value if isinstance(value, Amount) else to_exact(value)
