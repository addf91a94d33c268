"""The vendors that can be named and whose own SDK is asked, through instructor: ``"anthropic/claude-sonnet-4-5"``.

The names are those of instructor. The clients are made here and not by `instructor.from_provider`, which leaves the
retries of the SDKs on, logs, and knows no address of one's own for most of them.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from stepguard.backends.credentials import connected, digest, read_key
from stepguard.backends.sdk_errors import field
from stepguard.errors import ConfigError, MissingExtraError

_Make = Callable[[Any, str, str | None, str | None, bool], Any]
"""Makes a client of instructor from the SDK, a model, a key, an address and whether it is to be awaited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vendor:
    """One vendor.

    Attributes:
        name: what stands before the first slash.
        provider: what instructor calls it.
        module: the module of its SDK.
        extra: the extra of stepguard that installs the SDK.
        keys: the environment variables that may hold the key; empty where the SDK finds its own credentials.
        addresses: the environment variables that the SDK reads another address from.
        make: makes a client.
        blocking: whether the SDK has no async client.
    """

    name: str
    provider: str
    module: str
    extra: str
    make: _Make
    keys: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    blocking: bool = False

    def key(self, given: str | None) -> str | None:
        """The key that is given, or that of the environment; see `read_key`."""
        return read_key(given, self.keys)

    def connector(self, model: str, base_url: str | None, api_key: str | None) -> Callable[[bool], Any]:
        """A maker of clients: a closure, so that no attribute holds the key."""

        def connect(awaited: bool) -> Any:
            if self.name == "litellm":  # it fetches a list of prices when it is imported, unless it is told not to
                os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            try:
                sdk = import_module(self.module)
                import_module("instructor")
            except ImportError as error:
                raise MissingExtraError(f"asking {self.name} through its own SDK", extra=self.extra) from error
            key = self.key(api_key)
            return connected(lambda: self.make(sdk, model, key, base_url, awaited and not self.blocking), self.name)

        return connect

    def account(self, base_url: str | None, api_key: str | None) -> Callable[[], tuple[str, str]]:
        """Says which endpoint is asked, and a digest of the key."""

        def account() -> tuple[str, str]:
            place = base_url or next(filter(None, map(os.environ.get, self.addresses)), None) or self.name
            return place.rstrip("/"), digest(self.key(api_key) or "")

        return account


def _maker(kind: str, wrap: str, mode: str, **options: Any) -> _Make:
    """Makes clients of an SDK whose async client is called as the sync one, with Async before it."""

    def make(sdk: Any, model: str, key: str | None, base_url: str | None, awaited: bool) -> Any:
        import instructor

        client = getattr(sdk, f"Async{kind}" if awaited else kind)(api_key=key, base_url=base_url, **options)
        return getattr(instructor, wrap)(client, mode=instructor.Mode[mode], model=model)

    return make


def _google(sdk: Any, model: str, key: str | None, base_url: str | None, awaited: bool, **where: Any) -> Any:
    import instructor

    options = None if base_url is None else sdk.types.HttpOptions(base_url=base_url)
    client = sdk.Client(api_key=key, http_options=options, **where)
    make: Any = instructor.from_genai
    return make(client, mode=instructor.Mode.JSON, use_async=awaited, model=model)


def _vertex(sdk: Any, model: str, key: str | None, base_url: str | None, awaited: bool) -> Any:
    project = os.environ.get("GOOGLE_CLOUD_PROJECT", "").strip()
    if not project:
        raise ConfigError("no project of Google Cloud: set GOOGLE_CLOUD_PROJECT", option="backend")
    location = os.environ.get("GOOGLE_CLOUD_LOCATION", "").strip() or "us-central1"
    return _google(sdk, model, key, base_url, awaited, vertexai=True, project=project, location=location)


def _bedrock(sdk: Any, model: str, key: str | None, base_url: str | None, awaited: bool) -> Any:
    import instructor

    settings: Any = import_module("botocore.config")
    region = os.environ.get("AWS_REGION", "").strip() or None  # boto3 itself reads AWS_DEFAULT_REGION
    # By default botocore repeats requests, and gives a reply up after 60 seconds.
    config = settings.Config(retries={"total_max_attempts": 1}, read_timeout=600)
    client = sdk.client("bedrock-runtime", region_name=region, endpoint_url=base_url, config=config)
    return instructor.from_bedrock(client, mode=instructor.Mode.MD_JSON, model=model)


def _mistral(sdk: Any, model: str, key: str | None, base_url: str | None, awaited: bool) -> Any:
    import instructor

    with suppress(ImportError):
        sdk = import_module("mistralai.client")  # from its second version on
    client = sdk.Mistral(api_key=key, **({} if base_url is None else {"server_url": base_url}))
    make: Any = instructor.from_mistral
    return make(client, mode=instructor.Mode.JSON_SCHEMA, use_async=awaited, model=model)


def _litellm(sdk: Any, model: str, key: str | None, base_url: str | None, awaited: bool) -> Any:
    import instructor

    sdk.suppress_debug_info = True  # or it prints help to stdout when a call fails
    make: Any = instructor.from_litellm
    return make(
        sdk.acompletion if awaited else sdk.completion,
        mode=instructor.Mode.JSON,
        model=model,
        **{name: value for name, value in (("api_key", key), ("api_base", base_url)) if value is not None},
    )


_GOOGLE: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")

VENDORS: Final[Mapping[str, Vendor]] = MappingProxyType(
    {
        vendor.name: vendor
        for vendor in (
            Vendor(
                name="anthropic",
                provider="anthropic",
                module="anthropic",
                extra="anthropic",
                make=_maker("Anthropic", "from_anthropic", "JSON", max_retries=0),
                keys=("ANTHROPIC_API_KEY",),
                addresses=("ANTHROPIC_BASE_URL",),
            ),
            *(
                Vendor(name=name, provider="genai", module="google.genai", extra="google", make=_google, keys=_GOOGLE)
                for name in ("google", "gemini", "generative-ai")
            ),
            Vendor(name="vertexai", provider="genai", module="google.genai", extra="google", make=_vertex),
            Vendor(name="bedrock", provider="bedrock", module="boto3", extra="bedrock", make=_bedrock, blocking=True),
            Vendor(
                name="mistral",
                provider="mistral",
                module="mistralai",
                extra="mistral",
                make=_mistral,
                keys=("MISTRAL_API_KEY",),
            ),
            Vendor(
                name="cohere",
                provider="cohere",
                module="cohere",
                extra="cohere",
                make=_maker("ClientV2", "from_cohere", "JSON_SCHEMA", log_warning_experimental_features=False),
                keys=("CO_API_KEY", "COHERE_API_KEY"),
            ),
            Vendor(
                name="writer",
                provider="writer",
                module="writerai",
                extra="writer",
                make=_maker("Writer", "from_writer", "JSON_SCHEMA", max_retries=0),
                keys=("WRITER_API_KEY",),
            ),
            Vendor(name="litellm", provider="openai", module="litellm", extra="litellm", make=_litellm),
        )
    }
)
"""The vendors, by name. litellm names a model of another vendor's behind it, and finds that vendor's key itself."""


def closer_of(client: Any) -> Callable[[], object]:
    """What closes the SDK's sync client that a client of instructor's holds; some of them can only be left."""
    inner = field(client, "client")
    close: Callable[[], object] | None = getattr(inner, "close", None)
    if callable(close):
        return close
    leave = getattr(type(inner), "__exit__", None)
    return partial(leave, inner, None, None, None) if callable(leave) else lambda: None


async def close_client(client: Any) -> None:
    """Close the SDK's async client that a client of instructor's holds."""
    inner = field(client, "client")
    aio = field(inner, "aio")  # Google's client is two
    if aio is not None:
        await aio.aclose()
    leave = getattr(type(inner), "__aexit__", None)
    if aio is None and not callable(getattr(inner, "close", None)) and callable(leave):
        await leave(inner, None, None, None)
        return
    done = closer_of(client)()
    if inspect.isawaitable(done):
        await done
