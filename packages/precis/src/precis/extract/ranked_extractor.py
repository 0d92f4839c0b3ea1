"""An extractor whose ranker reads features of the words, without a model: that of the model in the box.

units -> features -> trees (`precis_text.unit_ranker`) -> a score each
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from precis.data.text.encoding import panics_in_one_line
from precis.extract.extractor import Extractor, UnitScores
from precis.extract.unit_tokens import ReadUnits, UnitTokenizer, UnitTokens
from precis.generation.model_location import ModelLocation
from precis.generation.summary import How
from precis.messages import OnProgress
from precis.storage.seal import check_sealed
from precis_text.bounded_io import read_json
from precis_text.errors import UserError, first_line
from precis_text.length import Cap
from precis_text.selection import TOGETHER
from precis_text.tokenizer_growth import check_growth
from precis_text.unit_ranker import UnitRanker

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class RankedExtractor(Extractor):
    """An extractor with a ranker.

    Args:
        ranker: orders the units.
        folder: the folder of its tokenizer.
        max_source: what `max_source` says; every document is read whole.
        languages: the languages that the ranker was trained on.
    """

    def __init__(
        self, ranker: UnitRanker, folder: Path, *, max_source: int = TOGETHER, languages: Sequence[str] = ()
    ) -> None:
        self.ranker, self.folder = ranker, folder
        self.tokens = _tokens(folder)
        self.max_source, self.languages = max_source, (*languages,)

    @classmethod
    def at(cls, location: ModelLocation) -> Self:
        """Open the ranker of a model's folder; raise `UserError` if a file is missing or damaged."""
        folder, use = cast(Path, location.folder), location.use
        check_sealed(folder)
        longest = use.max_source or TOGETHER
        return cls(UnitRanker.load(folder), folder, max_source=longest, languages=use.languages)

    def open_tokenizer(self) -> PreTrainedTokenizerBase:
        from precis.data.text.unigram_tokenizer import load_tokenizer

        return load_tokenizer(self.folder)

    def read(self, documents: Sequence[UnitTokens], on_progress: OnProgress | None = None) -> list[ReadUnits]:
        return [ReadUnits.whole(document) for document in documents]

    def how(self, read: ReadUnits) -> How:
        return "whole"

    def scored(
        self, read: Sequence[ReadUnits], cap: Cap | None, on_progress: OnProgress | None = None
    ) -> list[UnitScores]:
        found: list[UnitScores] = []

        def pause() -> None:
            if on_progress is not None:
                on_progress(len(found), len(read), 0)

        for each in read:
            found.append(UnitScores(*self.ranker.scores(each.units, cap, pause)))
        pause()
        return found


def _tokens(folder: Path) -> UnitTokenizer:
    """Open a tokenizer without transformers; raise `UserError` if it is missing or damaged."""
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    values = read_json(file)
    unknown = read_json(folder / "tokenizer_config.json").get("unk_token")
    try:
        check_growth(values)
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the library raises no type of its own
        raise UserError(f"{file}: the tokenizer cannot be loaded: {first_line(error)}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(texts: Sequence[str]) -> list[list[int]]:
        with panics_in_one_line():
            return [found.ids for found in tokenizer.encode_batch([*texts], add_special_tokens=False)]

    return UnitTokenizer(
        encode,
        lambda ids: str(tokenizer.decode([*ids], skip_special_tokens=True)),
        tokenizer.token_to_id(unknown) if isinstance(unknown, str) else None,
    )
