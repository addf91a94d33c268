"""What a ledger holds about a person is found and erased, whatever holds it; what is another's stays."""

from __future__ import annotations

import gc
import json
import re
from pathlib import Path
from typing import Any

import pytest
from ledger_harness import SURE, payment
from tables import all_rows

from stepguard import Guard, Policy, Procedure
from stepguard.backends import Completion, Request
from stepguard.backends.recorded import RecordedBackend
from stepguard.batches import run_batch
from stepguard.cli import main
from stepguard.errors import ConfigError, ReplyMissing
from stepguard.integrations.tool_gate import ToolGate
from stepguard.ledger import Ledger, PersonNames, erase_person, find_person, read_run, verify_ledger

pytestmark = pytest.mark.usefixtures("quick_collections")

LETTER = Procedure.parse("inputs: letter: text, x\nn = x + 1")
PERSON = ["anna.grauzahn@example.com", "Anna Grauzahn", "C-1042", "12345678901234567890"]


class Remarking:
    """Remarks a name, escaped as JSON allows, before a right answer where x is 1."""

    def complete(self, request: Request) -> Completion:
        """See `SyncBackend.complete`."""
        name = "Anna Grauzahn" if request.values["x"] == 1 else "Otto"
        escaped = "".join(f"\\u{ord(each):04x}" for each in name)
        return Completion(f"<think>for\\n{escaped}</think>{SURE.complete(request).text}", "stop")


def _keep_persons(runs: Path | str) -> set[str]:
    """Keep runs about one person in every way, and others; the names of the first ones."""
    with Ledger(runs, keep="replies") as ledger:
        guard = Guard(SURE, ledger=ledger)
        guard.run(LETTER, {"letter": "From: ANNA.Grauzahn@example.com, in haste", "x": 1}, run_id="input")
        guard.run(LETTER, {"letter": "none", "x": 12345678901234567890}, run_id="number")
        guard.run(LETTER, {"letter": "none", "x": 1}, run_id="refund C-1042/3")
        titled = Procedure.parse("name: letter to Anna  Grauzahn\ninputs: x\nn = x + 1")
        guard.run(titled, {"x": 1}, run_id="title")
        Guard(Remarking(), ledger=ledger).run(LETTER, {"letter": "", "x": 1}, run_id="reply")
        asking = Procedure.parse('inputs: x\nwho: text = ask person "The name?"\nn = x + 1')
        guard.run(asking, {"x": 1}, run_id="answer")
        ledger.answer("answer", "who", "Anna\u00a0Grauzahn")
        policy = Policy.parse("tool look(id: text) -> text reads")
        for run_id, given, told in (("asked", "C-1042", "-"), ("told", "1", "of c-1042"), ("gate", "C-10421", "-")):
            with ToolGate(policy, {"look": lambda id, told=told: told}, ledger=ledger, run_id=run_id) as gate:
                gate.call("look", {"id": given}, id="1")
        guard.run(LETTER, {"letter": "joanna.grauzahn@example.com, Hanna Grauzahn", "x": 1042}, run_id="another")
        guard.run(payment([], approval=True), {"x": 1042}, run_id="waits")
    return {"input", "number", "refund C-1042/3", "title", "reply", "answer", "asked", "told"}


def test_everything_about_a_person_is_erased_and_nothing_else(runs: Path | str, capsys: Any) -> None:
    """Inputs, answers, replies, arguments and results of tools, names of runs and procedures: a command finds them all,
    says first what it would do, and leaves a whole chain that says how many were erased."""
    theirs = _keep_persons(runs)
    person = [each for name in PERSON for each in ("--person", name)]
    with Ledger(runs, read_only=True) as ledger:
        head, before = ledger.head(), len(ledger.runs())
        assert set(find_person(ledger, PERSON).doubtful) == {"gate", "another"}
    assert main(["runs", str(runs), *person, "--json"]) == 0
    assert {each["run_id"] for each in json.loads(capsys.readouterr().out)} == theirs
    assert main(["erase", str(runs), *person, "--dry-run"]) == 0
    said = capsys.readouterr()
    assert {line.partition(": ")[0] for line in said.out.splitlines()} == theirs
    assert "refund C-1042/3: name, inputs" in said.out
    assert "only inside longer words, left: another: inputs" in said.err
    assert "8 would be erased" in said.err
    with Ledger(runs, read_only=True) as ledger:
        assert ledger.head() == head
    assert main(["erase", str(runs), *person]) == 0
    assert "8 erased" in capsys.readouterr().err
    assert main(["verify", str(runs), "--head", head]) == 1  # a conversation, whose policy is not given
    assert "8 erased" in capsys.readouterr().out
    with Ledger(runs) as ledger:
        assert len(ledger.runs()) == before
        assert find_person(ledger, PERSON).runs == {}
        assert {each.run_id for each in ledger.runs() if each.status != "erased"} == {"another", "gate", "waits"}
        assert read_run(ledger, "another").result is not None
        again = Guard(SURE, ledger=ledger).run(LETTER, {"letter": "", "x": 1}, run_id="refund C-1042/3")
        assert again.verified  # its name is free
        ledger.erase(["refund C-1042/3"])
        erase_person(ledger, PERSON)  # what was erased by its name before is called otherwise, too
        assert find_person(ledger, PERSON).runs == {}
        assert verify_ledger(ledger, head=head).right
    if isinstance(runs, Path):
        held = b"".join(each.read_bytes() for each in runs.parent.iterdir())
        assert not re.search(rb"\banna.grauzahn|\bC-1042\b|letter to", held, re.IGNORECASE)


def test_a_run_under_way_is_named_and_left(tmp_path: Path, capsys: Any) -> None:
    """Who erases is told what could not be, and by the exit code; all else is gone, and the same again ends it."""
    path = tmp_path / "runs.db"
    with Ledger(path) as ledger:
        guard = Guard(SURE, ledger=ledger)
        run = guard.start(LETTER, {"letter": "Grauzahn", "x": 1}, run_id="under way")
        guard.run(LETTER, {"letter": "Grauzahn", "x": 1}, run_id="done")
        assert main(["erase", str(path), "--person", "grauzahn"]) == 1
        said = capsys.readouterr().err
        assert "1 erased" in said
        assert "not erased: under way is under way" in said
        run.cancel()
        del run
        gc.collect()
        assert main(["erase", str(path), "--person", "grauzahn"]) == 0
        assert {each.status for each in ledger.runs()} == {"erased"}
        assert verify_ledger(ledger).right


def test_recorded_replies_about_a_person_go_with_the_runs(tmp_path: Path, capsys: Any) -> None:
    """From files of recorded replies, and what a batch keeps to go on, those of the person are taken, and no other."""
    ledger, cache, out = tmp_path / "runs.db", tmp_path / "replies.db", tmp_path / "results.jsonl"
    rows = [{"letter": "Anna Grauzahn", "x": 1}, {"letter": "Otto", "x": 2}]
    with RecordedBackend(cache, Remarking()) as backend:
        for number, row in enumerate(rows):
            Guard(backend, ledger=ledger).run(LETTER, row, run_id=str(number))
    run_batch(LETTER, Remarking(), rows, out, key="letter", resume=True)
    files = ["--replies", str(cache), "--replies", f"{out}.resume"]
    command = ["erase", str(ledger), "--person", "anna grauzahn", *files]
    assert main([*command, "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == ["0: inputs", f"{cache}: 1 reply", f"{out}.resume: 1 reply"]
    with RecordedBackend(cache) as backend:
        assert len(backend) == 2
    assert main(command) == 0
    with RecordedBackend(cache) as backend:
        assert Guard(backend).run(LETTER, rows[1]).verified
        assert isinstance(Guard(backend).run(LETTER, rows[0]).error, ReplyMissing)
    for file in (cache, ledger, out.with_name(f"{out.name}.resume")):
        assert b"Grauzahn" not in file.read_bytes()


@all_rows(
    "name, text, found",
    [
        ("anna@example.com", "mail=<anna@example.com>.", True),
        ("anna@example.com", "write to anna@example.com.", True),
        ("anna@example.com", "ANNA@EXAMPLE.COM", True),
        ("anna@example.com", "x?mail=anna%40example.com&y", True),
        ("anna@example.com", "joanna@example.com", False),
        ("anna@example.com", "j.anna@example.com", False),
        ("anna@example.com", "anna@example.com.au", False),
        ("C-1042", "refund_C-1042/3", True),
        ("C-1042", "C-10421", False),
        ("1042", '{"id": 1042}', True),
        ("1042", "1042.50", False),
        ("1042", "21042", False),
        ("12345678901234567890", '{"x": {"int": "0xab54a98ceb1f0ad2"}}', True),
        ("M\u00fcller", "Mu\u0308ller", True),
        ("M\u00fcller", '{"text": "{\\"t\\": \\"M\\\\u00fcller\\"}"}', True),
        ("M\u00fcller", "M&uuml;ller", True),
        ("Anna Huber", "Anna\\nHuber", True),
        ("Anna Huber", "Dear\\nAnna\u200b Huber", True),
        ("Anna Huber", '["Anna", "Huber"]', True),
        ("Anna Huber", "Hanna Hubert", False),
        ("Anna Huber", "Huber, Anna", None),
    ],
)
def test_a_name_is_found_as_a_whole_word_however_it_is_written(name: str, text: str, found: bool | None) -> None:
    """As a whole word, in any capitals and escapes; what stands inside a longer word is told apart."""
    assert PersonNames([name]).find(text) is found


@all_rows(
    "arguments, said",
    [
        (["--person", "ab"], "3 characters or more"),
        (["a run", "--person", "Anna"], "name none"),
        (["--person", "Anna", "--older-than", "3"], "no --older-than"),
        (["a run", "--replies", "x.db"], "needs a --person"),
        (["--person", "Anna", "--replies", "nowhere.db"], "no replies at nowhere.db"),
        (["nobody", "--dry-run"], "no run 'nobody'"),
        ([], "--older-than or --person"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: list[str], said: str, tmp_path: Path, capsys: Any) -> None:
    """Nothing is erased where it is not clear what is to be."""
    Ledger(tmp_path / "runs.db").close()
    assert main(["erase", str(tmp_path / "runs.db"), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_person_is_a_list_of_names(tmp_path: Path) -> None:
    """One text would be a list of letters."""
    with Ledger(tmp_path / "runs.db") as ledger:
        names: Any
        for names in ("Anna", [], [1042]):
            with pytest.raises(ConfigError, match="a person is"):
                find_person(ledger, names)


def test_a_dry_run_says_which_old_runs_would_go(tmp_path: Path, capsys: Any) -> None:
    """It is the same for runs that are named and for old ones."""
    path = tmp_path / "runs.db"
    Guard(SURE, ledger=path).run(LETTER, {"letter": "", "x": 1}, run_id="old")
    for arguments in (["old"], ["--older-than", "0"]):
        assert main(["erase", str(path), *arguments, "--dry-run"]) == 0
        assert capsys.readouterr().out == "old\n"
    with Ledger(path) as ledger:
        assert [each.status for each in ledger.runs()] == ["verified"]
