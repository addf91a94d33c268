"""The providers that can be named, as in ``"groq/llama-3.3-70b-versatile"``: where they are and what they understand.

The names are those of instructor. Its own way of making a client for a name is not used: it logs, leaves the retries
of the SDK on, and asks Azure for an API version that knows no schemas. Every provider here documents an endpoint that
speaks OpenAI's chat completions, so the client of the openai SDK serves them all. The others are asked through their
own SDKs: `stepguard.backends.vendors`.

The only variables read from the environment are those in the table, and for OpenAI alone those of the SDK.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from stepguard.backends.credentials import connected, digest, read_key
from stepguard.backends.vendors import VENDORS
from stepguard.core.arguments import check_text
from stepguard.core.redaction import redact
from stepguard.errors import ConfigError

ReplyMode = Literal["json_schema", "tools", "json"]


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider.

    Attributes:
        name: what stands before the first slash.
        url: its endpoint, up to and without ``/chat/completions``. With `own_address` it only shows the shape of one.
        keys: the environment variables that may hold the key, the first one that is set counts; empty where no key
            is needed.
        addresses: the environment variables that may hold another endpoint. What such an address leaves out (scheme,
            port, path) is taken from `url`.
        own_address: whether every user has an endpoint of their own, so that one must be given.
        mode: how replies are bound to their form by default: the strongest way that the provider documents, unless
            many of its models reject it.
        strict: whether it documents the word ``strict``.
    """

    name: str
    url: str
    keys: tuple[str, ...]
    addresses: tuple[str, ...] = ()
    own_address: bool = False
    mode: ReplyMode = "json_schema"
    strict: bool = True

    def endpoint(self) -> str | None:
        """The endpoint to ask, None to leave it to the SDK.

        Raises ConfigError: no endpoint is set, and there is no common one.
        """
        if self is OPENAI and (given := os.environ.get("OPENAI_BASE_URL")) is not None:
            return given.strip() or self.url  # the SDK takes an empty one at its word
        for variable in self.addresses:
            if address := os.environ.get(variable, "").strip().rstrip("/"):
                return self._completed(address)
        if self.own_address:
            raise ConfigError(
                f"no endpoint of {self.name}: set {' or '.join(self.addresses)}, or pass base_url={self.url!r}",
                option="base_url",
            )
        return None if self is OPENAI else self.url

    def key(self, given: str | None, *, base_url: str | None) -> str | None:
        """The key that is given, or that of the environment; see `read_key`."""
        # An endpoint of one's own rarely wants a key.
        return read_key(given, self.keys, otherwise=None if self.keys and base_url is None else _NO_KEY)

    def _completed(self, address: str) -> str:
        usual = urlsplit(self.url)
        scheme, _, rest = address.rpartition("://")
        host, _, path = rest.partition("/")
        if host.count(":") > 1 and not host.startswith("["):  # an address of IPv6, whose colons begin no port
            host = f"[{host}]"
        if not scheme and usual.port and ":" not in host.rpartition("]")[2]:
            host = f"{host}:{usual.port}"
        if host.startswith(":"):
            host = f"{usual.hostname}{host}"
        return f"{scheme or usual.scheme}://{host}/{path or usual.path.lstrip('/')}"


_NO_KEY: Final = "none"  # the SDK insists on one

OPENAI: Final = Provider("openai", "https://api.openai.com/v1", ("OPENAI_API_KEY",))

PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType(
    {
        provider.name: provider
        for provider in (
            OPENAI,
            Provider("anyscale", "https://api.endpoints.anyscale.com/v1", ("ANYSCALE_API_KEY",), mode="json"),
            Provider(
                "azure_openai",
                "https://RESOURCE.openai.azure.com/openai/v1",
                ("AZURE_OPENAI_API_KEY",),
                ("AZURE_OPENAI_ENDPOINT",),
                own_address=True,
            ),
            Provider("cerebras", "https://api.cerebras.ai/v1", ("CEREBRAS_API_KEY",)),
            Provider(
                "databricks",
                "https://WORKSPACE.cloud.databricks.com/serving-endpoints",
                ("DATABRICKS_TOKEN", "DATABRICKS_API_KEY"),
                ("DATABRICKS_BASE_URL", "DATABRICKS_HOST", "DATABRICKS_WORKSPACE_URL"),
                own_address=True,
            ),
            # It rejects schemas, and its reasoning models reject a tool that is demanded.
            Provider("deepseek", "https://api.deepseek.com", ("DEEPSEEK_API_KEY",), mode="json"),
            Provider("fireworks", "https://api.fireworks.ai/inference/v1", ("FIREWORKS_API_KEY",), strict=False),
            # Only some of its models take schemas; the others reject them.
            Provider("groq", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",), mode="json"),
            Provider("ollama", "http://127.0.0.1:11434/v1", (), ("OLLAMA_HOST",), strict=False),
            Provider("openrouter", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
            Provider("perplexity", "https://api.perplexity.ai", ("PERPLEXITY_API_KEY",), strict=False),
            Provider("together", "https://api.together.xyz/v1", ("TOGETHER_API_KEY",), strict=False),
            Provider("xai", "https://api.x.ai/v1", ("XAI_API_KEY",)),
        )
    }
)


def split_name(name: str) -> tuple[Provider, str]:
    """The provider and the model that ``"openrouter/meta-llama/llama-3.3-70b"`` names.

    Raises ConfigError: it names no model, or no provider that can be asked.
    """
    # A name may be anything that somebody has pasted, a key or a procedure.
    shown = name if len(name) <= 80 else f"{name[:77]}..."
    first, slash, model = name.partition("/")
    if first not in (*PROVIDERS, *VENDORS) and (not slash or name.lower().endswith(".gguf")):
        how = f"'{OPENAI.name}/{shown or 'gpt-4.1-mini'}'"
        if name.lower().endswith(".gguf"):
            how = f"stepguard.backends.local.LocalBackend({shown!r}) for a model file, or '{OPENAI.name}/{shown}'"
        raise ConfigError(f"{shown!r} names no provider: write {how}", option="backend")
    if not model.strip() and first in (*PROVIDERS, *VENDORS):
        raise ConfigError(f"{shown!r} names no model: write '{first}/' and its name", option="backend")
    return find_provider(first), model


def find_provider(name: str) -> Provider:
    """The provider of this name. Raises ConfigError: it is not known, or it is asked through its own SDK."""
    check_text(name, "provider", what="text such as 'groq'")
    if name in PROVIDERS:
        return PROVIDERS[name]
    if name in VENDORS:
        raise ConfigError(
            f"{name!r} is asked through its own SDK: name '{name}/MODEL', or make an InstructorBackend",
            option="provider",
        )
    known = sorted({*PROVIDERS, *VENDORS})
    lower = name.lower()
    near = get_close_matches(lower, known, n=1, cutoff=0.7) or [item for item in known if item.startswith(lower)]
    meant = f" (did you mean {near[0]!r}?)" if lower and near else ""
    raise ConfigError(
        f"the provider {name[:40]!r} is not known{meant}: write one of {', '.join(known)}, or "
        "OpenAIBackend(model, base_url=...) for another endpoint that speaks the same protocol",
        option="provider",
    )


def _require_address(url: str) -> None:
    parts = urlsplit(url)
    if parts.path.rstrip("/").endswith("/chat/completions"):
        raise ConfigError("leave /chat/completions off the endpoint: each request adds its path", option="base_url")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"an endpoint is a full address such as 'https://api.openai.com/v1', not {redact(url)[:80]!r}: look at "
            "base_url, or at OPENAI_BASE_URL in the environment",
            option="base_url",
        )


def account_of(provider: Provider, base_url: str | None, api_key: str | None) -> Callable[[], tuple[str, str]]:
    """Says which endpoint is asked, and a digest of the key: a closure, so that no attribute holds the key."""

    def account() -> tuple[str, str]:
        url = provider.endpoint() if base_url is None else base_url
        return (provider.url if url is None else url).rstrip("/"), digest(
            provider.key(api_key, base_url=base_url) or ""
        )

    return account


def client_maker(
    provider: Provider, base_url: str | None, api_key: str | None
) -> Callable[[Literal["OpenAI", "AsyncOpenAI"]], Any]:
    """A maker of clients: a closure, so that no attribute holds the key."""

    def make(kind: Literal["OpenAI", "AsyncOpenAI"]) -> Any:
        try:
            import openai
        except ImportError:
            raise ConfigError(
                f"asking {provider.name} needs the package 'openai': pip install openai", option="backend"
            ) from None
        key = provider.key(api_key, base_url=base_url)
        url = provider.endpoint() if base_url is None else base_url
        client = connected(
            lambda: getattr(openai, kind)(api_key=key, base_url=url, timeout=None, max_retries=0), provider.name
        )
        _require_address(str(client.base_url))
        if provider is not OPENAI:
            # What the SDK found in the environment is meant for OpenAI and would be sent along.
            client.organization = client.project = client.admin_api_key = None
            client._custom_headers = {}
        return client

    return make
