"""The scope in which a demand's expressions are evaluated.

A truth value may be unknown where a fact is that nobody has given; ``or`` and ``and`` are decided without it where they
can be. Everything else that has no value, a missing field, a division by zero, is an error.
"""

from __future__ import annotations

from collections.abc import Mapping

from stepguard.errors import EvaluationError
from stepguard.language.evaluation import shortened
from stepguard.language.expressions import Expression, Logic, Not
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.operands import Choice, variables_in
from stepguard.language.values import Value
from stepguard.policy.declarations import FactMissing
from stepguard.policy.rules import ExpressionLike, tree_of

NO_TIME = "the host gave no time: offer the call with `now=...`"


class RuleScope(dict[str, Value]):
    """The values by their names; a fact that is not known raises, and so does the clock that nobody gave.

    Args:
        values: what is known.
        facts: the names of the facts, which only the host knows.
        tables: the tables, and the facts with keys.
        secret: the names of what only the host knows, facts and what was worked out from them; None: the facts alone.
    """

    def __init__(
        self,
        values: Mapping[str, Value],
        facts: frozenset[str],
        tables: Mapping[str, Table],
        secret: frozenset[str] | None = None,
    ) -> None:
        super().__init__(values)
        self._facts = facts
        self._tables = tables
        self._secret = facts if secret is None else secret

    # A dictionary that raises: what is unknown is told apart from what is wrong, wherever an expression reads it.
    def __missing__(self, name: str) -> Value:
        if name in self._facts:
            raise FactMissing(name)
        raise EvaluationError(NO_TIME if name in ("now", "today") else f"{name} has no value here")

    def inner(self) -> RuleScope:
        """A scope in this one: what is bound in it is not known outside."""
        return RuleScope(self, self._facts, self._tables, self._secret)

    def bind(self, name: str, value: Value, source: ExpressionLike) -> None:
        """Bind a name to the value of an expression; it is secret where the expression reads a secret."""
        self[name] = value
        if self.hides(source):
            self._secret |= {name}

    def hides(self, given: ExpressionLike) -> bool:
        """Whether an expression reads what only the host knows."""
        return not self._secret.isdisjoint(variables_in(tree_of(given)))

    def value(self, given: ExpressionLike) -> Value:
        """Evaluate an expression.

        Raises:
            FactMissing: a fact is not known.
            EvaluationError: it has no value.
        """
        try:
            return evaluate_term(tree_of(given), self, self._tables)
        except KeyError as error:
            raise EvaluationError(f"{error.args[0]} has no value here") from None

    def truth(self, given: ExpressionLike, missing: list[FactMissing]) -> bool | None:
        """Whether a condition holds, None where that hangs on facts that are not known; they are added to `missing`.

        Raises EvaluationError: it has no value.
        """
        tree: Expression = tree_of(given)
        match tree:
            case Logic(operator, operands):
                # Kleene's logic: one operand that decides is enough, whatever is unknown about the others.
                decides = operator == "or"
                unknown = False
                for operand in operands:
                    truth = self.truth(operand, missing)
                    if truth is decides:
                        return decides
                    unknown = unknown or truth is None
                return None if unknown else not decides
            case Not(operand):
                truth = self.truth(operand, missing)
                return None if truth is None else not truth
            case Choice(then, condition, otherwise):
                truth = self.truth(condition, missing)
                return None if truth is None else self.truth(then if truth else otherwise, missing)
        try:
            value = self.value(tree)
        except FactMissing as fact:
            missing.append(fact)
            return None
        if type(value) is not bool:
            raise EvaluationError(f"{shortened(tree)} is no truth value")
        return value
