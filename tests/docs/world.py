"""A folder in which every command of the guide can run: tiny models under the names of large ones, tiny data sets."""

import csv
import json
import lzma
from pathlib import Path

from precis.data.synthetic.corpus import make_pairs
from tests.document_files import epub, lines_of, pdf, word
from tests.fairseq_checkpoints import bert_like, save_released
from tests.tiny_models import save, save_classifier, save_llama

TASKS = (
    *("samsum", "e2e", "dialogsum", "cnndm", "aeslc", "scitldr", "reuters21578"),
    *("mediasum", "multi_news", "newsroom", "wikihow"),
)
TEXTS = ("books", "more", "texts")
_REPORT = "Ann sings in the hall on Monday. Bob listens to her. They go home late and sleep until noon. "
_PASSAGE = "The mill in Arlen burned down in 1904. It was built in 1871. Ann of Arlen built another one."


def make_world(folder: Path) -> None:
    """Fill `folder`."""
    pairs = list(make_pairs(130, seed=3))
    rows = [{"document": pair.document, "summary": pair.summary} for pair in pairs]
    for task in TASKS:
        for split, part in (("train", rows[:110]), ("dev", rows[110:116]), ("test", rows[116:122])):
            _write_rows(folder / "DATA" / task / f"{split}.jsonl", part)  # type: ignore[arg-type]
    _write_rows(folder / "rst.jsonl", [_with_edus(row) for row in rows[:30]])  # type: ignore[arg-type]
    _write_rows(
        folder / "notes.jsonl",
        [{"document": row["document"], "id": str(n)} for n, row in enumerate(rows[:3])],
    )
    for name in ("report.txt", "mail.txt", "facts.txt"):
        (folder / name).write_text(_REPORT)
    (folder / "report.pdf").write_bytes(pdf([lines_of([line]) for line in _REPORT.split(". ")]))
    (folder / "report.docx").write_bytes(word(lambda document: document.add_paragraph(_REPORT)))
    said = [
        "Ann: We decided to repair the boat.",
        "Bob: I will order the paint by Friday.",
        "Ann: Who pays for it?",
    ]
    cues = (f"00:00:0{2 * n}.000 --> 00:00:0{2 * n + 1}.000\n{line}\n" for n, line in enumerate(said))
    (folder / "meeting.vtt").write_text("WEBVTT\n\n" + "\n".join(cues))
    mail = f"From ann@example.org Mon Jan  5 09:00:00 2026\nSubject: Choir\n\n{_REPORT}\n\n"
    (folder / "mails.mbox").write_text(2 * mail)
    (folder / "letters" / "more").mkdir(parents=True)
    (folder / "letters" / "mail.eml").write_text(f"Subject: Choir\n\n{_REPORT}\n")
    (folder / "letters" / "more" / "book.epub").write_bytes(
        epub({"a.xhtml": f"<h1>Choir</h1><p>{_REPORT}</p>"})
    )
    with (folder / "posts.csv").open("w", newline="", encoding="utf-8") as file:
        posts = csv.DictWriter(file, ["body", "title"])
        posts.writeheader()
        posts.writerows({"body": row["document"], "title": row["summary"]} for row in rows[:60])
    for name in ("theirs.txt", "ours.txt"):
        (folder / name).write_text("Ann sings in the hall.\n" * 100)
    for split, copies in (("train", 110), ("dev", 6)):
        rated = [
            {"sentence": f"scene {n} is {'fine' if n % 2 else 'dull'}", "label": n % 2} for n in range(copies)
        ]
        _write_rows(folder / "DATA" / "glue" / f"SST-2.{split}.jsonl", rated)
        alike = [{"text_a": "Ann sings.", "text_b": f"Bob {n} sings.", "label": n % 6} for n in range(copies)]
        _write_rows(folder / "DATA" / "glue" / f"STS-B.{split}.jsonl", alike)
    for name in ("ours.jsonl", "theirs.jsonl"):
        judged = [
            {**row, "id": str(n), "summary": f"By {name}: {row['summary']}"} for n, row in enumerate(rows[:6])
        ]
        _write_rows(folder / name, judged)  # type: ignore[arg-type]
    _make_texts(folder)
    _make_questions(folder)
    (folder / "scores.csv").write_text(
        "line,x,rougeL,rougeL_low,rougeL_high\nprefix,1,20,19,21\nprefix,2,22,21,23\n"
    )
    systems = {
        "lead": "Ann sings in the hall on Monday.",
        "other": "Carl sings in 1904.",
        "short": "Ann sings.",
    }
    scored = [
        {
            "id": str(n),
            "system": system,
            "output": text,
            "document": _REPORT,
            "reference": "Ann sings.",
            "score": n,
        }
        for n in range(3)
        for system, text in systems.items()
    ]
    _write_rows(folder / "scored.jsonl", scored)
    captions = [
        {"de": f"Ein Mann {n} singt im Saal.", "en": f"A man {n} sings in the hall."} for n in range(130)
    ]
    _write_rows(folder / "captions.jsonl", captions)  # type: ignore[arg-type]
    for split, part in (("train", captions[:110]), ("dev", captions[110:116])):
        _write_rows(folder / "DATA" / "multi30k" / f"{split}.jsonl", part)  # type: ignore[arg-type]
        _write_rows(folder / "DATA" / "klexikon_de" / f"{split}.jsonl", rows[: len(part)])  # type: ignore[arg-type]
    save_classifier(folder / "models" / "checker")
    for kind, names in {
        "bart": (
            "facebook/bart-large",
            "facebook/bart-base",
            "facebook/bart-large-cnn",
            "copy/of/bart-large",
        ),
        "t5": ("google-t5/t5-small", "google/mt5-base"),
        "zcodepp": ("models/deberta",),
    }.items():
        for name in names:
            save(kind, folder / name)
    save_llama(folder / "writers" / "llama")
    _make_released(folder)


def _with_edus(row: dict[str, object]) -> dict[str, object]:
    words = str(row["document"]).split()
    return {
        "document": row["document"],
        "summary": row["summary"],
        "edus": [" ".join(words[:5]), " ".join(words[5:])],
    }


def _write_rows(file: Path, rows: list[dict[str, object]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _make_texts(folder: Path) -> None:
    documents = [pair.document for pair in make_pairs(1200, seed=4)]
    for number, name in enumerate(TEXTS):
        place = folder / name
        place.mkdir()
        for n, text in enumerate(documents[400 * number : 400 * number + 400]):
            (place / f"{n}.txt").write_text(text)
    for name in ("gutenberg", "scotus_oral", "wikitext2", "wikinews"):
        _write_rows(
            folder / "DATA" / f"pretrain_{name}" / "part.jsonl", [{"text": text} for text in documents]
        )
    with lzma.open(folder / "news.jsonl.xz", "wt") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in documents[:30])


def _make_questions(folder: Path) -> None:
    def paragraph(title: str) -> dict[str, object]:
        asked = [
            {"question": "When did the mill burn down?", "answers": ["1904"]},
            {"question": "When was the mill built?", "answers": ["1871"]},
        ]
        return {"id": title, "title": title, "document": f"{title}: {_PASSAGE}", "qas": asked}

    titles = {"train": ["Mills", "Fires"], "test": ["Arlen"]}
    for place in (folder / "squad_v1.1", folder / "DATA" / "squad_v1.1"):
        _write_rows(place / "train.jsonl", [paragraph(title) for title in ("Mills", "Fires", "Arlen")])
        _write_rows(place / "dev.jsonl", [paragraph("Ann")])
        (place / "du_split_titles.json").write_text(json.dumps(titles))


def _make_released(folder: Path) -> None:
    """A checkpoint in fairseq's layout beside the tokenizer that it was trained with."""
    texts = [pair.document for pair in make_pairs(3, seed=1)]
    bert_like(texts, entries=400).save_pretrained(folder / "bert-base-uncased")
    save_released(folder / "cnndm.pt")
