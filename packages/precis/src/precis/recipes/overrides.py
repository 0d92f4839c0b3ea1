"""Change a setting of a recipe by its dotted name, with checked types: `--set train.learning_rate=3e-4`."""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, Literal, TypeVar, get_args, get_origin

from precis.recipes.run_options import EITHER
from precis.recipes.run_plan import RunPlan
from precis.training.schedule import LinearDecay, schedule_named
from precis.training.training_settings import Highest, Lowest
from precis_text.config import Settings, nearest
from precis_text.errors import UserError

S = TypeVar("S", bound=Settings)

_NONE = ("none", "null", "off")
# The metrics of validation: of every training on pairs; where summaries are generated; of pre-training.
_OF_PAIRS = ("loss", "nll", "accuracy")
_OF_SUMMARIES = ("rouge1", "rouge2", "rougeL")
_OF_LABELS = ("matthews", "f1", "pearson", "spearman")
_OF_PRETRAINING = ("mlm", "mlm_accuracy", "rtd", "rtd_accuracy", "rtd_recall", "csp", "csp_accuracy")
_OF_STREAMS = re.compile(r"(nll|accuracy)_[1-9][0-9]*")
_OF_A_SET = ("loss", "rougeL")  # `loss/NAME` in grounding on several sets
_LOW_IS_GOOD = ("loss", "nll", "mlm", "rtd", "csp")


def with_overrides(
    settings: S, assignments: Iterable[str], *, kinds: Mapping[type, Callable[[str], Any]] | None = None
) -> S:
    """Return `settings` with `NAME=VALUE` texts applied.

    Args:
        kinds: for a group with several types: one of the types, and the parser of a text into any of them.

    Raises:
        UserError: an assignment lacks `=`, names an unknown setting (the message suggests the nearest) or one that
            another assignment names, or its value has another type.
    """
    named: dict[str, str] = {}
    for assignment in assignments:
        path, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals or not path:
            raise UserError(f"--set {assignment}: write NAME=VALUE, for example train.learning_rate=3e-4")
        if path in named:
            raise UserError(f"--set {path} is given twice, the second time as {text}; give it once")
        named[path] = text
    # Choose types first: other names refer to the settings of the chosen type.
    readers = {
        path: _reader(
            settings, path, {Lowest: metric_to_select, LinearDecay: schedule_named, **(kinds or {})}
        )
        for path in named
    }
    chosen = {path: read(named[path]) for path, read in readers.items() if read is not None}
    settings = with_changes(settings, chosen)
    values = {
        path: _value(text, _hint(settings, path), path) for path, text in named.items() if path not in chosen
    }
    return with_changes(settings, values)


def _reader(
    settings: Any, path: str, kinds: Mapping[type, Callable[[str], Any]]
) -> Callable[[str], Any] | None:
    """Return the parser for the value of a dotted name, if that is a group with several types."""
    head, dot, rest = path.partition(".")
    if not isinstance(settings, Settings):
        return None
    if dot:
        return _reader(getattr(settings, head, None), rest, kinds)
    options = get_args(typing.get_type_hints(type(settings)).get(head))
    return next((read for kind, read in kinds.items() if kind in options), None)


def with_changes(settings: S, changes: Mapping[str, Any]) -> S:
    """Return `settings` with values by dotted name; set all at once, so that they are checked together."""
    names = {field.name for field in dataclasses.fields(settings)}
    own: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        head, dot, rest = path.partition(".")
        if dot:
            nested.setdefault(head, {})[rest] = value
        else:
            own[path] = value
    for name, other in EITHER.items():
        if own.get(name) is not None and other in names:
            own.setdefault(other, None)
    for head, inner in nested.items():
        own[head] = with_changes(getattr(settings, head), inner)
    return dataclasses.replace(settings, **own)


def as_asked(
    settings: S,
    *,
    changes: Mapping[str, Any] | None = None,
    assignments: Iterable[str] = (),
    select: str | None = None,
) -> S:
    """Apply the user's options to `settings`.

    Args:
        changes: values by dotted name.
        assignments: the same as texts, `train.learning_rate=3e-4`; they win.
        select: the metric that determines the best checkpoint.

    Raises:
        UserError: an unknown setting or metric, or a value of another type.
    """
    wanted = dict(changes or {})
    if select is not None:
        wanted["train.select"] = metric_to_select(select)
    return with_overrides(with_changes(settings, wanted), assignments)


def metric_to_select(name: str) -> Lowest | Highest:
    """Return the rule for the best checkpoint by a metric: lowest loss, highest score.

    Raises:
        UserError: no validation measures it; the message suggests the nearest names.
    """
    kind, of_a_set, _ = name.partition("/")
    of_stream = _OF_STREAMS.fullmatch(kind)
    kind = of_stream[1] if of_stream else kind
    known = _OF_A_SET if of_a_set else (*_OF_PAIRS, *_OF_SUMMARIES, *_OF_LABELS, *_OF_PRETRAINING)
    if kind not in known:
        raise UserError(f"select: unknown metric {name!r}{nearest(name, known)}")
    return Lowest(metric=name) if kind in _LOW_IS_GOOD else Highest(metric=name)


def check_on_pairs(
    run: RunPlan, *, several_sets: bool = False, labels: Iterable[str] = (), by_head: bool = False
) -> None:
    """Refuse settings that would fail only at the first batch or the first validation.

    Args:
        several_sets: whether validation also measures metrics of one set, `loss/NAME`.
        labels: scores of labels that validation also measures.
        by_head: whether a classifier predicts the labels, so that validation generates no text.

    Raises:
        UserError: an empty batch, or a metric for the best checkpoint that validation on pairs does not measure.
    """
    for name in ("batch_size", "batch_tokens"):
        value = getattr(run, name)
        if value is not None and value < 1:
            raise UserError(f"{name}={value} is too small; it must be at least 1")
    metric = run.train.select.metric
    kind = metric.partition("/")[0] if several_sets else metric
    scores = [*dict.fromkeys((*_OF_PAIRS, *labels))]
    written = () if by_head else (*_OF_SUMMARIES, *(name for name in scores if name not in _OF_PAIRS))
    if kind not in (*scores, *written):
        known = ", ".join(dict.fromkeys((*scores, *written)))
        raise UserError(f"select={metric}: validation on pairs does not measure it; use one of {known}")
    if kind in written and run.generated_rows == 0:
        raise UserError(
            f"select={metric} is measured on generated summaries, but generated_rows=0 disables them; "
            f"use --set generated_rows=100, or select one of {', '.join(_OF_PAIRS)}"
        )


def _hint(settings: Settings, path: str, *, group_name: str = "") -> Any:
    """Return the declared type of a dotted name; a group with several types counts as its current type.

    Args:
        path: the name, in the group `group_name` if that is not "".
    """
    head, dot, rest = path.partition(".")
    hints = typing.get_type_hints(type(settings))
    names = [field.name for field in dataclasses.fields(settings)]
    if head not in names:
        if meant := _in_groups(settings, head):
            raise UserError(f"--set {head}: unknown setting; did you mean {' or '.join(map(repr, meant))}?")
        of = f" of {group_name[:-1]}" if group_name else ""
        raise UserError(f"--set {group_name}{head}: unknown setting{of}{nearest(head, names)}")
    hint, group = hints[head], getattr(settings, head)
    whole = f"{group_name}{path}"
    if not isinstance(group, Settings):
        if dot:
            raise UserError(f"--set {whole}: {head!r} is a single value without subsettings; set it directly")
        return hint
    if dot:
        return _hint(group, rest, group_name=f"{group_name}{head}.")
    inner = [field.name for field in dataclasses.fields(group)]
    example = f"; name one of them: {whole}.{inner[0]}, ..." if inner else " without values to set"
    raise UserError(f"--set {whole}: is a group of settings{example}")


def _in_groups(settings: Settings, name: str) -> list[str]:
    """Return the dotted names of the settings of that name in the groups."""
    groups = [(field.name, getattr(settings, field.name)) for field in dataclasses.fields(settings)]
    return [
        f"{group}.{name}"
        for group, values in groups
        if isinstance(values, Settings) and name in {field.name for field in dataclasses.fields(values)}
    ]


def _value(text: str, hint: Any, path: str) -> Any:
    options = get_args(hint) if get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    if type(None) in options and text.lower() in _NONE:
        return None
    for option in options:
        with suppress(ValueError):
            return _parse(text, option)
    for part in text.split(","):
        if _is_not_finite(part):
            raise UserError(f"--set {path}={text}: {part.strip()!r} is not a finite number")
    wanted = " or ".join(_name(option) for option in options)
    raise UserError(f"--set {path}={text}: {text!r} is not {wanted}")


def _is_not_finite(text: str) -> bool:
    """Return whether Python parses a text as a number that is not finite: "nan", "inf", "1e999"."""
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


def _parse(text: str, kind: Any) -> Any:
    """Parse a text as a type; raise `ValueError` if it does not fit."""
    if kind in (int, str):
        return kind(text)
    if kind is float and math.isfinite(value := float(text)):
        return value
    if kind is bool and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if get_origin(kind) is Literal and text in get_args(kind):
        return text
    if get_origin(kind) is tuple:
        parts, kinds = text.split(","), get_args(kind)
        kinds = kinds[:1] * len(parts) if kinds[-1] is Ellipsis else kinds
        return tuple(_parse(part, inner) for part, inner in zip(parts, kinds, strict=True))
    raise ValueError(text)


def _name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(repr(value) for value in get_args(kind))
    if get_origin(kind) is tuple:
        return "a list of values separated by commas"
    words = {
        int: "a whole number", float: "a number", bool: "'true' or 'false'", str: "text",
        type(None): "'none'",
    }  # fmt: skip
    return words.get(kind, str(kind))


def asks_for_shape(assignments: Iterable[str]) -> bool:
    """Return whether an assignment changes the shape of a model, which only new models allow."""
    return any(_name_in(text).startswith("model.") for text in assignments)


def _name_in(assignment: str) -> str:
    return assignment.partition("=")[0].strip()


FUSION = ("model.chunk_length", "model.global_layers")
"""The part of a shape without weights."""


def asks_for_fusion(assignments: Iterable[str]) -> bool:
    """Return whether an assignment changes how a Z-Code++ reads."""
    return any(_name_in(text) in FUSION for text in assignments)


def names_asked(changes: Mapping[str, Any] | None, assignments: Iterable[str]) -> set[str]:
    """Return the dotted names of the settings that the user gives."""
    return {*(changes or {}), *(_name_in(text) for text in assignments)}


def refuse_shape(assignments: Iterable[str], *, but: Collection[str] = ()) -> None:
    """Refuse to change the shape of a given model.

    Args:
        but: names that may change.

    Raises:
        UserError: an assignment would change it.
    """
    for text in assignments:
        name = _name_in(text)
        if asks_for_shape([text]) and name not in but:
            raise UserError(f"--set {text}: the model given with --model keeps its shape; omit {name}")
