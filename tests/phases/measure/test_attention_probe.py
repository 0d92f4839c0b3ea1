"""What a probe reads equals a plain pass over each document, and its files hold the same numbers."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from precis.data.batches.token_arrays import TokenizedPairs
from precis.data.pairs.pair import Pair
from precis.data.synthetic.corpus import make_pairs
from precis.evaluation.probes import AttentionMap
from precis.phases.measure.attention_probe import (
    ProbedModel,
    mean_attention,
    prefix_spectra,
    read_for_probing,
)
from precis.phases.measure.probe_files import write_attention, write_map, write_spectra, write_table
from precis.tuning import METHODS, MethodSettings, Prefix, attach, load_adapter
from precis.tuning.prefix import LowLayers, Site
from precis_text.errors import UserError
from tests.tiny_models import save, tiny

PAIRS = list(make_pairs(5, seed=3))
LENGTH = 4


def adapter(
    model: PreTrainedModel, folder: Path, name: str = "prefix", *, seed: int = 1, **options: object
) -> Path:
    """An adapter whose columns matter."""
    prefix = Prefix(length=LENGTH, **options)  # type: ignore[arg-type]
    attachment = attach(model, METHODS[name](prefix, MethodSettings(mass=0.6)))
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in attachment.prefixes.parameters():
            parameter.normal_()
    attachment.save(folder)
    attachment.detach()
    return folder


@pytest.fixture(scope="module", params=["zcodepp", "bart", "t5"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def base(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(kind, tmp_path_factory.mktemp(kind) / "base")


@pytest.fixture(scope="module")
def prefixed(kind: str, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return adapter(tiny(kind)[0], tmp_path_factory.mktemp("prefix") / "adapter")


def read(base: Path, *adapters: Path, batch_size: int = 3, **options: int) -> ProbedModel:
    return read_for_probing(
        base,
        PAIRS,
        adapters=adapters,
        batch_size=batch_size,
        **{"max_source": 40, "max_target": 12, **options},  # type: ignore[arg-type]
    )


def plain_matrices(
    kind: str, folder: Path, rows: TokenizedPairs
) -> dict[tuple[Site, int], list[torch.Tensor]]:
    """Each document alone, without padding: (h i p+j)."""
    model, _ = tiny(kind)
    attachment = load_adapter(model, folder)
    found: dict[tuple[Site, int], list[torch.Tensor]] = {}
    for row in range(len(rows)):
        source = torch.from_numpy(rows.sources[row].astype(np.int64))[None]
        target = torch.from_numpy(rows.targets[row].astype(np.int64))[None]
        with torch.no_grad(), attachment.attention() as matrices:
            model(input_ids=source, labels=target, use_cache=False)
        for place, weights in matrices.items():
            found.setdefault(place, []).append(weights[0])
    return found


def test_maps_are_the_plain_means_over_heads_and_documents(kind: str, base: Path, prefixed: Path) -> None:
    reading = read(base, prefixed)
    maps = mean_attention(reading)
    plain = plain_matrices(kind, prefixed, reading.rows)
    assert {(site, layer - 1) for site, layers in maps.items() for layer in layers} == set(plain)
    for (site, layer), matrices in plain.items():
        found = maps[site][layer + 1]
        for row in range(len(found.weights)):
            have = [m.double().mean(0)[row].numpy() for m in matrices if m.shape[1] > row]
            wide = [np.pad(line, (0, found.weights.shape[1] - len(line))) for line in have]
            np.testing.assert_allclose(found.weights[row], np.mean(wide, 0), atol=1e-5)
            assert found.documents[row] == len(have)
        np.testing.assert_allclose(found.weights.sum(1), 1.0, atol=1e-5)
        assert found.prefix == LENGTH


def test_spectra_are_the_plain_means_over_heads_and_documents(kind: str, base: Path, prefixed: Path) -> None:
    reading = read(base, prefixed)
    (spectra,) = prefix_spectra(reading).values()
    plain = plain_matrices(kind, prefixed, reading.rows)
    for layer, spectrum in spectra.items():
        curves = []
        for matrix in plain[Site.ENCODER, layer - 1]:
            for head in matrix[..., :LENGTH].double().numpy():
                values = np.linalg.svd(head, compute_uv=False)
                curves.append(values.cumsum() / values.sum())
        np.testing.assert_allclose(spectrum.cumulative, np.mean(curves, 0), atol=1e-5)
        assert spectrum.matrices == len(curves) == 2 * len(PAIRS)


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("bart", tmp_path_factory.mktemp("bart") / "base")


def test_the_model_is_as_before_and_without_an_adapter_inputs_alone_are_shown(bart: Path) -> None:
    reading = read(bart)
    implementation = reading.loaded.model.config._attn_implementation
    maps = mean_attention(reading)
    assert reading.loaded.model.config._attn_implementation == implementation
    assert {found.prefix for layers in maps.values() for found in layers.values()} == {0}
    encoder = maps[Site.ENCODER][1]
    assert encoder.weights.shape == (40, 40)
    np.testing.assert_allclose(encoder.weights.sum(1), 1.0, atol=1e-5)
    with pytest.raises(UserError, match=r"does not have a prefix.*--adapter"):
        prefix_spectra(reading)


def test_what_is_cut_is_counted_and_told(bart: Path) -> None:
    told: list[str] = []
    reading = read_for_probing(bart, PAIRS, max_source=20, max_target=5, notify=told.append)
    assert (reading.facts["documents_cut"], reading.facts["summaries_cut"]) == (5, 5)
    assert told == [
        "5 of 5 documents (100.0%) are truncated to 20 tokens",
        "5 of 5 summaries (100.0%) are truncated to 5 tokens",
    ]
    assert reading.facts["source_tokens"] == 100


def test_longer_than_the_model_reads_is_refused(bart: Path) -> None:
    with pytest.raises(UserError, match=r"--max-source 65: .* up to 64 tokens"):
        read_for_probing(bart, PAIRS, max_source=65)


def test_the_model_s_own_limit_holds_where_none_is_given(bart: Path) -> None:
    assert read_for_probing(bart, PAIRS).facts["max_source"] == 64


@pytest.mark.long
def test_attention_files_hold_what_was_measured(bart: Path, tmp_path: Path) -> None:
    reading = read(bart, adapter(tiny("bart")[0], tmp_path / "run" / "adapter"))
    maps = mean_attention(reading)
    write_attention(maps, reading, tmp_path / "out")
    names = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert names == {
        "attention.json",
        "prefix-share.png",
        *(f"attention-{site}.png" for site in Site),
        "encoder/layer-1.csv",
        "encoder/layer-2.csv",
        "cross/layer-1.csv",
        "decoder/layer-1.csv",
    }
    table = np.loadtxt(tmp_path / "out" / "encoder" / "layer-2.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(table[:, 2:], maps[Site.ENCODER][2].weights, rtol=1e-5)
    record = json.loads((tmp_path / "out" / "attention.json").read_text())
    assert record["adapter"] == str(tmp_path / "run" / "adapter")
    assert record["documents"] == 5
    shares = [entry["prefix_share"] for entry in record["sites"]["encoder"]]
    assert shares == pytest.approx([m.prefix_share for m in maps[Site.ENCODER].values()], abs=1e-6)
    assert record["sites"]["cross"][0]["keys"] == 40


@pytest.mark.long
def test_several_adapters_are_compared_in_lower_and_upper_layers(bart: Path, tmp_path: Path) -> None:
    model = tiny("bart")[0]
    dense, sparse = (
        adapter(model, tmp_path / "dense" / "adapter"),
        adapter(model, tmp_path / "sparse", "truncsa"),
    )
    reading = read(bart, dense, sparse)
    spectra = prefix_spectra(reading)
    assert list(spectra) == ["dense", "sparse"]
    assert not np.allclose(spectra["dense"][1].values, spectra["sparse"][1].values)
    pools = write_spectra(spectra, reading, tmp_path / "out", site=Site.ENCODER)
    np.testing.assert_array_equal(pools["upper"]["dense"].values, spectra["dense"][2].values)
    with (tmp_path / "out" / "spectrum.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {(row["adapter"], row["layers"]) for row in rows} == {
        (name, layers) for name in ("dense", "sparse") for layers in ("1", "2", "lower", "upper")
    }
    mine = [row for row in rows if (row["adapter"], row["layers"]) == ("dense", "1")]
    values = [float(row["singular_value"]) for row in mine]
    np.testing.assert_allclose(values, spectra["dense"][1].values, rtol=1e-6)
    assert float(mine[-1]["cumulative"]) == pytest.approx(1.0)
    record = json.loads((tmp_path / "out" / "spectrum.json").read_text())
    assert record["groups"] == {"lower": [1, 1], "upper": [2, 2]}
    assert (tmp_path / "out" / "spectrum.png").stat().st_size > 1000


def test_a_prefix_in_lower_layers_has_no_upper_spectrum(bart: Path, tmp_path: Path) -> None:
    low = adapter(tiny("bart")[0], tmp_path / "low", layers=LowLayers(count=1))
    reading = read(bart, low)
    pools = write_spectra(prefix_spectra(reading), reading, tmp_path / "out", site=Site.ENCODER)
    assert list(pools) == ["lower"]


def test_a_prefix_at_another_site_is_refused(bart: Path, tmp_path: Path) -> None:
    crossed = adapter(tiny("bart")[0], tmp_path / "crossed", sites=("cross",))
    reading = read(bart, crossed)
    with pytest.raises(UserError, match=r"crossed: lacks a prefix in the encoder self-attention"):
        prefix_spectra(reading)
    assert list(prefix_spectra(reading, site=Site.CROSS)) == ["crossed"]
    assert {m.prefix for m in mean_attention(reading)[Site.ENCODER].values()} == {0}


def test_an_adapter_of_another_base_is_refused_and_leaves_nothing(bart: Path, tmp_path: Path) -> None:
    other = adapter(tiny("bart", seed=1)[0], tmp_path / "other")
    reading = read(bart, other)
    with pytest.raises(UserError, match="does not fit this"):
        mean_attention(reading)
    assert not [n for n, _ in reading.loaded.model.named_modules() if "prefix" in n]


def test_the_same_adapter_twice_is_refused(bart: Path, tmp_path: Path) -> None:
    one = adapter(tiny("bart")[0], tmp_path / "one" / "adapter")
    with pytest.raises(UserError, match="given twice"):
        prefix_spectra(read(bart, one, one.parent))


def test_adapters_of_unlike_instructions_are_refused(bart: Path, tmp_path: Path) -> None:
    model = tiny("bart")[0]
    folders = [adapter(model, tmp_path / name) for name in ("a", "b")]
    for folder, words in zip(folders, ("Write:", "Say:"), strict=True):
        (folder / "precis.json").write_text(json.dumps({"instruction": words}))
    with pytest.raises(UserError, match=r"'Say:' and 'Write:'.*--instruction"):
        read(bart, *folders)
    reading = read_for_probing(bart, [Pair("one", "two")], adapters=folders, instruction="")
    assert reading.facts["instruction"] == ""


@pytest.mark.long
def test_the_tokens_of_one_document_are_named(bart: Path, tmp_path: Path) -> None:
    reading = read_for_probing(bart, PAIRS[:1], max_source=20, max_target=5)
    write_attention(mean_attention(reading), reading, tmp_path / "one")
    tokens = json.loads((tmp_path / "one" / "attention.json").read_text())["tokens"]
    words = reading.loaded.tokenizer
    assert tokens == reading.tokens
    assert len(tokens["source token"]) == 20
    assert words.decode(reading.rows.sources[0][1]).strip() == tokens["source token"][1]
    # the decoder reads its start token and all but the last token of the summary
    assert tokens["target token"][1:] == [words.decode(t).strip() for t in reading.rows.targets[0][:-1]]
    several = read_for_probing(bart, PAIRS, max_source=20, max_target=5)
    write_attention(mean_attention(several), several, tmp_path / "several")
    assert "tokens" not in json.loads((tmp_path / "several" / "attention.json").read_text())


def test_a_matrix_stands_in_its_file_a_row_a_query(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).dirichlet(np.ones(7), size=4)
    found = AttentionMap(weights, np.arange(4, 0, -1), 2)
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
