"""Find what a text names and the repository does not have: commands, options, targets, links, files and symbols."""

import re
import shlex
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

from precis.cli.application import parser
from tests.docs.pages import ROOT, Text, tracked

_SOURCES = [ROOT, ROOT / "experiments" / "src", *sorted((ROOT / "packages").glob("*/src"))]
_PROGRAM = re.compile(
    r"(?:^|(?<=[\s=(]))(python3? -m [\w.]+|python3? [\w./-]+\.py|precis-onnx|precis|make|pytest)(?=\s|$)"
)
_BEFORE = re.compile(r"(?:[A-Z_]+=\S+ |[A-Z]: |.*(?:&&|;|\||\brun|\bor:) )*")
_AFTER = re.compile(r" +#.*| && .*|; .*| \\?\| (?!--).*| > .*")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_OPTION_TEXT = re.compile(r"(?:-\w/)?--[a-z][a-z0-9-]*(?:/--[a-z][a-z0-9-]*)?")
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
_SYMBOL = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\(.*\))?")
_OF_A_READER = re.compile(r"[\w.-]+\.(?:pdf|docx|vtt|ttml|html)")
_PATH = re.compile(r"(?:\.\./)*[\w-][\w.-]*(?:/[\w.-]+)*/?(?:::\w+)*")
_IN_PROSE = re.compile(
    r"(?<![\w/.-])(?:docs|tests|benchmarks|faults|experiments|tools|packages|packaging|examples)/[\w./-]*\w"
)
_INSIDE = re.compile(r"`(\w+)(?:\(\))?`\s+(?:in|of)\s+`([\w/]+\.(?:py|h|cpp))`")
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_]+")
_LIBRARIES = ("precis.", "precis_text")  # scripts share options with neither
_WRITTEN = (".md", ".h", ".cpp", ".ipynb", ".json", ".jsonl", ".toml", ".txt")


def missing_commands(text: Text) -> Iterator[str]:
    """Yield modules, scripts, commands, `make` targets and variables, and options that do not exist."""
    for line in text.lines:
        yield from _missing_in_command(line, shown=text.file.suffix == ".md")
    for span in text.spans:
        yield from _missing_in_command(span, shown=True)
        if not _OPTION.search(span):
            continue
        first = span.split()[0]
        if file := _run(f"faults.{first}") or _run(f"benchmarks.{first}"):
            yield from (f"{first} {one}" for one in _OPTION.findall(span) if one not in _options(file))
        elif first in parser().commands:
            yield from _missing_in_precis(span)


def _missing_in_command(line: str, *, shown: bool) -> Iterator[str]:
    """The same for a line. In a docstring, a line may begin with `precis` as a word of a sentence (`shown`)."""
    for found in _PROGRAM.finditer(line):
        program, words = found[1], _AFTER.sub("", line[found.end() :]).strip()
        first = _BEFORE.fullmatch(line[: found.start()]) is not None
        if program.endswith((" precis", " pytest")):
            program = program.split()[-1]
        if program == "precis":
            yield from _missing_in_precis(words, unknown=first and shown)
        elif program == "make":
            yield from _missing_in_make(words.split()) if first else ()
        elif program == "pytest":
            yield from _missing_in_pytest(words.split())
        else:
            name = "precis_onnx" if program == "precis-onnx" else program.split()[-1]
            file = _script(name) if name.endswith(".py") else _run(name)
            if file:
                yield from (f"{program} {one}" for one in _OPTION.findall(words) if one not in _options(file))
            elif not _PLACEHOLDER.search(name) and (_is_ours(name) or not _is_installed(name)):
                yield program


def _missing_in_precis(line: str, *, unknown: bool = True) -> Iterator[str]:
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    command: Any = parser()
    used = ["precis"]
    while hasattr(command, "commands") and words and re.fullmatch(r"[a-z][a-z-]*[,.:;]?", words[0]):
        name = words.pop(0).rstrip(",.:;")
        if name not in command.commands:
            if unknown or len(used) > 1:
                yield " ".join((*used, name))
            return
        command = command.commands[name]
        used.append(name)
    options = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts)}
    arguments = [one for one in command.params if not one.opts[0].startswith("-")]
    if words and arguments and not _is_choice(arguments[0], words[0]):
        yield " ".join((*used, words[0]))
    for word, value in zip(words, [*words[1:], ""], strict=False):
        for option in _OPTION.findall(word.partition("=")[0]):
            if option not in options and option != "--help":
                yield " ".join((*used, option))
            elif option in options and not _is_choice(options[option], value):
                yield " ".join((*used, option, value))
        if word == "--recipe" and re.fullmatch(r"[a-z][a-z0-9-]*", value) and value not in _recipes():
            yield " ".join((*used, word, value))
        if word == "--set" and (key := value.partition("=")[0]) and not set(key.split(".")) <= _words():
            yield " ".join((*used, word, value))


def _is_choice(parameter: Any, value: str) -> bool:
    """Whether a parameter takes this value; a word in capitals stands for any."""
    kind = parameter.type_descriptor.annotation
    if (
        not isinstance(kind, type)
        or not issubclass(kind, Enum)
        or not re.fullmatch(r"[a-z][a-z0-9-]*", value)
    ):
        return True
    return value in {choice.value for choice in kind}


@cache
def _recipes() -> frozenset[str]:
    from precis.cli.framework.options import RECIPE_NAMES

    return frozenset(RECIPE_NAMES)


def _missing_in_make(words: list[str]) -> Iterator[str]:
    makefile = (ROOT / "Makefile").read_text()
    for word in words:
        if variable := re.fullmatch(r"([A-Z_]+)=.*", word):
            if not re.search(rf"\$\((?:if \$\()?{variable[1]}\b", makefile):
                yield f"make {word}"
        elif not re.fullmatch(r"[a-z][a-z-]*", word):
            return
        elif not re.search(rf"^{word}:", makefile, re.MULTILINE):
            yield f"make {word}"


def _missing_in_pytest(words: list[str]) -> Iterator[str]:
    files = [word for word in words if "/" in word and not re.search(r"[\[=*]", word)]
    for file in files:
        yield from (f"pytest {one}" for one in _missing_place(ROOT / "README.md", file))
    if "-k" in words and len(files) == 1:
        sought = words[words.index("-k") + 1 :][:1]
        modules = [ROOT / name for name in tracked() if name.startswith(files[0]) and name.endswith(".py")]
        if not any(word in name for word in sought for module in modules for name in _names(module)):
            yield f"pytest -k {' '.join(sought)}"


def missing_links(text: Text) -> Iterator[str]:
    """Yield relative links and anchors that lead nowhere."""
    for target in _LINK.findall(text.prose):
        place, _, anchor = target.partition("#")
        file = (text.file.parent / place).resolve() if place else text.file
        file = file / "README.md" if anchor and file.is_dir() else file
        if ":" not in target and (not file.exists() or (anchor and anchor not in _anchors(file))):
            yield target


@cache
def _anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    for heading in _HEADING.findall(
        re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    ):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found[anchor] = found.get(anchor, 0) + 1
    return frozenset(
        f"{anchor}-{number}" if number else anchor
        for anchor, count in found.items()
        for number in range(count)
    )


def missing_names(text: Text) -> Iterator[str]:
    """Yield files, modules, classes, functions, tests and lone options that do not exist."""
    for span in text.spans:
        if _OPTION.fullmatch(span):
            yield from () if span in _all_options() else (span,)
        elif _PATH.fullmatch(span) and ("/" in span or span.endswith(".py")):
            yield from _missing_place(text.file, span)
        elif _PATH.fullmatch(span) and span.endswith(_WRITTEN):
            yield from () if span in _file_names() or _PLACEHOLDER.match(span) else (span,)
        elif (found := _SYMBOL.fullmatch(span)) and not _OF_A_READER.fullmatch(span):
            yield from _missing_symbol(found[1])
    for place in _IN_PROSE.findall(text.prose):
        if not (text.file.parent / place).exists() and not any(name.startswith(place) for name in tracked()):
            yield place
    for name, place in _INSIDE.findall(text.body):
        files = [ROOT / one for one in tracked() if f"/{one}".endswith(f"/{place}")]
        if not any(name in _names(file) for file in files):
            yield f"{name} in {place}"


def _missing_place(page: Path, span: str) -> Iterator[str]:
    path, *members = span.rstrip("/").split("::")
    if path in _places() or (page.parent / path).exists():
        files = [ROOT / name for name in tracked() if f"/{name}".endswith(f"/{path}")]
        if members and not any(set(members) <= _names(file) for file in files):
            yield span
    elif not any(_PLACEHOLDER.match(part) for part in re.split(r"[/.]", path)) and (
        path.endswith((".py", ".h", ".cpp", ".md", ".ipynb")) or path.split("/")[0] in _folders()
    ):
        yield span


def _missing_symbol(dotted: str) -> Iterator[str]:
    parts = dotted.split(".")
    for split in range(len(parts), 0, -1):
        files = _modules(parts[:split])
        if files and (split > 1 or _is_ours(dotted)):
            if not any(set(parts[split:]) <= _names(file) for file in files):
                yield dotted
            return
    known = _is_package if _is_ours(dotted) else _is_in_a_file
    if len(dotted) > 1 and not known(parts):
        yield dotted


def _is_in_a_file(parts: list[str]) -> bool:
    """Whether a file has all these names: a member alone could be another class's."""
    return set(parts) <= _words() and any(set(parts) <= _names(file) for file in _read())


@cache
def _is_ours(name: str) -> bool:
    return _is_package(name.split(".")[:1])


@cache
def _is_installed(name: str) -> bool:
    return find_spec(name.split(".")[0]) is not None


def _is_package(parts: list[str]) -> bool:
    return any(source.joinpath(*parts).is_dir() for source in _SOURCES)


@cache
def _of_tail() -> dict[str, list[Path]]:
    """Each module under every tail of its dotted name."""
    found: dict[str, list[Path]] = {}
    for name in tracked():
        if name.endswith((".py", ".pyi")):
            parts = re.sub(r"(?:/__init__)?\.pyi?$", "", name).split("/")
            for start in range(len(parts)):
                found.setdefault(".".join(parts[start:]), []).append(ROOT / name)
    return found


def _modules(parts: list[str]) -> list[Path]:
    return _of_tail().get(".".join(parts), [])


def _run(name: str) -> Path | None:
    """The file that `python -m NAME` runs."""
    places = [source.joinpath(*name.split(".")) for source in _SOURCES]
    files = [
        file for place in places for file in (place.with_name(f"{place.name}.py"), place / "__main__.py")
    ]
    return next((file for file in files if file.exists()), None)


def _script(name: str) -> Path | None:
    return ROOT / name if (ROOT / name).exists() else None


@cache
def _code(file: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The names in a module's code, and its texts, without docstrings."""
    names: set[str] = {file.stem}
    texts: set[str] = set()
    todo: list[Any] = [compile(file.read_text(), file, "exec", optimize=2, dont_inherit=True)]
    while todo:
        one = todo.pop()
        if isinstance(one, CodeType):
            names |= {one.co_name, *one.co_names, *one.co_varnames, *one.co_freevars, *one.co_cellvars}
            todo += one.co_consts
        elif isinstance(one, tuple | frozenset):
            todo += one
        elif isinstance(one, str):
            texts.add(one)
    return frozenset(names), frozenset(texts)


@cache
def _names(file: Path) -> frozenset[str]:
    """Every word of a module's code and texts, or of another file."""
    if file.suffix not in (".py", ".pyi"):
        return frozenset(re.findall(r"\w+", file.read_text()))
    names, texts = _code(file)
    return frozenset(word for text in (*names, *texts) for word in re.findall(r"\w+", text))


@cache
def _read() -> list[Path]:
    """The files whose words count as code: all but pages, and tests of pages."""
    kinds = (
        ".py",
        ".pyi",
        ".toml",
        ".cpp",
        ".h",
        ".js",
        ".html",
        ".css",
        ".yml",
        ".yaml",
        ".service",
        ".ipynb",
    )
    files = [ROOT / name for name in tracked() if name.endswith(kinds) and not name.startswith("tests/docs/")]
    return [ROOT / "Makefile", ROOT / "packaging" / "Dockerfile", *files]


@cache
def _words() -> frozenset[str]:
    return frozenset().union(*map(_names, _read()))


@cache
def _file_names() -> frozenset[str]:
    """The names of files, those that are there and those that the code writes or reads."""
    written = (text for file in _read() if file.suffix == ".py" for text in _code(file)[1])
    found = {name for text in written for name in re.findall(r"[\w.-]*\w\.\w+", text)}
    return frozenset(found | {name.rpartition("/")[2] for name in tracked()})


@cache
def _places() -> frozenset[str]:
    """Every part of every path: a page may leave out the folders before it."""
    paths = {name.rsplit("/", up)[0] for name in tracked() for up in range(name.count("/") + 1)}
    return frozenset(
        "/".join(path.split("/")[start:]) for path in paths for start in range(path.count("/") + 1)
    )


@cache
def _folders() -> frozenset[str]:
    """The folders with which a path of ours may begin."""
    roots = [ROOT, *(place for source in _SOURCES[1:] for place in (source, *source.iterdir()))]
    known = {name.rsplit("/", up)[0] for name in tracked() for up in range(1, name.count("/") + 1)}
    return frozenset(
        one.name
        for root in roots
        if root.is_dir()
        for one in root.iterdir()
        if one.relative_to(ROOT).as_posix() in known
    )


@cache
def _options(file: Path) -> frozenset[str]:
    """The options in the text of a module, and of the modules beside it that it imports."""
    found, seen, todo = {"--help"}, set(), [file]
    while todo:
        one = todo.pop()
        if one in seen:
            continue
        seen.add(one)
        source = one.read_text()
        names, texts = _code(one)
        found |= _in_texts(texts)
        if re.search(r'f"--\{\w+\}"', source):
            found |= {f"--{text}" for text in texts}
        if "BooleanOptionalAction" in names:
            found |= {f"--no-{option[2:]}" for option in found}
        for name in names:
            beside = one.parent / f"{name}.py"
            todo += [beside] if beside.exists() else []
            todo += _modules(name.split(".")) if _is_ours(name) and not name.startswith(_LIBRARIES) else []
    return frozenset(found)


def _in_texts(texts: frozenset[str]) -> set[str]:
    """The options in a module's texts; an annotation can be a text too, with options in quotes."""
    quoted = {
        one for text in texts if text.startswith("Annotated[") for one in re.findall(r"'([^']*)'", text)
    }
    return {one for text in texts | quoted if _OPTION_TEXT.fullmatch(text) for one in _OPTION.findall(text)}


@cache
def _all_options() -> frozenset[str]:
    """The options of every command of precis, and of every module."""
    found: set[str] = set()
    todo: list[Any] = [parser()]
    while todo:
        command = todo.pop()
        todo += getattr(command, "commands", {}).values()
        found |= {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    return frozenset(found).union(*(_in_texts(_code(file)[1]) for file in _read() if file.suffix == ".py"))
