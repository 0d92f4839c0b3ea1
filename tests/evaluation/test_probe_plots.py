"""Pictures are written with what they promise in them, matrices with every number."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from precis.evaluation import probe_plots
from precis.evaluation.probe_curves import Curve, Point
from precis.evaluation.probe_plots import (
    draw_curves,
    draw_maps,
    draw_shares,
    draw_spectra,
    write_map,
    write_table,
)
from precis.evaluation.probes import AttentionMap, Spectrum

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
    assert axes.images[0].get_extent() == [-2.5, 5.5, 4.5, 0.5]
    name = axes.xaxis.get_major_formatter()
    assert [name(x, 0) for x in (-2, 0, 1)] == ["p1", "p3", "1"]


def test_shares_are_percents_with_a_legend(tmp_path: Path, drawn: list[Figure]) -> None:
    draw_shares({"encoder": {1: 0.25, 2: 0.5}, "cross": {1: 0.1}}, tmp_path / "s.png", title="t")
    assert is_png(tmp_path / "s.png")
    (axes,) = drawn[0].axes
    assert list(axes.lines[0].get_ydata()) == [25.0, 50.0]
    assert legend(axes) == ["encoder", "cross"]
    assert "(%)" in axes.get_ylabel()


def test_spectra_share_an_axis_and_say_who_has_no_weight(tmp_path: Path, drawn: list[Figure]) -> None:
    full = Spectrum(np.array([3.0, 1.0]), np.array([0.75, 1.0]), np.array([0.9, 1.0]), matrices=4)
    nothing = Spectrum(np.zeros(2), np.zeros(2), np.zeros(2), matrices=0, empty=4)
    draw_spectra({"lower": {"a": full, "b": nothing}, "upper": {"a": full}}, tmp_path / "s.png", title="t")
    assert is_png(tmp_path / "s.png")
    lower, upper = drawn[0].axes
    assert legend(lower) == ["a (90% at 2)", "b (no weight)"]
    assert legend(upper) == ["a (90% at 2)"]
    assert list(lower.lines[0].get_ydata()) == [0.75, 1.0]


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
    assert legend(axes) == ["hierblock", "fine-tuning"]
    bars = [list(drawn_line.get_ydata()) for drawn_line in axes.lines]
    assert [29.0, 31.0] in bars


def test_a_matrix_stands_in_its_file_a_row_a_query(tmp_path: Path) -> None:
    found = attention_map()
    write_map(tmp_path / "layer.csv", found)
    header = (tmp_path / "layer.csv").read_text().splitlines()[0]
    assert header == "query,documents,p1,p2,k1,k2,k3,k4,k5"
    table = np.loadtxt(tmp_path / "layer.csv", delimiter=",", skiprows=1)
    assert table[:, 0].tolist() == [1, 2, 3, 4]
    assert table[:, 1].tolist() == found.documents.tolist() == [4, 3, 2, 1]
    np.testing.assert_allclose(table[:, 2:], found.weights, rtol=1e-5)


def test_a_table_has_empty_cells_for_what_is_not_known(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", ["a", "b"], [[1, None]])
    assert (tmp_path / "t.csv").read_text() == "a,b\n1,\n"
