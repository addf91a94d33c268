"""Faults planted in the judge of policies, each of which lets a call through or stops one: do the tests notice?

    python benchmarks/gate_mutation.py [--hostile] [--only 3,17]

Every fault is one changed place of the gate, made by hand, as somebody could make it by mistake. By default the tests
of the gate run against it; with `--hostile` the generated agents of `tests/policy/test_hostile_agents.py` alone, at up
to 20,000 attempts. Printed is the first test that fails.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from mutation import ROOT, _Finder, _Order, in_child, run_tests


class Fault(NamedTuple):
    """A fault: the text `new` in the place of `old` in a module of the gate."""

    name: str
    module: str
    old: str
    new: str


FAULTS: Final = tuple(
    Fault(*each)
    for each in (
        ("a limit has one more", "judging", ">= demand.most:", "> demand.most:"),
        ("a window is twice as long", "judging", "each.at > since]", "each.at > since - span]"),
        ("a window is half as long", "judging", "each.at is None or each.at > since", "each.at > since + span / 2"),
        ("a call counts once", "judging", " + sum(each == limit for each in self.judgement.spent)", ""),
        ("a1 has a limit of its own", "judging",
         "show_value(folded(scope.value(each)))", "show_value(scope.value(each))"),
        ("the oldest look counts", "judging", "max(sights, key=lambda", "min(sights, key=lambda"),
        ("a stale look counts", "judging", 'or state != "fresh"', 'or state == "unanswered"'),
        ("a look before an answer counts", "judging", 'or state != "fresh"', 'or state == "stale"'),
        ("seen all has stale looks", "judging", 'if self.history.state_of(sight) != "fresh":', "if False:"),
        ("done before its answer", "judging", 'if not any(\n            call.status == "succeeded"',
         'if not any(\n            call.status in ("succeeded", "pending")'),
        ("done where it failed", "judging", 'if not any(\n            call.status == "succeeded"',
         'if not any(\n            call.status != "pending"'),
        ("done to a1", "judging",
         "call.values is not None and not _spelling(call.values, wanted)\n", "call.values is not None\n"),
        ("all spellings or none are meant", "judging", "for count in range(len(spellings))", "for count in range(1)"),
        ("a look at a1", "judging", "if not _spelling(each.values, wanted)]", "]"),
        ("a broken demand is not asked about", "judging", "if trial.reasons or trial.pending:", "if trial.pending:"),
        ("a kept demand spends no limit", "judging", "            outer.spent = trial.spent\n", ""),
        ("a trial counts from nothing", "judging", "CallJudgement(spent=list(outer.spent))", "CallJudgement()"),
        ("an error is done", "judging", "call.whole and ", ""),
        ("an error is seen", "judging", "else not newest.whole:", "else False:"),
        ("an error is a new state", "memory", " or not call.whole:", ":"),
        ("a text is what it shows", "reading", "given = str.__str__(given)", "given = str(given)"),
        ("a time that is shown twice", "reading", "zone.utcoffset(moment) !=", "False and zone.utcoffset(moment) !="),
        ("another dash", "reading", ".translate(_ALIKE)", ""),
        ("a kept demand uses no yes", "judging", "            outer.yeses |= trial.yeses\n", ""),
        ("an unknown branch is the other one", "judging",
         "            if truth is None:\n                return\n", ""),
        ("an unknown fact is not asked", "judging",
         "        if truth is None:\n            self.ask_facts(missing, demand)\n        return truth",
         "        return truth"),
        ("the first item alone", "judging", "self.body(body, inner, path)\n", "self.body(body, inner, path)\n"
         "                    break\n"),
        ("no else", "judging", 'self.body(demand.otherwise, scope.inner(), f"{path}.else")', "return"),
        ("refuse if is require", "judging", "truth == demand.negated", "not truth"),
        ("a yes of anybody", "judging", "if by not in self.confirmed", "if not self.confirmed"),
        ("a yes is not used up", "gate", "for by in judgement.yeses:", "for by in ():"),
        ("a yes to every call", "memory", "as_json({**data, **exact})]", '""]'),
        ("a yes to every amount", "memory", "as_json({**data, **exact})]", 'as_json(data.get("account"))]'),
        ("what is undecided goes on", "judging", "        raise _Stopped\n\n    def ask_facts", "\n    def ask_facts"),
        ("nothing done counts", "history", 'return self.status != "not_done"', "return True"),
        ("failed does not count", "history",
         'return self.status != "not_done"', 'return self.status not in ("not_done", "failed")'),
        ("unanswered does not count", "history", 'return self.status != "not_done"',
         'return self.status not in ("not_done", "pending")'),
        ("a failed change changes nothing", "history", 'any(each != "not_done" for', 'any(each == "succeeded" for'),
        ("a look during a change", "history",
         "(number > sight.number or number in sight.open)", "number > sight.number"),
        ("a look while everything changes", "history",
         "[number for number in sight.open if number in self._all_changed]", "[]"),
        ("everything changed is ignored", "history", "self._all_changed[number] = None", "pass"),
        ("what was not read does not count", "history", "self._unread.get(tool, []) if listed else []", "[]"),
        ("an older look replaces a newer", "history",
         "each.number > sight.number for each in same", "False for each in same"),
        ("the result of two changes", "memory", "if len(alike) == 1 and len", "if alike and len"),
        ("no new state", "memory", "            self.history.see(alike[0][0]", "            print(alike[0][0]"),
        ("another call by its identifier", "gate", "before.says(name, values, data)", "True"),
        ("an answered call again", "gate", '(self._reused_ids or before.status == "not_done")', "True"),
        ("a key twice", "arguments", "isinstance(given, JsonObject) and given.repeated", "False"),
        ("another spelling", "gate", "if self._memory.known.misspelt(values[name]):", "if False:"),
        ("resumed without limits", "history", 'tuple((path, key) for path, key in state["spent"])', "()"),
        ("resumed without yeses", "memory", '*change.get("yeses", ()), ', ""),
        ("resumed without open calls", "history", 'tuple(state["open"])', "()"),
        ("resumed with every call answered", "memory", "self.open.add(call.number)", "pass"),
        ("or takes what is false", "scope", "if truth is decides:", "if truth is not decides:"),
        ("and takes what is unknown", "scope", "return None if unknown else not decides", "return not decides"),
        ("not takes what is unknown", "scope", "return None if truth is None else not truth", "return not truth"),
        ("the first rule alone", "judging", "in enumerate(tool.rules):", "in enumerate(tool.rules[:1]):"),
        ("a1 was not done", "history", "call.plain[name] == value for name, value in plain.items()",
         "call.values[name] == value for name, value in wanted.items()"),
        ("a partial record is whole", "reading", "return PartialRecord(values)", "return Record(values)"),
        ("the zone of a moment is lost", "reading", "if moment.tzinfo is None else", "if True else"),
        ("another currency", "reading", "else kind.accept(given)\n        return",
         'else kind.accept(given.replace("USD", "EUR"))\n        return'),
        ("an exemption is reversed", "judging", "if truth is not exemption.counts:", "if truth is exemption.counts:"),
    )
)  # fmt: skip
GATE: Final = [
    f"tests/policy/test_{name}.py"
    for name in ("gate_faults", "policy_gate", "policy_loopholes", "policy_errors", "tool_gate")
]
HOSTILE: Final = "tests/policy/test_hostile_agents.py"
LIMIT: Final = 900


class _FirstFailure(_Order):
    """Remembers the test that failed alone."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.seconds = {report.nodeid: report.duration}


def faulty_module(fault: Fault) -> _Finder:
    """What serves the module with the fault."""
    path = ROOT / "stepguard" / "policy" / f"{fault.module}.py"
    source = path.read_text(encoding="utf-8")
    if source.count(fault.old) != 1:
        raise SystemExit(f"{fault.name}: {fault.old!r} stands {source.count(fault.old)} times in {path.name}")
    return _Finder(f"stepguard.policy.{fault.module}", path, ast.parse(source.replace(fault.old, fault.new)))


def first_failure(
    finder: _Finder, order: type[_Order], known: dict[str, float], tests: list[str]
) -> tuple[int, list[str]]:
    """The status of the tests with a fault, and the first that failed."""
    with tempfile.NamedTemporaryFile() as record:
        status = in_child(lambda: run_tests(finder, tests, order(known), record.name), LIMIT)
        return status, list(json.loads(Path(record.name).read_text() or "{}"))


def main() -> None:
    """Fault every fault, and print what catches it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hostile", action="store_true", help="the generated agents alone")
    parser.add_argument("--only", type=lambda text: [int(each) for each in text.split(",")], help="faults by number")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    numbers = range(len(FAULTS)) if options.only is None else options.only
    finders = {number: faulty_module(FAULTS[number]) for number in numbers}
    started = time.perf_counter()
    long = [f"{HOSTILE}::test_none_of_a_hundred_thousand_forbidden_calls_passes[{seed}]" for seed in (0, 1)]
    quick = [f"{HOSTILE}::test_no_forbidden_call_passes", f"{HOSTILE}::test_no_permitted_call_is_refused"]
    tests = [*quick, *long] if options.hostile else ["-m", "not slow", *GATE, HOSTILE]
    known: dict[str, float] = {}
    if not options.hostile:
        with tempfile.NamedTemporaryFile() as record:
            unchanged = _Finder("none", ROOT, ast.parse(""))
            if in_child(lambda: run_tests(unchanged, tests, _Order({}), record.name), LIMIT):
                raise SystemExit("the tests fail without a fault")
            known = json.loads(Path(record.name).read_text())
    caught = 0
    for number, finder in finders.items():
        status, names = first_failure(finder, _FirstFailure, known, tests)
        caught += status == 1 and bool(names)
        shown = names[0] if names else f"NOT CAUGHT (status {status})"
        print(f"{number:2} {FAULTS[number].name}: {shown}", flush=True)
    print(f"{caught} of {len(finders)} faults caught, {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
