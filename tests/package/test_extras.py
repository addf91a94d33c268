"""What an extra brings: where it is not installed, the error says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

USES = [
    ("agents", "import stepguard.integrations.openai_agents"),
    *(("inspect", f"import stepguard.evaluation.inspect.{name}") for name in ("registry", "task", "model")),
    ("langchain", "import stepguard.integrations.langchain"),
    ("langgraph", "import stepguard.integrations.langgraph"),
    ("mcp", "import stepguard.integrations.mcp.server"),
    ("pydantic-ai", "import stepguard.integrations.pydantic_ai"),
    ("dbos", "from stepguard.integrations.dbos import Jobs; Jobs('runs.db')"),
    ("dbos", "from stepguard.integrations.dbos import Worker; from stepguard import Guard; Worker(Guard(print))"),
    ("local", "from stepguard.backends.local import LocalBackend; LocalBackend('model.gguf')"),
    ("otel", "from stepguard.telemetry.opentelemetry import OpenTelemetry; OpenTelemetry()"),
    ("pandas", "from stepguard.batches import to_frame; to_frame([])"),
    ("postgres", "from stepguard import Guard; Guard(lambda messages: '', ledger='postgresql://host/base')"),
    ("ray", "from stepguard.batches import map_dataset; map_dataset(None, lambda: (None, None), key='id')"),
    ("units", "from stepguard.checks import Quantity; Quantity('5 km')"),
]
MISSING = [
    *("agents", "inspect_ai", "langchain", "langgraph", "mcp", "pydantic_ai", "dbos", "xllamacpp", "opentelemetry"),
    *("pandas", "psycopg", "ray", "pint"),
]
CODE = f"""
import sys
sys.modules.update(dict.fromkeys({MISSING}))
from stepguard.errors import MissingExtraError
for extra, use in {USES}:
    try:
        exec(use)
    except MissingExtraError as error:
        assert error.extra == extra and f'pip install "stepguard[{{extra}}]"' in str(error), error
    else:
        raise AssertionError(extra)
"""


def test_what_is_not_installed_is_named(tmp_path: Path) -> None:
    """Each part that needs an extra says which one, and the package itself needs none."""
    (tmp_path / "model.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
