"""Check what a step may read: operands that its expression and its checks can compute with, in one currency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stepguard.errors import ProcedureError
from stepguard.language.expressions import (
    TRUTHS,
    Chain,
    Compare,
    Expression,
    Logic,
    Name,
    Not,
    Number,
    Power,
    names_in,
    parts_of,
    truths_in,
    walk,
)
from stepguard.language.terms.money_products import check_products
from stepguard.language.terms.operands import scaled_operand
from stepguard.language.terms.type_inference import check_divisors, type_of
from stepguard.language.terms.type_relations import TEXTS, fits
from stepguard.language.value_types import ValueType
from stepguard.procedure.inputs import Input
from stepguard.procedure.steps import Step


def check_operands(step: Step, sources: Mapping[str, Input | Step]) -> Input | Step:
    """Refuse an expression, or a relation of a check, that cannot be computed with these values, or mixes currencies.

    No reply could ever be accepted, or 5 USD would be proved by 5 EUR.

    Returns:
        what later steps read: the step, or, where its type names no currency and its value is in one, that as money.
    """
    _check_relations(step, sources)
    if step.expression is None:
        return step
    copies = isinstance(step.expression, Name)
    truths = truths_in(step.expression) if isinstance(step.expression, TRUTHS) else ()
    # A truth value is refused when the step is made: only here its names are known to be numbers, and no dates.
    if not (copies or step.type.numeric or isinstance(step.expression, TRUTHS)):
        written = ": texts are joined by a function, not by signs" if step.type.kind == "text" else ""
        raise ProcedureError(
            f"step {step.id!r}: its expression gives a number, which is no {step.type.kind}{written}", step=step.id
        )
    amounts = percentages = False
    for name in step.reads:
        source = sources[name]
        kind = source.type
        # Remembered to skip the walk over the tree: most steps hold no money.
        amounts |= kind.currency is not None
        percentages |= kind.kind == "percent"
        if name in truths and kind.kind != "boolean":
            raise ProcedureError(
                f"step {step.id!r} joins truth values, and reads {name!r}, which is {kind}: compare it with something, "
                f"or declare {_declared(name, source, 'boolean')} where it is one",
                step=step.id,
            )
        if not copies and not kind.numeric and name not in truths:
            raise _no_number(step, "compares" if isinstance(step.expression, TRUTHS) else "computes with", name, source)
        # A plain copy computes nothing, so any kind may be copied into one that can hold it.
        if copies and not _copied(kind, step.type):
            mend = f"declare `{step.id}: {kind}`, or another type of {name!r}"
            if step.type.numeric and kind.kind == "text":
                mend = f"declare {_declared(name, source)} where it is a number, `{step.id}: text` where it is not"
            raise ProcedureError(
                f"step {step.id!r} is {step.type} and copies {name!r}, which is {kind}: {mend}", step=step.id
            )
    try:
        for node in walk(step.expression):
            check_divisors(node)
            percentages |= type(node) is Number and node.percent
        if percentages and not copies:
            type_of(step.expression, {name: sources[name].type for name in step.reads})
    except ProcedureError as error:
        raise ProcedureError(f"step {step.id!r}: {error.message}", step=step.id) from None
    currency = _currency_in(step, sources) if amounts else None
    return (
        step if currency in (None, step.type.currency) else Input(step.id, ValueType(kind="money", currency=currency))
    )


def _check_relations(step: Step, sources: Mapping[str, Input | Step]) -> None:
    for check in step.checks:
        # A check of your own, which has no `misfit`, may take anything for a document.
        document = sources.get(getattr(check, "document", "")) if callable(getattr(check, "misfit", None)) else None
        if document is not None and document.type.kind not in TEXTS:
            name = document.id if isinstance(document, Step) else document.name
            raise ProcedureError(
                f"step {step.id!r}: the check {check!r} needs a document, and {name!r} is {document.type}: give it a "
                "text, such as a field in a step of its own, `words: text = item.note`",
                step=step.id,
            )
        relations = getattr(check, "relations", None)
        for tree in relations if isinstance(relations, tuple) else ():
            names = names_in(tree) if isinstance(tree, Compare) else ()
            if not names or not {*names} <= {step.id, *step.reads}:  # one of your own may mean something else
                continue
            for name in names:
                if name != step.id and not sources[name].type.numeric:
                    raise _no_number(step, f"has the check {check!r}, which compares", name, sources[name])
            _money_in(tree, step, {step.id: step, **{name: sources[name] for name in step.reads}})


def _no_number(step: Step, does: str, name: str, source: Input | Step) -> ProcedureError:
    return ProcedureError(
        f"step {step.id!r} {does} numbers only, and reads {name!r}, which is {source.type}: declare "
        f"{_declared(name, source)} where it is one",
        step=step.id,
    )


def _declared(name: str, source: Input | Step, kind: str = "number") -> str:
    if isinstance(source, Step) and source.expression is None:  # its words have no place for a type
        return f'`{name}: {kind} = "..."`, its words in the quotes,'
    return f"`{name}: {kind}`"


def _currency_in(step: Step, sources: Mapping[str, Input | Step]) -> str | None:
    """The currency that a step's value is in, whatever its type says; None where it is in none.

    Raises ProcedureError: it adds or compares amounts in two currencies, or gives one as an amount in another.
    """
    assert step.expression is not None
    try:
        check_products(step.expression, lambda each: sources[each.name].type.currency)
    except ProcedureError as error:
        raise ProcedureError(f"step {step.id!r}: {error.message}", step=step.id) from None
    name = _money_in(step.expression, step, sources)
    currency = None if name is None else sources[name].type.currency
    if name is not None and step.type.currency not in (None, currency):
        raise _mixed(step, f"it is in {step.type.currency}", name, sources)
    if currency is not None and step.type.kind == "percent":
        raise ProcedureError(
            f"step {step.id!r} is percent, and {name!r} is in {currency}: divide it by an amount", step=step.id
        )
    return step.type.currency or (currency if step.type.numeric else None)


def _money_in(tree: Expression, step: Step, sources: Mapping[str, Input | Step]) -> str | None:
    """A name in whose currency the value of an expression is; None where it is in none.

    A product or a quotient may convert an amount: it is in no currency until a type says so. Where the step's type is
    silent, one that only scales an amount leaves it in its currency.
    """
    if isinstance(tree, Name):
        return None if sources[tree.name].type.currency is None else tree.name
    names = [name for part in parts_of(tree) if (name := _money_in(part, step, sources)) is not None]
    if isinstance(tree, Power | Logic | Not):
        return None
    if isinstance(tree, Chain) and not tree.additive:
        _check_remainders(tree, step, sources)
        # Before the rule for products: nothing is converted by a remainder.
        if set(tree.operators) == {"%"}:  # a remainder is part of the amount itself
            return _money_in(tree.operands[0], step, sources)
        if step.type.currency is not None:
            return None
        scaled = scaled_operand(tree, lambda each: sources[each.name].type, lambda part: _money_in(part, step, sources))
        return None if scaled is None else _money_in(scaled, step, sources)
    for name in names[1:]:
        if sources[name].type.currency != sources[names[0]].type.currency:
            raise _mixed(step, f"{names[0]!r} is in {sources[names[0]].type.currency}", name, sources)
    return names[0] if names else None


def _check_remainders(tree: Chain, step: Step, sources: Mapping[str, Input | Step]) -> None:
    """Two currencies have a quotient, which is a rate of exchange; no remainder, and no whole number of times."""
    one: str | None = None
    for operator, operand in zip(("*", *tree.operators), tree.operands, strict=True):
        other = _money_in(operand, step, sources)
        if operator in ("%", "//") and one and other and sources[one].type.currency != sources[other].type.currency:
            raise _mixed(step, f"{one!r} is in {sources[one].type.currency}", other, sources)
        one = other or one


def _mixed(step: Step, one: str, other: str, sources: Mapping[str, Input | Step]) -> ProcedureError:
    return ProcedureError(
        f"step {step.id!r} mixes currencies: {one}, and {other!r} is in {sources[other].type.currency}. Convert one by "
        "a product in a step of its own, such as `converted: money(EUR) = amount * rate`",
        step=step.id,
    )


def _copied(source: ValueType, target: ValueType) -> bool:
    """Whether a value of one type can be one of another as it stands."""
    texts = ("text", "one_of")
    if source.options and target.options:
        return not set(source.options).isdisjoint(target.options)
    alike = (source.numeric and target.numeric and fits(source, target)) or source.kind == target.kind
    return alike or (source.kind in texts and target.kind in texts)


def unknown_name(step: Step, name: str, later: Iterable[str]) -> ProcedureError:
    """The error for a step that reads an unknown name; `later` are the ids of itself and the steps behind it."""
    if name == step.id:
        return ProcedureError(f"step {step.id!r} reads its own value", step=step.id)
    if name in later:
        return ProcedureError(f"step {step.id!r} reads {name!r}, which only a later step sets", step=step.id)
    return ProcedureError(f"step {step.id!r} reads {name!r}, which is no input and set by no step", step=step.id)
