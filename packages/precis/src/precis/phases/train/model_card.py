"""Writes the card of a trained model: README.md with YAML front matter, as the Hugging Face hub reads it.

    start, data, settings, scores of the kept step -> card -> README.md next to the weights, under the folder's seal

A card names no folder of the machine. It has only the last part of the path of local data and models.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from precis.data.rows.hub import PREFIX
from precis.generation.model_location import default_model, has_default_model, locate
from precis.generation.model_metadata import DEFAULT, PACKAGES, load_use
from precis.phases.run_folder import assignments
from precis.table import Table
from precis.training.validation import high_of, is_bound, low_of
from precis.version import __version__

_LICENCES = {"cc-by-sa-4.0": "CC BY-SA 4.0"}
_INCLUDED = "the small model that comes with precis"


@dataclass(frozen=True, kw_only=True)
class CardFacts:
    """The facts that a card states.

    Attributes:
        name: title of the card.
        kind: what the folder contains.
        start: the model that training started from; None for a new one.
        licence: the hub's id of the licence, such as `cc-by-sa-4.0`; "" if unknown.
        record: entries of settings.json: `run`, and `sources`, `sets` or `identity` for the data.
        scores: the validation of the kept step, with the bounds of each score.
        step: the kept step.
    """

    name: str
    kind: Literal["model", "adapter"]
    start: str | None
    licence: str
    record: Mapping[str, Any]
    scores: Mapping[str, float]
    step: int


def licence_of(start: str | None) -> str:
    """Return the licence that the weights of a model on this machine carry; "" for a new model or an unknown one."""
    if start is None or start.startswith(PREFIX):
        return ""
    place = (locate(start).folder if start in PACKAGES else None) or Path(start).expanduser()
    inner = place / "model"
    return load_use(inner if inner.is_dir() else place).licence if place.is_dir() else ""


def model_card(facts: CardFacts) -> str:
    """Return the text of a card."""
    sections = [
        _front(facts), f"# {facts.name}", _origin(facts), f"## Licence\n\n{_licence(facts)}",
        f"## Data\n\n{_data(facts.record)}", f"## Scores\n\n{_scores(facts)}", f"## Use\n\n{_use(facts)}",
        f"## Settings\n\n{_settings(facts.record)}",
    ]  # fmt: skip
    return "\n\n".join(sections) + "\n"


def _front(facts: CardFacts) -> str:
    """Return the front matter; strings are JSON, which YAML reads. The hub refuses a base that is not a hub name."""
    rows: dict[str, Any] = {"license": facts.licence} if facts.licence else {}
    if facts.start is not None and _is_on_hub(facts.start):
        rows["base_model"] = facts.start.removeprefix(PREFIX)
    rows |= {
        "library_name": "transformers",
        "pipeline_tag": "summarization",
        "tags": ["precis", "summarization"],
    }
    return "\n".join(["---", *(f"{name}: {json.dumps(value)}" for name, value in rows.items()), "---"])


def _is_on_hub(start: str) -> bool:
    return start.startswith(PREFIX) or (start not in PACKAGES and not Path(start).expanduser().exists())


def _origin(facts: CardFacts) -> str:
    if facts.start is None:
        return f"Trained from scratch with precis {__version__}."
    what = "An adapter of" if facts.kind == "adapter" else "Trained further from"
    return f"{what} {_base(facts.start)}, with precis {__version__}."


def _base(start: str) -> str:
    included = has_default_model() and Path(start).expanduser() == default_model()
    if start == DEFAULT or included:
        return _INCLUDED
    if start in PACKAGES:
        return f"the model `{start}` of the package {PACKAGES[start].replace('_', '-')}"
    return f"`{start.removeprefix(PREFIX) if _is_on_hub(start) else Path(start).name}`"


def _licence(facts: CardFacts) -> str:
    if facts.licence:
        name = _LICENCES.get(facts.licence, facts.licence)
        return f"These weights began as weights under {name}, and are under the same licence."
    if facts.start is None:
        return "Not stated. It depends on the data: add a `license:` line above."
    return "Not stated. It depends on the model at the start and on the data: add a `license:` line above."


def _data(record: Mapping[str, Any]) -> str:
    names = [*_sources(record)]
    return "\n".join(f"- {name}" for name in names) if names else "Not recorded."


def _sources(record: Mapping[str, Any]) -> Iterator[str]:
    for found in record.get("sets") or [record]:
        sources = found.get("sources") or {}
        for use in ("train", "dev"):
            if (part := sources.get(use)) is not None:
                split = f" ({part['split']})" if part.get("split") else ""
                yield f"{'training' if use == 'train' else 'validation'}: {_place(part['source'])}{split}"
    yield from (f"corpus: {_place(str(name))}" for name in record.get("corpora") or ())


def _place(source: str) -> str:
    return source if source.startswith(PREFIX) else Path(source).name


def _scores(facts: CardFacts) -> str:
    shown = {name: value for name, value in facts.scores.items() if not is_bound(name)}
    if not shown:
        return "Not measured."
    rows = [(name, f"{value:.3f}", _interval(name, facts.scores)) for name, value in shown.items()]
    table = Table(header=("measure", "value", "95% interval"), rows=rows, texts=("measure",))
    return f"On the validation data, at step {facts.step:,}, which was kept:\n\n{table.markdown()}"


def _interval(name: str, scores: Mapping[str, float]) -> str:
    bounds: Sequence[float | None] = (scores.get(low_of(name)), scores.get(high_of(name)))
    low, high = bounds
    return "" if low is None or high is None else f"{low:.1f} to {high:.1f}"


def _use(facts: CardFacts) -> str:
    if facts.kind == "adapter":
        return "    precis summarize FILE --model BASE --adapter FOLDER"
    return (
        "    precis summarize FILE --model FOLDER\n\nIn Python:\n\n"
        "    import precis\n\n    precis.summarize(text, model=FOLDER)"
    )


def _settings(record: Mapping[str, Any]) -> str:
    return "\n".join(f"    {name} = {value}" for name, value in assignments(record.get("run") or {}))
