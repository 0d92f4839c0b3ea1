"""`--set train.learning_rate=3e-4`: change one setting of a recipe by its dotted name, types checked."""

from __future__ import annotations

import dataclasses
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Literal, TypeVar, get_args, get_origin

from precis.config import Settings, nearest
from precis.errors import UserError
from precis.recipes.runs import RunPlan
from precis.training.schedule import LinearDecay, schedule_named
from precis.training.settings import Highest, Lowest

S = TypeVar("S", bound=Settings)

# Setting one clears the other, unless both are asked for (which the settings themselves refuse).
_EITHER = {"steps": "epochs", "epochs": "steps", "batch_size": "batch_tokens", "batch_tokens": "batch_size"}
_NONE = ("none", "null", "off")
# What validation measures: of every training on pairs; where summaries are generated; of pre-training.
_OF_PAIRS = ("loss", "nll", "accuracy")
_OF_SUMMARIES = ("rouge1", "rouge2", "rougeL")
_OF_LABELS = ("matthews", "f1", "pearson", "spearman")
_OF_PRETRAINING = ("mlm", "mlm_accuracy", "rtd", "rtd_accuracy", "rtd_recall", "csp", "csp_accuracy")
_OF_STREAMS = re.compile(r"(nll|accuracy)_[1-9][0-9]*")
_OF_A_SET = ("loss", "rougeL")  # `loss/NAME` where several sets are grounded on
_LOW_IS_GOOD = ("loss", "nll", "mlm", "rtd", "csp")


def with_overrides(
    settings: S, assignments: Iterable[str], *, kinds: Mapping[type, Callable[[str], Any]] | None = None
) -> S:
    """`settings` with `NAME=VALUE` texts applied.

    Args:
        kinds: for a group that may be of several kinds: one of the kinds, and what turns a text into any of them.

    Raises:
        UserError: an assignment has no `=`, names no setting (the nearest is given) or one that another names too, or
            its value has another type.
    """
    named: dict[str, str] = {}
    for assignment in assignments:
        path, equals, text = (part.strip() for part in assignment.partition("="))
        if not equals or not path:
            raise UserError(f"--set {assignment}: write NAME=VALUE, for example train.learning_rate=3e-4")
        if path in named:
            raise UserError(f"--set {path} is given twice, the second time as {text}; give it once")
        named[path] = text
    # A kind is chosen first: other names are looked for among the settings of that kind.
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
    """What reads the value of a dotted name, if that is a group of several kinds."""
    head, dot, rest = path.partition(".")
    if not isinstance(settings, Settings):
        return None
    if dot:
        return _reader(getattr(settings, head, None), rest, kinds)
    options = get_args(typing.get_type_hints(type(settings)).get(head))
    return next((read for kind, read in kinds.items() if kind in options), None)


def with_changes(settings: S, changes: Mapping[str, Any]) -> S:
    """`settings` with values by dotted name. All are set at once, so that settings are checked together."""
    names = {field.name for field in dataclasses.fields(settings)}
    own: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        head, dot, rest = path.partition(".")
        if dot:
            nested.setdefault(head, {})[rest] = value
        else:
            own[path] = value
    for name, other in _EITHER.items():
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
    """`settings` under what a user asks for.

    Args:
        changes: values by dotted name.
        assignments: the same as texts, `train.learning_rate=3e-4`; they win.
        select: the metric that names the best checkpoint.

    Raises:
        UserError: an unknown setting or metric, or a value of another type.
    """
    wanted = dict(changes or {})
    if select is not None:
        wanted["train.select"] = metric_to_select(select)
    return with_overrides(with_changes(settings, wanted), assignments)


def metric_to_select(name: str) -> Lowest | Highest:
    """The rule for the best checkpoint by a metric: lowest loss, highest score.

    Raises:
        UserError: no validation measures it; the nearest names are given.
    """
    kind, of_a_set, _ = name.partition("/")
    of_stream = _OF_STREAMS.fullmatch(kind)
    kind = of_stream[1] if of_stream else kind
    known = _OF_A_SET if of_a_set else (*_OF_PAIRS, *_OF_SUMMARIES, *_OF_LABELS, *_OF_PRETRAINING)
    if kind not in known:
        raise UserError(f"select: no metric is called {name!r}{nearest(name, known)}")
    return Lowest(metric=name) if kind in _LOW_IS_GOOD else Highest(metric=name)


def check_on_pairs(
    run: RunPlan, *, several_sets: bool = False, labels: Iterable[str] = (), by_head: bool = False
) -> None:
    """Refuse settings that would fail only at the first batch or the first validation.

    Args:
        several_sets: the metrics of one set, `loss/NAME`, are measured too.
        labels: scores of labels that are measured too.
        by_head: a classifier gives the labels, so nothing is written.

    Raises:
        UserError: an empty batch, or a metric for the best checkpoint that validation on pairs will not measure.
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
            f"select={metric} is measured on generated summaries, and generated_rows=0 asks for none; "
            f"give --set generated_rows=100, or select one of {', '.join(_OF_PAIRS)}"
        )


def _hint(settings: Settings, path: str) -> Any:
    """The declared type of a dotted name; where a group may be of several kinds, the one that it is of counts."""
    head, dot, rest = path.partition(".")
    kind = type(settings)
    hints = typing.get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(settings)]
    if head not in names:
        raise UserError(f"--set: {kind.__name__} has no setting {head!r}{nearest(head, names)}")
    hint, group = hints[head], getattr(settings, head)
    if not isinstance(group, Settings):
        if dot:
            raise UserError(f"--set {path}: {head!r} is a single value and has no subsettings")
        return hint
    if dot:
        return _hint(group, rest)
    inner = [field.name for field in dataclasses.fields(group)]
    example = f"; name one of them: {head}.{inner[0]}, ..." if inner else ", and has none to set"
    raise UserError(f"--set {path}: a group of settings{example}")


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
    """Whether Python reads a text as a number that is not finite: "nan", "inf", "1e999"."""
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


def _parse(text: str, kind: Any) -> Any:
    """Raises `ValueError` if the text is not of the kind."""
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
        return "values with commas between"
    words = {
        int: "a whole number",
        float: "a number",
        bool: "'true' or 'false'",
        str: "text",
        type(None): "'none'",
    }
    return words.get(kind, str(kind))


def asks_for_shape(assignments: Iterable[str]) -> bool:
    """Whether one of the assignments is about the shape of a model, which a new one alone takes."""
    return any(_name_in(text).startswith("model.") for text in assignments)


def _name_in(assignment: str) -> str:
    return assignment.partition("=")[0].strip()


def refuse_shape(assignments: Iterable[str]) -> None:
    """Refuse to change the shape of a model that is given.

    Raises:
        UserError: one of the assignments would change it.
    """
    for text in assignments:
        name = _name_in(text)
        if asks_for_shape([text]):
            raise UserError(
                f"--set {text}: the model is given with --model and keeps its shape; leave {name} out"
            )
