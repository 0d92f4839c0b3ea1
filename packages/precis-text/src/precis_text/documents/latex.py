"""LaTeX (.tex), by pylatexenc: headings, paragraphs, tables and formulas without commands.

Left out and named: the settings before the text, comments, code, references; included files are named.
"""

from __future__ import annotations

import re
from typing import Any

from pylatexenc.latex2text import (
    EnvironmentTextSpec,
    LatexNodes2Text,
    MacroTextSpec,
    SpecialsTextSpec,
    get_default_latex_context_db,
)
from pylatexenc.latexwalker import get_default_latex_context_db as get_parser_db
from pylatexenc.macrospec import EnvironmentSpec, MacroSpec

from precis_text.documents.character_sets import decode
from precis_text.documents.latex_macros import expanded, group_from, macros_of
from precis_text.documents.passages import Passages, Writer
from precis_text.documents.superscripts import raised_text

_BODY = re.compile(r"\\begin\s*\{document\}(.*?)(?:\\end\s*\{document\}|\Z)", re.DOTALL)
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*")
_COMMENT_LINE = re.compile(r"^[ \t]*%[^\n]*\n", re.MULTILINE)
_TITLES = re.compile(r"\\(?:title|subtitle|author|date)\s*(?:\[[^\[\]]*\])?\s*\{")
_REFERENCES = re.compile(r"\\begin\s*\{thebibliography\}.*?(?:\\end\s*\{thebibliography\}|\Z)", re.DOTALL)
_INCLUDED = re.compile(r"\\(?:input|include|subfile)\s*\{([^{}]{1,200})\}")
_ENCODING = re.compile(rb"\\usepackage\s*\[([\w-]{1,20})\]\s*\{inputenc\}")
_NAMES = {
    "latin1": "iso-8859-1", "latin9": "iso-8859-15", "ansinew": "windows-1252", "utf8x": "utf-8",
    "applemac": "macintosh",
}  # fmt: skip
_HEADINGS = (
    "title", "part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph",
)  # fmt: skip
_HEADING = "\ue001"
_LABELS = (
    "label", "cite", "citep", "citet", "citealp", "autocite", "parencite", "textcite", "nocite", "ref", "eqref",
    "pageref", "cref", "Cref", "autoref", "vref", "bibliography", "bibliographystyle", "includegraphics", "vspace",
    "hspace", "input", "include", "subfile", "addcontentsline", "pagestyle", "thispagestyle", "setcounter", "setlength",
    "markboth", "date", "newcommand", "renewcommand", "providecommand", "DeclareMathOperator", "color", "hypersetup",
    "addbibresource",
)  # fmt: skip
_TABLES = {
    "tabular": "[{", "tabular*": "{[{", "tabularx": "{[{", "longtable": "[{", "tabulary": "{{", "supertabular": "{",
}  # fmt: skip
_LINES = ("maketitle", "tableofcontents", "toprule", "midrule", "bottomrule", "hline")
_BLOCKS = ("table", "figure", "abstract", "quote", "itemize", "enumerate", "description")
_TEXTS = ("href", "hypertarget", "texorpdfstring", "texttt", "lstinline")
_DEFINED = re.compile(r"\\def\s*\\[a-zA-Z]+[^{}\n]*\{")
_VERB = re.compile(r"\\verb\*?([^\sA-Za-z*])([^\n]*?)\1")
_UP = "\ue002"
_RAISED = re.compile(rf"(?<!\w)(\w*)\s?{_UP}([^{_UP}]*){_UP}")
_SPACE_BEFORE = re.compile(r"[ \t]+([.,;:!?)])(?!\w)")  # not in "a .pt file"
_LISTING = re.compile(
    r"\\begin\s*\{(verbatim\*?|Verbatim|lstlisting|minted)\}(.*?)(?:\\end\s*\{\1\}|\Z)", re.DOTALL
)


def read(content: bytes) -> Passages:
    """Read a LaTeX document, or a part of one without a preamble."""
    writer = Writer()
    declared = _ENCODING.search(content[:20_000])
    name = declared.group(1).decode("ascii") if declared else ""
    text = (
        decode(content, _NAMES.get(name, name if name != "utf8" else "utf-8"), writer)
        .replace("\r\n", "\n")
        .replace("\r", "\n")
    )
    text = _without_comments(text, writer)
    if included := _INCLUDED.findall(text):
        writer.notes.append(
            f"included files not read: {', '.join(included[:3])}{' and more' if included[3:] else ''}"
        )
    macros, definitions = macros_of(text)
    body = _BODY.search(text)
    if body is not None:
        before = text[: body.start()]
        titles = [group_from(before, found.start(), found.end()) for found in _TITLES.finditer(before)]
        for title in titles:
            before = before.replace(title, "")
        writer.leave_out("settings before the text", before)
        writer.leave_out("text behind the end of the document", text[body.end() :])
        text = "\n\n".join([*titles, body.group(1)])
    for found in _REFERENCES.finditer(text):
        writer.leave_out("list of references", found.group())
    text = _without_listings(_REFERENCES.sub("", text), writer)
    for definition in definitions if body is None else filter(text.__contains__, definitions):
        writer.leave_out("settings before the text", definition)
        text = text.replace(definition, "", 1)
    text = _without_definitions(_VERB.sub(_literal, expanded(text, macros)), writer)
    shown = _converter().latex_to_text(text)
    shown = _RAISED.sub(lambda found: found[1] + (raised_text(found[2], found[1]) or ""), shown)
    _write(shown, writer)
    return writer.finished()


def _without_comments(text: str, writer: Writer) -> str:
    for found in _COMMENT.finditer(text):
        writer.leave_out("comments", found.group()[len(found.group(1)) + 1 :].strip("% "))
    return _COMMENT.sub(r"\1", _COMMENT_LINE.sub("", text))


def _without_listings(text: str, writer: Writer) -> str:
    for found in _LISTING.finditer(text):
        writer.leave_out("code", found.group(2))
    return _LISTING.sub("\n\n", text)


def _literal(found: re.Match[str]) -> str:
    """Return the words of \\verb without the signs that LaTeX would read."""
    return re.sub(r"([#$%&_{}])", r"\\\1", found[2].replace("\\", r"\textbackslash "))


def _without_definitions(text: str, writer: Writer) -> str:
    """Leave out the commands that the text defines with \\def."""
    while (found := _DEFINED.search(text)) is not None:
        whole = group_from(text, found.start(), found.end())
        writer.leave_out("settings before the text", whole)
        text = text.replace(whole, "", 1)
    return text


def _converter() -> LatexNodes2Text:
    parser, texts = get_parser_db(), get_default_latex_context_db()
    arguments = {
        **dict.fromkeys((*_HEADINGS, *_LABELS, "author", "caption", "thanks", "footnote"), "*[[{"),
        **dict.fromkeys(("setcounter", "setlength", "markboth", "color"), "{{"),
        **dict.fromkeys(("newcommand", "renewcommand", "providecommand"), "*{[[{"),
        **dict.fromkeys(("addcontentsline",), "{{{"), **dict.fromkeys(("DeclareMathOperator",), "*{{"),
        **dict.fromkeys(("textsuperscript", "texttt"), "{"), "hypertarget": "{{", "href": "{{",
        "texorpdfstring": "{{", "item": "[",
    }  # fmt: skip
    parser.add_context_category(
        "precis",
        prepend=True,
        macros=[MacroSpec(name, form) for name, form in arguments.items()],
        environments=[EnvironmentSpec(name, form) for name, form in _TABLES.items()],
    )
    texts.add_context_category(
        "precis",
        prepend=True,
        macros=[
            *(MacroTextSpec(name, simplify_repl=_heading) for name in _HEADINGS),
            *(MacroTextSpec(name, simplify_repl="", discard=True) for name in (*_LABELS, *_LINES)),
            MacroTextSpec("author", simplify_repl=lambda node, l2tobj: f"\n\n{_last(node, l2tobj)}\n\n"),
            MacroTextSpec("and", simplify_repl=", "),
            *(MacroTextSpec(name, simplify_repl=_note) for name in ("footnote", "thanks")),
            MacroTextSpec("caption", simplify_repl=lambda node, l2tobj: f"\n\n{_last(node, l2tobj)}\n\n"),
            MacroTextSpec("item", simplify_repl=_item),
            MacroTextSpec(
                "textsuperscript", simplify_repl=lambda node, l2tobj: f"{_UP}{_last(node, l2tobj)}{_UP}"
            ),
            *(MacroTextSpec(name, simplify_repl=_text) for name in _TEXTS),
        ],
        environments=[EnvironmentTextSpec(name, simplify_repl="\n\n%s\n\n") for name in (*_TABLES, *_BLOCKS)],
        specials=[SpecialsTextSpec("&", " | "), SpecialsTextSpec("~", " ")],
    )
    converter = LatexNodes2Text(
        latex_context=texts, math_mode="text", keep_comments=False, strict_latex_spaces=False
    )
    walk = converter.latex_to_text
    converter.latex_to_text = lambda text: walk(text, latex_context=parser)
    return converter


def _last(node: Any, converter: Any) -> str:
    """Return the text of a command's last argument."""
    arguments = node.nodeargd.argnlist if node.nodeargd else []
    return (
        converter.nodelist_to_text([arguments[-1]]).strip() if arguments and arguments[-1] is not None else ""
    )


def _heading(node: Any, l2tobj: Any) -> str:
    return f"\n\n{_HEADING}{' '.join(_last(node, l2tobj).split())}\n\n"


def _item(node: Any, l2tobj: Any) -> str:
    """Write what opens an item: its own label, or a dash."""
    label = _last(node, l2tobj)
    return f"\n{label}: " if label else "\n- "


def _text(node: Any, l2tobj: Any) -> str:
    return _last(node, l2tobj)


def _note(node: Any, l2tobj: Any) -> str:
    return f" [{_last(node, l2tobj)}] "


def _write(text: str, writer: Writer) -> None:
    for block in re.split(r"\n[ \t]*\n", text):
        lines = [" ".join(line.split()) for line in block.split("\n")]
        if block.strip().startswith(_HEADING):
            writer.heading(block.strip().lstrip(_HEADING))
            continue
        shown = "\n".join(line for line in lines if line.strip("| "))
        writer.add(_SPACE_BEFORE.sub(r"\1", shown))
