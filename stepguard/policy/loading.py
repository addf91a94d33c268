"""The policy that a text or a file holds."""

from __future__ import annotations

from pathlib import Path

from stepguard.errors import PolicyError
from stepguard.policy.building import assemble
from stepguard.policy.parsing import parse_policy_items
from stepguard.policy.policy import Policy


def build_policy(text: str, *, name: str = "policy", folder: Path | None = None) -> Policy:
    """The policy that a text is. Raises PolicyError: something in it is wrong; `line` names where."""
    return assemble(parse_policy_items(text), name=name, folder=folder)


def load_policy(path: Path) -> Policy:
    """The policy in a file.

    Raises:
        PolicyError: the file holds none.
        OSError: it cannot be read.
    """
    name = " ".join(path.stem.split()) or "policy"
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PolicyError(f"{path.name} is not UTF-8 text (byte {error.start})") from None
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml", ".json"):
        from stepguard.policy.yaml_format import parse_policy_yaml  # most policies are text

        return parse_policy_yaml(text, json=suffix == ".json", name=name, folder=path.parent)
    return build_policy(text, name=name, folder=path.parent)
