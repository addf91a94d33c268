"""``stepguard import``: the procedure on standard output, the notes on standard error."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepguard.cli import main


def test_a_list_is_printed_in_the_language_with_its_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was understood is printed, and each line that was not is named; the exit code says whether any was."""
    file = tmp_path / "fee.md"
    file.write_text("inputs: days\n1. Double it: fee = days * 2\n2. Unless it is paid, send it.\n", "utf-8")
    assert main(["import", str(file)]) == 1
    printed = capsys.readouterr()
    assert printed.out == 'inputs: days\nfee = days * 2  "Double it"\n' + printed.out.partition('it"\n')[2]
    assert "line 3 " in printed.err
    file.write_text("inputs: days\n1. Double it: fee = days * 2\n", "utf-8")
    assert main(["import", str(file)]) == 0
    file.write_text("Be kind.\n", "utf-8")
    assert main(["import", str(file)]) == 3
    assert main(["import", str(tmp_path / "none.md")]) == 2
