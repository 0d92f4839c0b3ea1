"""Jupyter notebooks (.ipynb): the text of the Markdown cells; code and its output are left out and named."""

from __future__ import annotations

from typing import Any

from precis_text.bounded_io import JsonError, parse_json
from precis_text.documents.markdown import write_markdown
from precis_text.documents.passages import Passages, Writer
from precis_text.errors import UserError


def read(content: bytes) -> Passages:
    """Read a notebook.

    Raises:
        UserError: it is not a notebook.
    """
    try:
        notebook = parse_json(content.removeprefix(b"\xef\xbb\xbf"), constants=True)
    except JsonError as error:
        raise UserError(f"is damaged: {error}; save or download it again") from None
    cells: Any
    if isinstance(notebook, dict) and isinstance(notebook.get("worksheets"), list):  # of before 2015
        cells = [cell for sheet in notebook["worksheets"] for cell in sheet.get("cells", [])]
    else:
        cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise UserError("is not a notebook: it lacks a list of cells; download it again")
    writer = Writer()
    for cell in (each for each in cells if isinstance(each, dict)):
        kind, text = cell.get("cell_type"), _joined(cell.get("source", cell.get("input", "")))
        if kind == "code":
            writer.leave_out("code", text)
            for output in cell.get("outputs", []):
                writer.leave_out("output of code", _output(output))
        elif kind == "heading":
            writer.heading(text)
        else:
            write_markdown(text, writer)
    return writer.finished()


def _joined(source: Any) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")


def _output(output: dict[str, Any]) -> str:
    """Return what an output shows: plain text before any other text, and the message of an error."""
    data = output.get("data")
    if not isinstance(data, dict):
        return " ".join(_joined(output.get(name, "")) for name in ("text", "html", "ename", "evalue"))
    texts = {kind: value for kind, value in data.items() if kind.startswith("text/")}
    return _joined(texts.get("text/plain") or next(iter(texts.values()), ""))
