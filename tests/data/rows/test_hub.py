"""Data sets of the Hugging Face hub: which rows are read, what is asked of the library, what becomes of its errors."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precis.data.pairs.pair import Columns, Pair
from precis.data.pairs.pair_reader import read_pairs, splits_on_hub
from precis.data.rows.hub import hub_hint, hub_name
from precis_text.errors import UserError


class TestHub:
    """`datasets.load_dataset` stands in for the hub."""

    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        calls: list[Any] = []

        def load_dataset(path: str, **options: Any) -> datasets.DatasetDict:
            calls.append((path, options))
            made = {"dialogue": ["a b", "c d"], "summary": ["a", "c"], "id": ["1", "2"]}
            return datasets.DatasetDict(
                train=datasets.Dataset.from_dict(made),
                validation=datasets.Dataset.from_dict({**made, "id": [3, 4]}),
            )

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        return calls

    columns = Columns(document="dialogue", references=None)

    def test_dev_finds_validation(self, asked: list[Any]) -> None:
        read = list(read_pairs("hub:owner/name", columns=self.columns, split="dev"))
        assert read == [Pair("a b", "a", id="3"), Pair("c d", "c", id="4")]
        assert asked == [("owner/name", {})]

    def test_configuration_and_revision_are_passed_on(self, asked: list[Any]) -> None:
        for source in (
            "hub:o/n:3.0.0",
            "hub:o/n@abc",
            "hub:o/n:en@refs/convert/parquet",
            "hub:o/n@refs/convert/parquet",
        ):
            next(read_pairs(source, columns=self.columns, split="train"))
        assert [options for _, options in asked] == [
            {"name": "3.0.0"},
            {"revision": "abc"},
            {"revision": "refs/convert/parquet", "data_dir": "en"},
            {"revision": "refs/convert/parquet", "data_dir": "default"},
        ]

    @pytest.mark.usefixtures("asked")
    def test_a_split_that_is_not_there_is_named_with_those_that_are(self) -> None:
        with pytest.raises(UserError, match="no split 'test'; it has train, validation"):
            list(read_pairs("hub:owner/name", split="test"))
        with pytest.raises(UserError, match="name the split to read; it has train, validation"):
            list(read_pairs("hub:owner/name"))

    @pytest.mark.usefixtures("asked")
    def test_wrong_columns_are_named(self) -> None:
        with pytest.raises(
            UserError, match=r"hub:o/n: train row 1: no column 'document' .* 'dialogue', 'summary', 'id'"
        ):
            list(read_pairs("hub:o/n", split="train"))

    @pytest.mark.parametrize(
        ("error", "says"),
        [
            (ConnectionError("Couldn't reach 'o/n' on the Hub (timeout)\nmore"), "the hub cannot be reached"),
            (
                datasets.exceptions.DatasetNotFoundError("Dataset 'o/n' doesn't exist"),
                "the hub does not have this data set",
            ),
            (
                RuntimeError("Dataset scripts are no longer supported, but found n.py"),
                "add @refs/convert/parquet",
            ),
            (
                ValueError("BuilderConfig 'x' not found.\nAvailable: ['y']"),
                "cannot be loaded: BuilderConfig 'x' not found",
            ),
            (RuntimeError("other"), "cannot be loaded: other"),
            (TypeError(), "cannot be loaded: TypeError"),
        ],
    )
    def test_what_the_library_raises_becomes_one_line(
        self, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str
    ) -> None:
        def load_dataset(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setattr(datasets, "load_dataset", load_dataset)
        with pytest.raises(UserError) as caught:
            list(read_pairs("hub:o/n", split="train"))
        assert str(caught.value).startswith("hub:o/n: ")
        assert says in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_the_hubs_converted_copy_is_read_by_configuration(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A local folder with the layout of the converted branch, read by the real library."""
        for config in ("Abstract", "AIC"):
            for split in ("train", "validation", "test"):
                (tmp_path / config / split).mkdir(parents=True)
                table = pa.table({"source": [[config, split]], "target": [["t", "u"]]})
                pq.write_table(table, tmp_path / config / split / "0000.parquet")
        real = datasets.load_dataset

        def local(_: str, *, revision: str, data_dir: str) -> Any:
            assert revision == "refs/convert/parquet"
            return real(str(tmp_path), data_dir=data_dir, cache_dir=str(tmp_path / "cache"))

        monkeypatch.setattr(datasets, "load_dataset", local)
        columns = Columns(document="source", summary="target", references=None, join=" ")
        read = read_pairs("hub:a/s:AIC@refs/convert/parquet", columns=columns, split="dev")
        assert list(read) == [Pair("AIC validation", "t", ("t", "u"))]

    def test_a_limit_takes_the_first_rows_as_they_come(self, asked: list[Any]) -> None:
        read = list(read_pairs("hub:o/n", columns=self.columns, split="train", limit=1))
        assert read == [Pair("a b", "a", id="1")]
        assert asked == [("o/n", {"streaming": True})]

    def test_the_names_of_the_splits_are_had_without_their_rows(self, asked: list[Any]) -> None:
        assert splits_on_hub("hub:o/n") == ["train", "dev"]
        assert asked == [("o/n", {"streaming": True})]

    def test_a_stream_that_breaks_off_is_one_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def rows() -> Iterator[dict[str, str]]:
            yield {"dialogue": "a b", "summary": "a"}
            raise ConnectionError("reset by peer\nmore")

        monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: {"train": rows()})
        with pytest.raises(UserError, match=r"^hub:o/n: the hub cannot be reached \(reset by peer\)"):
            list(read_pairs("hub:o/n", columns=self.columns, split="train", limit=2))

    @pytest.mark.slow
    def test_a_stream_that_is_left_half_way_does_not_abort_the_process(self, tmp_path: Path) -> None:
        """Arrow's reader did, when the interpreter ended: apache/arrow#45214."""
        for split in ("train", "test"):
            (tmp_path / "data" / split).mkdir(parents=True)
            table = pa.table({"source": ["w " * 1000] * 4000, "target": ["t"] * 4000})
            pq.write_table(table, tmp_path / "data" / split / "0000.parquet", row_group_size=500)
        script = f"""
import datasets
from precis.cli import main
load = datasets.load_dataset
datasets.load_dataset = lambda _, **options: load({str(tmp_path / "data")!r}, **options)
show = ["data", "show", "hub:o/n", "--split", "train", "--rows", "2", "--summary-column", "target"]
codes = [main([*show, "--document-column", column]) for column in ("source", "wrong")]
raise SystemExit(0 if codes == [0, 2] else 1)
"""
        variables = {**os.environ, "HF_HOME": str(tmp_path / "home")}
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=variables
        )
        assert done.returncode == 0, done.stderr
        assert "terminate called" not in done.stderr

    def test_a_name_that_cannot_be_one_is_refused(self) -> None:
        with pytest.raises(UserError, match="write hub:owner/name"):
            list(read_pairs("hub:", split="train"))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("hub:owner/name", "owner/name"),
        ("hub:runs/first", "runs/first"),
        ("hub:t5-small", "t5-small"),
        ("owner/name", "owner/name"),
        ("t5-small", "t5-small"),
        ("runs/first", None),
        ("./owner/name", None),
        ("../name", None),
        ("/owner/name", None),
        ("~/name", None),
        ("owner/name/", None),
        ("a/b/c", None),
        ("hub:a/b/c", None),
        ("hub:", None),
        ("hub:../x", None),
        ("owner/..", None),
        ("owner name/x", None),
    ],
)
def test_a_name_is_the_hubs_where_nothing_local_could_be_meant(
    source: str, name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    assert hub_name(source) == name


def test_a_missing_folder_that_could_be_a_name_says_how_to_name_the_hub() -> None:
    assert hub_hint("runs/first") == "; write hub:runs/first for the Hugging Face hub"
    assert hub_hint("./runs") == ""
    assert hub_hint("hub:a/b/c") == "; write hub:owner/name"
