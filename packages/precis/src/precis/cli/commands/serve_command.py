"""`precis serve`: summaries over HTTP, and a web page."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from precis.cli.commands.summarize_command import Beams, Device
from precis.cli.framework.command_class import CommandOfService, describe_command, examples
from precis.cli.framework.config_file import Config
from precis.cli.framework.console import note
from precis.cli.framework.options import Adapter, ModeName, ModeOption, Threads, begin, model_to_use
from precis.cli.framework.panels import OptionGroup
from precis.cli.framework.signals import EndedBySignal
from precis_text.errors import UserError, install_line

if TYPE_CHECKING:
    from precis.server.connections import ConnectionLimits
    from precis.server.limits import Limits

Models = Annotated[list[str] | None, typer.Option("--model", help=(
    "A run folder, a Hugging Face folder of an encoder-decoder or a causal language model, a .gguf file, "
    "hub:owner/name (hub: may be omitted unless a folder has that name), or the address of an "
    "OpenAI-compatible endpoint on this machine. Repeatable: a request names its model in the field model; "
    "the first one answers all other requests. If omitted: default, the small model included with precis."
))]  # fmt: skip
Names = Annotated[list[str] | None, typer.Option("--name", help=(
    "Name of a model in requests; repeatable, in the order of --model. If omitted: default for a single model, "
    "else the names of the folders."
))]  # fmt: skip
ModelMemory = Annotated[int | None, typer.Option("--model-memory", min=1, help=(
    "Maximum megabytes of weights in memory. Beyond that, the least recently used model is dropped, and "
    "loaded again when a request needs it. Default: all models stay."
))]  # fmt: skip
Origins = Annotated[list[str] | None, typer.Option("--allow-origin", help=(
    "Site whose pages may send requests, such as https://example.org. Repeatable."
))]  # fmt: skip
RootPath = Annotated[str, typer.Option("--root-path", help=(
    "Path under which a proxy publishes the service, such as /precis. Default: none."
))]  # fmt: skip
MaxBeams = Annotated[
    int, typer.Option("--max-beams", min=1, help="Widest beam search that a request may ask for.")
]
_NEEDED = ("fastapi", "uvicorn", "prometheus_client", "python_multipart")


@dataclass(frozen=True, kw_only=True)
class LimitOptions(OptionGroup):
    """The limits on requests, on connections, and on their time."""

    requests_per_minute: Annotated[int, typer.Option("--requests-per-minute", min=0, help=(
        "Maximum requests per minute and key; 0: no limit."
    ))] = 0  # fmt: skip
    max_body_mb: Annotated[
        int, typer.Option("--max-body-mb", min=1, max=1024, help="Maximum megabytes of a request.")
    ] = 4
    max_files_mb: Annotated[
        int,
        typer.Option("--max-files-mb", min=1, max=1024, help="Maximum megabytes of a request with files."),
    ] = 32
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=16, max=10_000_000, help=(
        "Maximum tokens of a document, as the model's tokenizer counts them."
    ))] = 131_072  # fmt: skip
    queue_tokens: Annotated[int, typer.Option("--queue-tokens", min=16, max=100_000_000, help=(
        "Maximum tokens of waiting documents; beyond that, 503."
    ))] = 524_288  # fmt: skip
    max_seconds: Annotated[float, typer.Option("--max-seconds", min=1, max=86_400, help=(
        "Maximum seconds per request; beyond that, 503."
    ))] = 300.0  # fmt: skip
    max_connections: Annotated[int, typer.Option("--max-connections", min=16, max=100_000, help=(
        "Maximum open connections; beyond that, those that have waited longest for their client are closed."
    ))] = 2048  # fmt: skip
    max_connections_per_address: Annotated[int, typer.Option("--max-connections-per-address", min=1, max=100_000, help=(
        "Maximum open connections from one address."
    ))] = 1024  # fmt: skip
    head_seconds: Annotated[float, typer.Option("--head-seconds", min=0.5, max=600, help=(
        "Maximum seconds to receive the head of a request."
    ))] = 10.0  # fmt: skip
    min_rate: Annotated[int, typer.Option("--min-rate-kb", min=1, max=1_000_000, help=(
        "Minimum kilobytes per second for the body of a request, after its first ten seconds."
    ))] = 16  # fmt: skip
    grace: Annotated[
        float, typer.Option("--grace", min=0, max=3600, help="Seconds to finish requests after SIGTERM.")
    ] = 30.0

    def limits(self, *, batch: int, beams: int) -> Limits:
        """Return the limits on requests, with those on the documents of a batch and on the width of a search."""
        from precis.server.limits import Limits

        return Limits(
            body=self.max_body_mb << 20, files=self.max_files_mb << 20, tokens=self.max_tokens,
            queue=self.queue_tokens, seconds=self.max_seconds, rate=self.min_rate << 10,
            per_minute=self.requests_per_minute, batch=batch, beams=beams,
        )  # fmt: skip

    def connections(self) -> ConnectionLimits:
        """Return the limits on connections."""
        from precis.server.connections import ConnectionLimits

        return ConnectionLimits(
            most=self.max_connections, of_one=self.max_connections_per_address, head_seconds=self.head_seconds
        )


def _check_packages() -> None:
    missing = [package for package in _NEEDED if find_spec(package) is None]
    if missing:
        raise UserError(f"precis serve needs {missing[0]}, which is not installed: {install_line('serve')}")


@describe_command(
    "serve",
    rich_help_panel="Use a model",
    cls=CommandOfService,
    epilog=examples(
        "precis serve",
        "precis serve --model runs/first --port 9000",
        "precis serve --model runs/news --model runs/chats --model-memory 2000",
        "precis serve --host 0.0.0.0 --keys keys.txt --requests-per-minute 60",
        "Then open http://127.0.0.1:8000 in a browser.",
    ),
)
def serve(
    *,
    model: Models = None,
    adapter: Adapter = None,
    mode: ModeOption = None,
    config: Config = None,
    host: Annotated[str, typer.Option("--host", help=(
        "Address to listen on. One that other machines can reach needs --keys."
    ))] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="Port to listen on; 0 chooses any free one.")
    ] = 8000,
    root_path: RootPath = "",
    name: Names = None,
    model_memory: ModelMemory = None,
    keys: Annotated[Path | None, typer.Option("--keys", help=(
        "File of API keys: a name, a space and a secret on each line."
    ))] = None,
    allow_origin: Origins = None,
    bounds: LimitOptions,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, max=4096, help="Documents per batch.")
    ] = 8,
    beams: Beams = None,
    max_beams: MaxBeams = 4,
    device: Device = None,
    threads: Threads = None,
) -> None:  # fmt: skip
    """Serve summaries over HTTP, with a web page.

    Documents stay on this machine. Logs do not contain their text.
    """
    _check_packages()
    from precis.generation.model_location import named_models
    from precis.generation.model_names import check_adapter, refuse_missing, refuse_unknown_device
    from precis.server.client_keys import Keys
    from precis.server.listener import Address, check_access, listen

    # All that can be refused comes before the libraries, which take seconds
    named = named_models(model or ["default"], name or [])
    for place in model or ():
        refuse_missing(place)
    check_adapter(adapter, model or [])
    refuse_unknown_device(device)
    found = None if keys is None else Keys.read(keys)
    address = Address(host=host, port=port, grace=bounds.grace, prefix=root_path)
    check_access(address, has_keys=found is not None, origins=allow_origin or ())
    if keys is None and bounds.requests_per_minute:
        raise UserError("--requests-per-minute limits each API key; name a file of keys with --keys")
    connections, limits = bounds.connections(), bounds.limits(batch=batch_size, beams=max_beams)
    with listen(address.host, address.port) as opened:
        if not model:
            model_to_use(None, adapter)  # says which model serves
        from precis.server.server_run import access_to
        from precis.server.server_run import serve as run

        access = access_to(address, found, origins=allow_origin or ())
        begin(threads)
        from precis.server.served_model import pool_of

        memory = None if model_memory is None else model_memory * 1_000_000
        pool = pool_of(
            named, memory=memory, adapter=adapter, device=device, batch=batch_size, beams=beams,
            mode=None if mode is None else ModeName(mode).value,
        )  # fmt: skip
        with suppress(EndedBySignal):  # the end that was asked for, once its requests have ended
            run(
                pool, opened=opened, address=address, access=access, limits=limits, connections=connections,
                notify=note,
            )  # fmt: skip
