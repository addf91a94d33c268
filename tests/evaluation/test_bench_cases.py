"""The benchmark on a procedure of one's own: cases that are checked first, truth that is named, errors with lines."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import pytest

from stepguard import Procedure
from stepguard.backends.base import Completion, Request
from stepguard.cli import main
from stepguard.errors import ConfigError
from stepguard.evaluation.arms import ArmOptions, TaskOutcome, read_run
from stepguard.evaluation.cases.cases import CaseFamily, load_cases
from stepguard.evaluation.report.examples import make_task, mark, replay
from stepguard.evaluation.report.figures import make_studies
from stepguard.evaluation.report.html_report import make_report
from stepguard.evaluation.report.results_file import make_results, make_table
from stepguard.evaluation.runner import Plan, SimulatedTasks, run_plan
from stepguard.testing import SimulatedModel, Slips, no_real_requests

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
BILL = """name: bill
inputs: price: decimal(2), rate: percent
tax: decimal(2) = price * rate
total: decimal(2) = price + tax
"""
CASES = [
    '{"inputs": {"price": "24.90", "rate": "8.25%"}, "expected": "26.95", "id": "lunch"}',
    '{"inputs": {"price": 10, "rate": "19%"}, "expected": 11.90}',
    '{"inputs": {"price": 0.10, "rate": "5%"}, "expected": 0.11, "steps": {"tax": 0.01}}',
]
LETTER = """inputs: note: text, fee: decimal(2)
country: text = "Name the country in the note." (reads note)
tier: one_of(low, high) = "Say whether the fee is low or high." (reads fee)
due: decimal(2) = fee * 2
greeting: text = "Write a greeting." (reads country)
answer: due
"""
LETTERS = [
    '{"inputs": {"note": "Lyon", "fee": 3}, "expected": 6, "steps": {"country": "France", "tier": "low"}}',
    '{"inputs": {"note": "Rome", "fee": 90}, "expected": 180, "steps": {"tier": "high"}}',
]


def write(folder: Path, procedure: str = BILL, cases: list[str] | str = CASES, name: str = "cases.jsonl") -> list[str]:
    """The files of a benchmark, and the command for it."""
    (folder / "own.txt").write_text(procedure, encoding="utf-8")
    text = cases if isinstance(cases, str) else "".join(f"{line}\n" for line in cases)
    (folder / name).write_bytes(text.encode())
    return ["bench", "--procedure", str(folder / "own.txt"), "--cases", str(folder / name)]


def load(folder: Path, procedure: str = BILL, cases: list[str] | str = CASES, name: str = "cases.jsonl") -> CaseFamily:
    write(folder, procedure, cases, name)
    return load_cases(Procedure.load(folder / "own.txt"), folder / name)


def run(family: CaseFamily, backend: Any, **options: Any) -> list[TaskOutcome]:
    cells = {family.length: len(family.cases)}
    plan = Plan(family=family, cells=cells, arms=("cot", "chunk", "guard"), seed=0, options=ArmOptions())
    return asyncio.run(run_plan(plan, backend, configuration={}, concurrency=2, **options))


def by_arm(outcomes: list[TaskOutcome]) -> dict[str, dict[str, Any]]:
    return {row["arm"]: row for row in make_results(outcomes, {})["rows"]}


class Stubborn:
    """Does everything right but one step of one price, which it always gets wrong by a cent."""

    def __init__(self) -> None:
        self._model = SimulatedModel(slips=Slips.none())

    def complete(self, request: Request) -> Completion:
        completion = self._model.complete(request)
        text = completion.text or ""
        # In whatever way it is asked, the last of smaller steps included.
        if any(
            each in request.messages[-1].content
            for each in ("24.9", "0.0825", "8.25%", "0.07425", "0.01245", "2.241", "0.40425", "2.05425")
        ):
            text = text.replace("= 2.05", "= 2.06").replace("24.9 + 2.05 = 26.95", "24.9 + 2.06 = 26.96")
            text = text.replace("Answer: 26.95", "Answer: 26.96")
        return Completion(text, usage=completion.usage)


# Runs


def test_a_right_model_is_right_in_every_arm(tmp_path: Path) -> None:
    """A model that errs nowhere gets every case and every step right, and the guard vouches for all of them."""
    found = by_arm(run(load(tmp_path), SimulatedModel(slips=Slips.none())))
    for row in found.values():
        assert (row["n"], row["length"], row["accuracy"], row["trace_accuracy"]) == (3, 2, 1, 1)
    assert found["guard"]["verified"] == 1


def test_a_wrong_model_is_wrong_unguarded_and_named_by_the_guard(tmp_path: Path) -> None:
    """A step that a model insists on getting wrong makes both unguarded arms wrong; the guard abstains."""
    found = by_arm(run(load(tmp_path), Stubborn()))
    for arm in ("cot", "chunk"):
        assert found[arm]["accuracy"] == pytest.approx(2 / 3)
        assert found[arm]["abstained"] == 0
    assert found["guard"]["accuracy"] == found["guard"]["verified"] == pytest.approx(2 / 3)
    assert found["guard"]["abstained"] == pytest.approx(1 / 3)
    assert found["guard"]["silent_errors"] == 0


def test_the_command_runs_all_cases_on_the_simulated_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a model the simulated one answers, for every case of the file, and the results say what was run."""
    assert main([*write(tmp_path), "--out", str(tmp_path / "out")]) == 0
    assert "SIMULATED MODEL" in capsys.readouterr().out
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    rows = [(row["arm"], row["task"], row["length"], row["n"]) for row in results["rows"]]
    assert rows == [(arm, "bill", 2, 3) for arm in ("cot", "chunk", "guard")]
    meta = results["meta"]
    assert (meta["procedure"], meta["cases"], meta["steps_judged"]) == ("own.txt", "cases.jsonl", 2)
    assert meta["case_ids"] == ["lunch", "line 2", "line 3"]
    assert meta["truth"].startswith("3 of 3 expected answers stand in the cases; 2 of 2 steps are judged")
    assert "warning" not in meta


def test_the_first_cases_are_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-n takes the first so many cases, and no more than there are."""
    command = write(tmp_path)
    assert main([*command, "-n", "2", "--json", "--arms", "guard"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["n"] == 2
    assert main([*command, "-n", "4"]) == 2
    assert "how many of the 3 cases in" in capsys.readouterr().err


def test_the_report_shows_runs_of_the_cases(tmp_path: Path) -> None:
    """A guarded run is replayed from its replies and an unguarded one marked, though the family is no named one."""
    family = load(tmp_path)
    outcomes = run(family, Stubborn())
    guarded = next(each for each in outcomes if each.arm == "guard" and each.seed == 0)
    assert replay(guarded, {}) is None
    assert replay(guarded, {}, family) is not None
    free = next(each for each in outcomes if each.arm == "cot" and each.seed == 0)
    task = make_task(free, family)
    assert task is not None
    marked = mark(free, task)
    assert marked is not None
    assert [line.judged for line in marked[0]] == ["slip", "carried", None]


def test_the_report_names_the_command_and_the_truth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """report.html repeats the command with the files, and says where the right values come from."""
    assert main([*write(tmp_path), "--out", str(tmp_path / "out")]) == 0
    report = (tmp_path / "out" / "report.html").read_text(encoding="ascii")
    assert "stepguard bench --procedure own.txt --cases cases.jsonl -n 3" in report
    assert "3 of 3 expected answers stand in the cases" in report
    assert "The guard did not go the same way" not in report
    assert str(tmp_path) not in report


# What is right


def test_numbers_are_read_exactly(tmp_path: Path) -> None:
    """A number of JSON is the decimal that stands there: what binary floats make of 0.1 + 0.2 is refused."""
    procedure = "inputs: a, b\nsum = a + b"
    family = load(tmp_path, procedure, ['{"inputs": {"a": 0.1, "b": 0.2}, "expected": 0.3}'])
    assert str(family.make(0, 1).truth["sum"]) == "3/10"
    long = "0.1000000000000000055511151231257827021181583404541015625"
    assert load(tmp_path, procedure, [f'{{"inputs": {{"a": {long}, "b": 0}}, "expected": {long}}}'])
    with pytest.raises(ConfigError, match=r"line 1: expected is 0\.30000000000000004 for 'sum'.* exactly 0\.3;"):
        load(tmp_path, procedure, ['{"inputs": {"a": 0.1, "b": 0.2}, "expected": 0.30000000000000004}'])


def test_an_answer_that_contradicts_the_formulas_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong expected answer is no truth to measure by: both values and the line are named, and nothing is run."""
    command = write(tmp_path, cases=[CASES[0], "", CASES[1].replace("11.90", "11.91")])
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "cases.jsonl, line 3: expected is 11.91 for 'total'" in said
    assert "the formulas of bill give exactly 11.90; mend the case or the procedure" in said


def test_a_step_that_contradicts_the_formulas_is_refused(tmp_path: Path) -> None:
    """So is a wrong value of a step before the answer."""
    with pytest.raises(ConfigError, match=r"line 1: the case says 0\.02 for 'tax'.* exactly 0\.01;"):
        load(tmp_path, cases=[CASES[2].replace('"tax": 0.01', '"tax": 0.02')])


def test_an_answer_and_a_step_have_to_agree(tmp_path: Path) -> None:
    """The answer may be named twice, but not as two values."""
    twice = CASES[1].replace('"expected"', '"steps": {"total": 11.90}, "expected"')
    assert load(tmp_path, cases=[twice]).make(0, 2).answer == Decimal("11.90")
    with pytest.raises(ConfigError, match=r"line 1: 'total' is expected to be 11\.91 and 11\.90; keep one"):
        load(tmp_path, cases=[twice.replace('"expected": 11.90', '"expected": 11.91')])


def test_computed_truth_is_said_loudly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without expected answers the formulas give them, and every output says that this hides errors of theirs."""
    command = write(tmp_path, cases=['{"inputs": {"price": 10, "rate": "19%"}}', CASES[0]])
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    said = "TRUTH COMPUTED: 1 of 2 cases name no expected answer"
    assert said in printed.err
    assert said in printed.out
    assert said in results["meta"]["warning"]
    assert f'<p class="banner" role="note">{said}' in (tmp_path / "out" / "report.html").read_text(encoding="ascii")


def test_words_need_an_expected_answer(tmp_path: Path) -> None:
    """Where a step has no formula the answer cannot be computed, and a case without one is refused."""
    with pytest.raises(ConfigError, match=r'line 2: "expected" is missing: step \'country\' has no formula'):
        load(tmp_path, LETTER, [LETTERS[0], '{"inputs": {"note": "Oslo", "fee": 4}}'])


def test_steps_without_a_known_value_are_not_judged(tmp_path: Path) -> None:
    """What is known in every case is judged, and of no run it is claimed that every step is right."""
    family = load(tmp_path, LETTER, LETTERS)
    assert family.judged == ("tier", "due")
    outcomes = run(family, SimulatedTasks(slips=Slips.none()))
    for outcome in outcomes:
        assert (outcome.right, outcome.trace_right, outcome.steps_right, outcome.judged) == (True, False, 2, 2)
    results = make_results(outcomes, family.describe(2))
    for row in results["rows"]:
        assert (row["trace_accuracy"], row["trace_interval"], row["step_accuracy"]) == (None, None, 1)
    assert {line[5] for line in make_table(results)[1:]} == {"n/a"}
    assert "2 of 4 steps are judged, since no right value is known of the others" in results["meta"]["truth"]
    (study,) = make_studies(outcomes)
    assert not study.whole


def test_a_report_claims_nothing_of_steps_that_are_not_judged(tmp_path: Path) -> None:
    """No chart and no share of every step right stands in the report then."""
    family = load(tmp_path, LETTER, LETTERS)
    report = make_report(run(family, SimulatedTasks(slips=Slips.none())), family.describe(2), family=family)
    assert "<figcaption>Every step right" not in report
    assert "n/a" in report
    assert "of all judged steps" in report


def test_words_that_nobody_can_answer_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a model, a step in words whose value no case gives ends the command before anything is run."""
    assert main([*write(tmp_path, LETTER, LETTERS), "--out", str(tmp_path / "out")]) == 2
    complaint = capsys.readouterr().err
    assert "step greeting is described in words" in complaint
    assert '"steps"' in complaint


def test_wrong_words_count_as_wrong(tmp_path: Path) -> None:
    """A step in words is judged by the case, although the guard can only take it unverified."""
    cases = [line.replace('"tier": "low"', '"tier": "high"') for line in LETTERS]
    outcomes = run(load(tmp_path, LETTER, LETTERS), _answering(load(tmp_path, LETTER, cases)))
    for outcome in outcomes:
        assert outcome.steps_right == (1 if outcome.seed == 0 else 2)
        assert not outcome.verified
        assert outcome.silent_errors == 0


def _answering(other: CaseFamily) -> Any:
    """A simulated model that is told the answers of other cases."""

    class Told:
        def for_task(self, task: Any) -> Any:
            return SimulatedTasks(slips=Slips.none()).for_task(other.make(task.seed, len(task.procedure)))

    return Told()


def test_an_answer_in_words_is_taken_from_the_case(tmp_path: Path) -> None:
    """The last step may be one in words: its right value is the expected answer."""
    procedure = 'inputs: fee\ntier: one_of(low, high) = "Say whether the fee is low or high." (reads fee)'
    family = load(tmp_path, procedure, ['{"inputs": {"fee": 3}, "expected": "LOW"}'])
    assert family.make(0, 1).truth == {"tier": "low"}
    assert all(outcome.right for outcome in run(family, SimulatedTasks(slips=Slips.none())))


@pytest.mark.parametrize("text", ["u = v", "Dear Sir.", "two\\nlines", " blank", '\\"quoted\\"'])
def test_text_that_no_free_transcript_can_give_back_is_refused(tmp_path: Path, text: str) -> None:
    """Unguarded runs could never be right there, so that such a case would favour the guard."""
    procedure = 'inputs: fee\ngreeting: text = "Write a greeting." (reads fee)'
    with pytest.raises(ConfigError, match=r"line 1: the value '.*' of step 'greeting' cannot be read back"):
        load(tmp_path, procedure, [f'{{"inputs": {{"fee": 3}}, "expected": "{text}"}}'])
    assert load(tmp_path, procedure, ['{"inputs": {"fee": 3}, "expected": "Dear Sir or Madam"}'])


# What the model is shown


class Listening:
    """Keeps every message that it is asked with."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self._model = SimulatedModel(slips=Slips.none())

    def complete(self, request: Request) -> Completion:
        self.heard += [message.content for message in request.messages]
        return self._model.complete(request)


def test_what_is_expected_enters_no_prompt(tmp_path: Path) -> None:
    """Neither the expected answer nor the right values of steps are shown to the model."""
    model = Listening()
    case = (
        LETTERS[0].replace("France", "Ruritania").replace('"fee": 3}, "expected": 6', '"fee": 4567}, "expected": 9134')
    )
    run(load(tmp_path, LETTER, [case]), model)
    assert any("4567" in text for text in model.heard)
    assert not any("Ruritania" in text or "9134" in text for text in model.heard)


def test_the_demonstration_fits_the_kinds_of_steps_and_is_of_no_case(tmp_path: Path) -> None:
    """The free-text arm sees one right example of the kinds that the procedure has, the same for all cases."""
    family = load(tmp_path)
    one, other = family.make(0, 2).demonstration, family.make(1, 2).demonstration
    assert one == other
    assert "rounded to 2 decimal places" in one.question
    assert one.answer.endswith("s4 = s2 / b = 66 / 36 = 1.83\nAnswer: 1.83")
    assert "its formula" in one.system
    assert not {"price", "24.90", "26.95"} & set(re.findall(r"[\w.]+", one.question + one.answer))
    worded = load(tmp_path, LETTER, LETTERS).make(0, 4).demonstration
    assert "s7: Name the country in c." in worded.question
    assert "s7 = c is Lyon, France = France" in worded.answer
    assert "the working in short" in worded.system


def test_an_answer_that_is_not_the_last_step_is_asked_for(tmp_path: Path) -> None:
    """The free-text arm is told which value is the answer, and its answer line is read as one of that type."""
    procedure = BILL.replace("total: decimal(2) = price + tax", "total: decimal(2) = price + tax\ncheap = total < 20")
    procedure += "answer: total\n"
    family = load(tmp_path, procedure, CASES)
    task = family.make(0, 3)
    assert task.statement.endswith("\nAsked for: total")
    assert "Answer: and the value that is asked for." in task.demonstration.system
    assert "\nAsked for: " in task.demonstration.question
    assert list(task.truth) == ["tax", "cheap", "total"]
    assert read_run(task, "Answer: 26.95").strict == task.answer
    assert all(outcome.right for outcome in run(family, SimulatedTasks(slips=Slips.none())))


# Files


def test_all_notations_give_the_same_cases(tmp_path: Path) -> None:
    """JSON lines, with blank lines and a byte order mark, a list in JSON, and a CSV hold the same cases."""
    lines = load(tmp_path, cases="\ufeff\n" + "\r\n\r\n".join(CASES))
    assert [case.line for case in lines.cases] == [2, 4, 6]
    listed = load(tmp_path, cases="\ufeff[\n" + ",\n".join(CASES) + "\n]\n", name="cases.json")
    assert [case.line for case in listed.cases] == [2, 3, 4]
    table = 'id,price,rate,tax,expected\r\nlunch,24.90,8.25%,,26.95\r\n\r\n,10,19%,,"11.90"\r\n,0.10,5%,0.01,0.11\r\n'
    columns = load(tmp_path, cases="\ufeff" + table, name="cases.csv")
    assert [case.line for case in columns.cases] == [2, 4, 5]
    assert lines.fingerprint() == listed.fingerprint() == columns.fingerprint()


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        *(("", "cases.jsonl: holds no cases"), ("\n\n", "holds no cases")),
        ([CASES[0], "{oops}"], "line 2: is no JSON: Expecting property name"),
        ([CASES[0], "", '{"inputs": {"price": NaN}}'], "line 3: is no JSON: NaN is no JSON"),
        ([f"[{CASES[0]}]"], "line 1: a case is an object such as"),
        ([f"[{CASES[0]}]"], "a list of cases goes into a file that ends in .json"),
        (['{"inputs": 3}'], 'line 1: "inputs" is an object'),
        (['{"inputs": {}, "inputs": {}}'], "line 1: a case: 'inputs' stands twice"),
        (['{"inputs": {"price": 1, "price": 2}}'], "\"inputs\": 'price' stands twice"),
        (['{"inputs": {}, "expcted": 3}'], "a case has no 'expcted': did you mean 'expected'?"),
        ([CASES[0], '{"inputs": {"price": 1}, "expected": 2}'], "line 2: input 'rate' of bill is missing"),
        ([CASES[1].replace("price", "prize")], "bill has no input 'prize': it declares price, rate"),
        ([CASES[1].replace("10", '"ten"')], "line 1: input 'price' of bill: 'ten'"),
        ([CASES[1].replace("10", "1.005")], "1.005 has more than 2 decimal places"),
        ([CASES[1].replace("10", "null")], "'null': a value of type decimal(2, half_up) was expected"),
        ([CASES[1].replace("10", "[10]")], "'a list': a value of type decimal(2, half_up) was expected"),
        ([CASES[1].replace("10", "true")], "a truth value is not of type decimal"),
        ([CASES[1].replace('"19%"', "0.19")], "a percentage without its sign: give it with the sign, as in 5%"),
        ([CASES[1].replace("11.90", '"a lot"')], "expected, the right value of 'total', is no decimal(2, half_up)"),
        ([CASES[2].replace('"tax"', '"tux"')], "line 1: bill has no step 'tux': did you mean 'tax'?"),
        ([CASES[1].replace('"expected"', '"id": " ", "expected"')], '"id" is text or a number'),
        ([CASES[0], CASES[1].replace('"expected"', '"id": "lunch", "expected"')], "line 2: the id 'lunch' is that of"),
        ([CASES[1], CASES[0], CASES[1]], "line 3: has the same inputs as the case in line 1"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_line(tmp_path: Path, cases: list[str] | str, said: str) -> None:
    """What is found, where and what to do is said of every kind of fault, before anything is run."""
    with pytest.raises(ConfigError, match=re.escape(said)) as found:
        load(tmp_path, cases=cases)
    assert str(tmp_path / "cases.jsonl") in str(found.value)


@pytest.mark.parametrize(
    ("name", "cases", "said"),
    [
        *(("cases.json", "", "holds no cases"), ("cases.json", "[]", "holds no cases")),
        ("cases.json", "\n" + CASES[0], "line 2: a .json file of cases holds one list"),
        ("cases.json", f"[\n{CASES[0]}\n{CASES[1]}]", "line 3: is no JSON: cases are separated by commas"),
        ("cases.json", f"[{CASES[0]},\n]", "line 2: is no JSON"),
        ("cases.json", f"[{CASES[0]}] x", "line 1: is no JSON"),
        ("cases.json", f"[{CASES[1]}, {CASES[1]}]", "line 1: has the same inputs as the case in line 1"),
        ("cases.csv", "price,rate\n", "holds no cases"),
        ("cases.csv", "price,rat\n1,5%\n", "line 1: no column is called 'rat': use price, rate, tax, total, expected"),
        ("cases.csv", "price;rate\n1;5%\n", "columns are separated by commas"),
        ("cases.csv", "price,price\n1,1\n", "line 1: the column 'price' stands twice"),
        ("cases.csv", "price,rate\n1,234.00,5%\n", "line 2: has 3 cells, the header 2"),
        ("cases.csv", "price,rate\n,5%\n", "line 2: input 'price' of bill is missing"),
        ("cases.csv", 'price,rate\n"1,5%\n', "line 2: is no CSV"),
    ],
)
def test_other_notations_are_refused_with_their_line(tmp_path: Path, name: str, cases: str, said: str) -> None:
    """Lists in JSON and CSV files tell their faults as well."""
    with pytest.raises(ConfigError, match=re.escape(said)):
        load(tmp_path, cases=cases, name=name)


def test_columns_that_could_mean_two_things_are_refused(tmp_path: Path) -> None:
    """A variable called like a column of every CSV needs another notation."""
    with pytest.raises(ConfigError, match=r"'expected'.* write the cases as JSON lines"):
        load(tmp_path, "inputs: expected\nt = expected + 1", "expected\n1\n", name="cases.csv")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing file, and one that is no UTF-8, end with exit code 2."""
    command = write(tmp_path)
    assert main([*command[:-1], str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl: cannot be read" in capsys.readouterr().err
    (tmp_path / "cases.jsonl").write_bytes("\n".join(CASES).encode("utf-16"))
    assert main(command) == 2
    assert "is not UTF-8 text (byte 0): save it as UTF-8" in capsys.readouterr().err


def test_numbers_are_no_text(tmp_path: Path) -> None:
    """A bare number where text is declared may be a slip, so it is not taken for the text of its digits."""
    with pytest.raises(ConfigError, match=r"'5': a value of type text was expected, found a number"):
        load(tmp_path, LETTER, ['{"inputs": {"note": 5, "fee": 3}, "expected": 6}'])


# Procedures that cases cannot measure


def test_inputs_without_a_value_of_every_step_are_refused(tmp_path: Path) -> None:
    """Where a formula has no value nothing is right, and the case is refused with the step."""
    procedure = "inputs: a, b\nshare = a / b"
    with pytest.raises(ConfigError, match=r"line 2: step 'share' has no value with these inputs \(division by zero"):
        load(tmp_path, procedure, ['{"inputs": {"a": 1, "b": 2}}', '{"inputs": {"a": 1, "b": 0}, "expected": 1}'])


def test_tolerances_and_given_answers_are_refused(tmp_path: Path) -> None:
    """What is right within a tolerance is not exact, and an answer that is an input needs no model."""
    with pytest.raises(ConfigError, match=r"step 's' of .* within 0\.01 .* declare places"):
        load(tmp_path, "inputs: a\ns: number(within 0.01) = a / 3", ['{"inputs": {"a": 1}}'])
    with pytest.raises(ConfigError, match="is its input 'a'"):
        load(tmp_path, "inputs: a\ns = a / 3\nanswer: a", ['{"inputs": {"a": 1}}'])


def test_a_family_has_only_its_cases(tmp_path: Path) -> None:
    """A number or length that there is not is refused, not made up."""
    family = load(tmp_path)
    for seed, length in ((3, 2), (-1, 2), (0, 5)):
        with pytest.raises(ConfigError, match="cases 0 to 2 of 2 steps"):
            family.make(seed, length)


def test_a_procedure_is_not_taken_for_a_family_of_the_same_name(tmp_path: Path) -> None:
    """One that is called like a bundled family gets another name in tables, and one without a name its file's."""
    assert load(tmp_path, BILL.replace("name: bill", "name: arithmetic")).name == "procedure arithmetic"
    assert load(tmp_path, BILL.replace("name: bill\n", "")).name == "own"


# The command


def test_a_wrong_procedure_is_named_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file of the procedure is checked as stepguard run checks it."""
    assert main(write(tmp_path, "inputs: a\nt1 = a + nothing")) == 2
    assert "own.txt: line 2: step 't1' reads 'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("procedure", "cases"),
    [
        (BILL, [CASES[0], CASES[2], CASES[1]]),
        (BILL, [*CASES, '{"inputs": {"price": 7, "rate": "19%"}}']),
        (BILL, [CASES[0], CASES[1].replace(', "expected": 11.90', ""), CASES[2]]),
        (BILL.replace("price + tax", "tax + price"), CASES),
    ],
)
def test_other_cases_are_not_mixed_in_on_resume(
    tmp_path: Path, procedure: str, cases: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A run with other cases, in another order, with other truth or another procedure is no continuation."""
    out = ["--out", str(tmp_path / "out")]
    assert main([*write(tmp_path), *out, "-n", "1"]) == 0
    assert main([*write(tmp_path, procedure, cases), *out, "--resume"]) == 2
    assert "another configuration" in capsys.readouterr().err


def test_a_run_goes_on_with_the_same_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Comments and blank lines are no other cases, and more of the same cases may follow."""
    out = ["--out", str(tmp_path / "out")]
    assert main([*write(tmp_path), *out, "-n", "1"]) == 0
    before = (tmp_path / "out" / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    command = write(tmp_path, f"# the bill\n{BILL}", "\n\n".join(CASES))
    assert main([*command, *out, "--resume"]) == 0
    after = (tmp_path / "out" / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    assert after[: len(before)] == before
    assert len(after) == 1 + 3 * 3


# The example


def test_the_example_of_the_docs_runs_without_a_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that the docs show compares the arms on all cases of the example, on the simulated model."""
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "how-to" / "benchmark.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^stepguard (bench --procedure .*)$", page, re.MULTILINE)
    with no_real_requests():
        assert main([*shlex.split(command), "--json"]) == 0
    rows = {row["arm"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert [(row["length"], row["n"]) for row in rows.values()] == [(6, 12)] * 3
    assert rows["guard"]["silent_errors"] == 0
    assert rows["guard"]["accuracy"] > rows["chunk"]["accuracy"]


def test_the_expected_totals_of_the_example_are_right() -> None:
    """They follow from Python's own decimals, rounded to cents where the invoice rounds."""
    lines = (ROOT / "examples" / "invoice_cases.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines:
        case = json.loads(line)
        given = {name: Decimal(str(value).rstrip("%")) for name, value in case["inputs"].items()}
        goods = given["unit_price"] * given["quantity"]
        net = goods - _cents(goods * given["discount"] / 100) + given["shipping"]
        assert Decimal(case["expected"]) == net + _cents(net * given["tax_rate"] / 100)


def _cents(amount: Decimal) -> Decimal:
    return amount.quantize(Decimal("0.01"), ROUND_HALF_UP)
