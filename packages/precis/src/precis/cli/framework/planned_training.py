"""The end of `finetune` and `tune`: train once, search, or train with several seeds, and print the closing summary."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from precis.cli.framework.next_steps import next_commands
from precis_text.errors import UserError

if TYPE_CHECKING:
    from precis.phases.data.run_pairs import NamedPairs


def train_as_asked(
    plan: Callable[..., Any],
    pairs: NamedPairs,
    *,
    out: Path,
    search: bool,
    seeds: int | None,
    seed: int | None,
    restart: bool,
    **suggested: Any,
) -> None:
    """Make a plan and run it.

    Args:
        plan: called with `out`, `notify` and, for several seeds, `seed`; returns what has `run()` and `search()`.
        seeds: the number of seeds of `--seeds`, from `seed` on; None trains once.
        suggested: arguments of `next_commands`.

    Raises:
        UserError: `seeds` with `search`, or what the plan raises.
        RunError: training failed.
    """
    from precis.cli.framework.console import finish, finish_search, finish_seeds, note

    if seeds is not None:
        from precis.phases.train.seed_runs import train_seeds

        if search:
            raise UserError(
                "--seeds and --search exclude each other; search first, then train the best settings"
            )
        done = train_seeds(lambda **each: plan(**each).run(), seeds=seeds, out=out, seed=seed, notify=note)
        test_pairs = pairs.to_test(pairs.sources().train.source)
        commands = next_commands(out, test_pairs=test_pairs, **{**suggested, "writes": False})
        return finish_seeds(done, restart=restart, commands=commands)
    planned = plan(out=out, notify=note)
    commands = next_commands(out, test_pairs=pairs.to_test(planned.request.sources.train.source), **suggested)
    if search:
        return finish_search(planned.search(), restart=restart, commands=commands)
    return finish(planned.run(), restart=restart, commands=commands)
