"""Pictures are written with what they promise in them, matrices with every number."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from precis.evaluation import probe_plots
from precis.evaluation.probe_plots import (
    Curve,
    Measured,
    Point,
    ScoreInterval,
    curves,
    draw_curves,
    draw_maps,
    draw_shares,
    draw_spectra,
)
from precis.evaluation.probes import AttentionMap, Spectrum
from precis_text.errors import UserError

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are saved."""
    figures: list[Figure] = []
    save = probe_plots._save

    def keep(figure: Figure, file: Path) -> None:
        figures.append(figure)
        save(figure, file)

    monkeypatch.setattr(probe_plots, "_save", keep)
    return figures


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that would be saved, which takes most of the time."""
    figures: list[Figure] = []
    monkeypatch.setattr(probe_plots, "_save", lambda figure, _: figures.append(figure))
    return figures


def attention_map(*, prefix: int = 2, rows: int = 4, keys: int = 5) -> AttentionMap:
    weights = np.random.default_rng(0).dirichlet(np.ones(prefix + keys), size=rows)
    return AttentionMap(weights, np.arange(rows, 0, -1), prefix)


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def is_png(file: Path) -> bool:
    return file.read_bytes().startswith(PNG) and [file.name] == [p.name for p in file.parent.iterdir()]


def test_heat_maps_have_a_titled_panel_a_layer_and_one_scale(tmp_path: Path, drawn: list[Figure]) -> None:
    maps = {layer: attention_map() for layer in range(1, 7)}
    draw_maps(maps, tmp_path / "a.png", title="encoder", queries="source token", keys="source token")
    assert is_png(tmp_path / "a.png")
    (figure,) = drawn
    panels = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title().split(",")[0] for axes in panels] == [f"layer {n}" for n in range(1, 7)]
    assert len({axes.images[0].norm for axes in panels}) == 1
    assert figure.axes[-1].get_ylabel() == "mean attention weight"
    assert "prefix columns" in figure.get_supxlabel()


def test_the_first_input_token_is_column_one_with_the_prefix_left_of_it(
    tmp_path: Path, drawn: list[Figure]
) -> None:
    found = attention_map(prefix=3)
    draw_maps({1: found}, tmp_path / "a.png", title="t", queries="q", keys="k")
    axes = drawn[0].axes[0]
    assert axes.images[0].get_extent() == [-2.5, 5.5, 4.5, 0.5]  # type: ignore[comparison-overlap]
    name = axes.xaxis.get_major_formatter()
    assert [name(x, 0) for x in (-2, 0, 1)] == ["p1", "p3", "1"]


def test_shares_are_percents_with_a_legend(tmp_path: Path, drawn: list[Figure]) -> None:
    draw_shares({"encoder": {1: 0.25, 2: 0.5}, "cross": {1: 0.1}}, tmp_path / "s.png", title="t")
    assert is_png(tmp_path / "s.png")
    (axes,) = drawn[0].axes
    assert list(axes.lines[0].get_ydata()) == [25.0, 50.0]  # type: ignore[arg-type]
    assert legend(axes) == ["encoder", "cross"]
    assert "(%)" in axes.get_ylabel()
    assert axes.get_ylim()[0] == 0


def test_spectra_share_an_axis_and_say_who_has_no_weight(tmp_path: Path, drawn: list[Figure]) -> None:
    full = Spectrum(np.array([3.0, 1.0]), np.array([0.75, 1.0]), np.array([0.9, 1.0]), matrices=4)
    nothing = Spectrum(np.zeros(2), np.zeros(2), np.zeros(2), matrices=0, empty=4)
    draw_spectra({"lower": {"a": full, "b": nothing}, "upper": {"a": full}}, tmp_path / "s.png", title="t")
    assert is_png(tmp_path / "s.png")
    lower, upper = drawn[0].axes
    assert legend(lower) == ["a (90% at 2)", "b (no weight)"]
    assert legend(upper) == ["a (90% at 2)"]
    assert list(lower.lines[0].get_ydata()) == [0.75, 1.0]  # type: ignore[arg-type]


def test_curves_have_a_tick_for_each_place_and_bars_for_intervals(
    tmp_path: Path, drawn: list[Figure]
) -> None:
    line = Curve("hierblock", "rougeL", (Point(5, 30.0, 29.0, 31.0, 3), Point(50, 33.0, None, None, 1)))
    level = Curve("fine-tuning", "rougeL", (Point(None, 35.0, None, None, 1),))
    draw_curves([[line, level]], tmp_path / "c.png", xlabel="share (%)", logarithmic=True)
    assert is_png(tmp_path / "c.png")
    (axes,) = drawn[0].axes
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["5", "50"]
    (names,) = drawn[0].legends
    assert [text.get_text() for text in names.get_texts()] == ["hierblock", "fine-tuning"]
    assert axes.get_title() == "ROUGE-L"
    bars = [list(drawn_line.get_ydata()) for drawn_line in axes.lines]  # type: ignore[arg-type]
    assert [29.0, 31.0] in bars


LONG = "decoder self-attention: 100 documents (100 cut to 512 tokens), mean over heads"


def inside(figure: Figure) -> bool:
    """Whether nothing of the figure lies beyond its edges."""
    FigureCanvasAgg(figure).draw()
    box, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    return min(box.x0, box.y0) >= -0.02 and box.x1 <= width + 0.02 and box.y1 <= height + 0.02


def test_long_titles_and_names_stay_inside_the_smallest_picture(tmp_path: Path, drawn: list[Figure]) -> None:
    full = Spectrum(np.array([3.0, 1.0]), np.array([0.75, 1.0]), np.array([0.9, 1.0]), matrices=4)
    line = Curve("hierblock+softsa", "rougeL", (Point(5, 30.0, 29.0, 31.0, 3),))
    draw_maps({1: attention_map()}, tmp_path / "a.png", title=LONG, queries="q", keys="k")
    draw_shares({"decoder self-attention": {1: 0.2}}, tmp_path / "b.png", title=LONG)
    draw_spectra({"lower": {"runs/a-long-folder-name/prefix": full}}, tmp_path / "c.png", title=LONG)
    draw_curves([[line] * 8], tmp_path / "d.png", xlabel="share (%)", logarithmic=True)
    assert [inside(figure) for figure in drawn] == [True] * 4


def test_tokens_are_named_along_the_axes_and_prefix_columns_by_number(
    tmp_path: Path, drawn: list[Figure]
) -> None:
    words = ["A", "cat", "$at", "_", "."]
    found = attention_map(prefix=3)
    draw_maps(
        {1: found},
        tmp_path / "a.png",
        title="t",
        queries="target token",
        keys="source token",
        query_tokens=words[:4],
        key_tokens=words,
    )
    axes = drawn[0].axes[0]
    shown = [text.get_text() for text in axes.get_xticklabels()]
    assert shown == ["p1", "p3", "A", "cat", r"\$at", " _", "."]
    assert axes.get_xticks().tolist() == [-2, 0, 1, 2, 3, 4, 5]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["A", "cat", r"\$at", " _"]
    assert axes.get_yticks().tolist() == [1, 2, 3, 4]
    assert inside(drawn[0])


def test_of_many_tokens_evenly_spaced_ones_are_named(tmp_path: Path, drawn: list[Figure]) -> None:
    found = attention_map(prefix=0, keys=100)
    draw_maps(
        {1: found},
        tmp_path / "a.png",
        title="t",
        queries="q",
        keys="k",
        key_tokens=list(map(str, range(100))),
    )
    shown = [text.get_text() for text in drawn[0].axes[0].get_xticklabels()]
    assert shown == list(map(str, range(0, 100, 2)))


def test_a_name_that_begins_with_an_underscore_is_in_the_legend(tmp_path: Path, drawn: list[Figure]) -> None:
    full = Spectrum(np.array([3.0, 1.0]), np.array([0.75, 1.0]), np.array([0.9, 1.0]), matrices=4)
    draw_spectra({"lower": {"_mine": full, "b": full}}, tmp_path / "s.png", title="t")
    assert legend(drawn[0].axes[0]) == [" _mine (90% at 2)", "b (90% at 2)"]


def test_ticks_that_would_overlap_are_left_out(tmp_path: Path, drawn: list[Figure]) -> None:
    points = tuple(Point(x, 30.0, None, None, 1) for x in (4.8, 5, 5.2, 100))
    draw_curves([[Curve("a", "rougeL", points)]], tmp_path / "c.png", xlabel="share (%)", logarithmic=True)
    assert [text.get_text() for text in drawn[0].axes[0].get_xticklabels()] == ["4.8", "100"]


def run(
    line: str, x: float | None, mean: float, *, task: str = "", bounds: tuple[float, float] | None = None
) -> Measured:
    estimate = ScoreInterval(mean, *bounds) if bounds else ScoreInterval(mean)
    return Measured(line=line, x=x, task=task, metrics={"rougeL": estimate}, name=f"{line} {x}")


def test_points_stand_from_the_left_in_lines_by_first_mention() -> None:
    found = curves([run("b", 3, 1.0), run("a", 2, 2.0), run("b", 1, 3.0)], "rougeL")
    assert [curve.line for curve in found] == ["b", "a"]
    assert [(p.x, p.mean) for p in found[0].points] == [(1, 3.0), (3, 1.0)]


def test_a_single_run_keeps_its_interval() -> None:
    (curve,) = curves([run("a", 1, 30.0, bounds=(29.0, 31.5))], "rougeL")
    assert curve.points == (Point(1, 30.0, 29.0, 31.5, 1),)


def test_a_run_without_interval_has_none() -> None:
    (curve,) = curves([run("a", 1, 30.0)], "rougeL")
    assert (curve.points[0].low, curve.points[0].high) == (None, None)


def test_repeated_runs_give_their_mean_and_range() -> None:
    (curve,) = curves([run("a", 1, mean) for mean in (30.0, 33.0, 36.0)], "rougeL")
    assert curve.points == (Point(1, 33.0, 30.0, 36.0, 3),)


def test_tasks_count_alike_however_often_they_were_run() -> None:
    runs = [run("a", 5, 10.0, task="x"), run("a", 5, 14.0, task="x"), run("a", 5, 40.0, task="y")]
    (curve,) = curves(runs, "rougeL")
    assert curve.points[0].mean == 26.0
    assert curve.points[0].low is None  # that of task y is not known


def test_points_that_average_other_tasks_are_refused() -> None:
    runs = [run("a", 5, 10.0, task="x"), run("a", 5, 40.0, task="y"), run("b", 10, 10.0, task="x")]
    with pytest.raises(UserError, match="b at 10 lacks runs of y"):
        curves(runs, "rougeL")


def test_a_level_is_a_line_of_its_own() -> None:
    found = curves([run("a", None, 50.0), run("a", 1, 30.0)], "rougeL")
    assert [curve.is_level for curve in found] == [True, False]


def test_a_missing_metric_is_named_with_the_run() -> None:
    with pytest.raises(UserError, match=r"a 1: lacks the score 'rouge2'.*rougeL"):
        curves([run("a", 1, 30.0)], "rouge2")


def test_the_legend_of_one_panel_is_no_wider_than_the_picture(tmp_path: Path, drawn: list[Figure]) -> None:
    lines = [
        Curve(f"prefix of hierblock+softsa, seed {seed}", "rougeL", (Point(5, 30.0, None, None, 1),))
        for seed in range(3)
    ]
    draw_curves([lines], tmp_path / "c.png", xlabel="share (%)", logarithmic=False)
    assert inside(drawn[0])


def test_the_names_of_64_tokens_stand_apart_like_lines_of_text(tmp_path: Path, unsaved: list[Figure]) -> None:
    words = [f"word{n}" for n in range(64)]
    for rows, keys in ((64, 2), (2, 64)):
        found = attention_map(prefix=0, rows=rows, keys=keys)
        names = {"query_tokens" if rows == 64 else "key_tokens": words}
        draw_maps({1: found}, tmp_path / "a.png", title="t", queries="q", keys="k", **names)
        FigureCanvasAgg(unsaved[-1]).draw()
    rows_of, columns_of = (figure.axes[0] for figure in unsaved)
    left = [text.get_window_extent().y0 for text in reversed(rows_of.get_yticklabels())]
    below = [text.get_window_extent().x0 for text in columns_of.get_xticklabels()]
    line = 1.2 * float(rows_of.get_yticklabels()[0].get_fontsize()) * unsaved[0].dpi / 72
    for places in (left, below):
        assert np.diff(places).mean() > line


@pytest.mark.parametrize(("count", "step"), [(64, 1), (65, 2), (128, 2), (129, 3)])
def test_at_most_64_tokens_are_named(count: int, step: int, tmp_path: Path, unsaved: list[Figure]) -> None:
    found = attention_map(prefix=0, rows=count)
    words = list(map(str, range(count)))
    draw_maps({1: found}, tmp_path / "a.png", title="t", queries="q", keys="k", query_tokens=words)
    shown = [text.get_text() for text in unsaved[0].axes[0].get_yticklabels()]
    assert shown == words[::step]


@pytest.mark.parametrize(("layers", "shape"), [(1, (1, 1)), (4, (1, 4)), (5, (2, 4)), (9, (3, 4))])
def test_as_many_panels_as_fit_the_page_stand_in_a_row(
    layers: int, shape: tuple[int, int], tmp_path: Path, unsaved: list[Figure]
) -> None:
    maps = {layer: attention_map() for layer in range(1, layers + 1)}
    draw_maps(maps, tmp_path / "a.png", title="t", queries="q", keys="k")
    panels = [axes for axes in unsaved[0].axes if axes.images]
    assert len(panels) == layers
    places = [panel.get_subplotspec() for panel in panels]
    assert {place.get_geometry()[:2] for place in places if place} == {shape}


def test_the_title_of_a_map_says_the_share_of_its_prefix_and_a_map_without_one_says_nothing(
    tmp_path: Path, unsaved: list[Figure]
) -> None:
    with_prefix, without = attention_map(), attention_map(prefix=0)
    draw_maps({1: with_prefix}, tmp_path / "a.png", title="t", queries="q", keys="k")
    draw_maps({1: without}, tmp_path / "a.png", title="t", queries="q", keys="k")
    titles = [figure.axes[0].get_title() for figure in unsaved]
    assert titles == [f"layer 1, prefix {with_prefix.prefix_share:.0%}", "layer 1"]
    assert [figure.get_supxlabel() for figure in unsaved] == ["key (prefix columns | k)", "key (k)"]
    assert [len(figure.axes[0].lines) for figure in unsaved] == [1, 0]


def test_one_strong_weight_does_not_leave_the_others_dark(tmp_path: Path, unsaved: list[Figure]) -> None:
    weights = np.full((40, 50), 0.02)
    weights[0, 0] = 1.0  # one of 2,000
    draw_maps(
        {1: AttentionMap(weights, np.arange(40, 0, -1), 0)},
        tmp_path / "a.png",
        title="t",
        queries="q",
        keys="k",
    )
    norm = unsaved[0].axes[0].images[0].norm
    assert norm.vmin == 0.0
    assert norm.vmax == pytest.approx(0.02, rel=0.2)


def test_up_to_24_places_have_ticks_of_their_own(tmp_path: Path, unsaved: list[Figure]) -> None:
    for count in (24, 25):
        points = tuple(Point(x, 30.0, None, None, 1) for x in (*range(count - 1), 1000))
        draw_curves([[Curve("a", "rougeL", points)]], tmp_path / "c.png", xlabel="x", logarithmic=False)
    ticks = [figure.axes[0].get_xticks().tolist() for figure in unsaved]
    assert ticks[0] == [0, 1000]
    assert len(ticks[1]) > 2


def test_what_bars_are_is_said_where_there_are_any(tmp_path: Path, unsaved: list[Figure]) -> None:
    bar, plain = Point(5, 30.0, 29.0, 31.0, 3), Point(5, 30.0, None, None, 1)
    level = Curve("level", "rougeL", (Point(None, 35.0, 34.0, 36.0, 1),))
    for point in (bar, plain):
        lines = [Curve("a", "rougeL", (point,)), level]
        draw_curves([lines], tmp_path / "c.png", xlabel="x", logarithmic=False, bars="what bars are")
    assert [figure.get_suptitle() for figure in unsaved] == ["what bars are", ""]
    assert [line.get_linestyle() for line in unsaved[0].axes[0].lines] == ["-", "-", "--"]
    assert unsaved[0].axes[0].get_xscale() == "linear"


def test_a_level_alone_has_no_places(tmp_path: Path, unsaved: list[Figure]) -> None:
    level = Curve("level", "rougeL", (Point(None, 35.0, None, None, 1),))
    draw_curves([[level]], tmp_path / "c.png", xlabel="x", logarithmic=True)
    assert unsaved[0].axes[0].get_xticks().tolist() == []
    assert unsaved[0].axes[0].get_xscale() == "linear"


def test_runs_of_an_unnamed_task_and_of_a_level_are_named_when_they_lack() -> None:
    runs = [run("a", None, 10.0, task="x"), run("b", 5, 40.0, task="x"), run("b", 5, 1.0)]
    with pytest.raises(UserError, match=r"^a lacks runs of an unnamed task"):
        curves(runs, "rougeL")


def test_bounds_are_averaged_over_tasks() -> None:
    runs = [run("a", 5, 10.0, task="x", bounds=(8.0, 11.0)), run("a", 5, 40.0, task="y", bounds=(38.0, 45.0))]
    (curve,) = curves(runs, "rougeL")
    assert curve.points == (Point(5, 25.0, 23.0, 28.0, 2),)
