"""Plain English by rule: `python -m tests.english [PATH ...]` lists what a native engineer would not write.

    where                                        | what
    ---------------------------------------------|----------------------------------------------------------
    docstrings of functions                      | open with an imperative verb (ruff's D401 knows fewer words)
    docstrings of modules, classes, properties   | say what the thing is, not "What ...", "Where ...", "Whether ..."
    docstrings, messages, help, Markdown         | use none of the phrases in PHRASES

Code in backticks, code blocks, options and names of attributes are not prose. Without PATH it reads everything that
`make check` guards.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
GUARDED = (
    *("packages", "experiments/src", "benchmarks", "faults", "tools", "examples"),
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "PAPERS.md", "SECURITY.md"),
    *("docs/guide", "docs/benchmarks/README.md", "docs/experiments/README.md"),
)

# Phrase -> what to write instead
PHRASES = {
    r"\b(is|are|was|were|be|been) (no|none of)\b(?! (longer|more|less|fewer|worse|better|larger|smaller))": (
        "say 'is not', 'is not a'"
    ),
    r"\b(has|have|had) no\b": "say 'does not have', 'lacks', 'contains no'",
    r"(?:^ *(?-i:O)f|[.;:!?] of) (?!course)": "put the subject first",
    r"(?:^ *|[.!?] )(?-i:F)or each\b": "put the subject first",
    r"\b(is|are|was|were|be|been) (said|told|asked for)\b": "name who does it: 'reports', 'logs', 'the caller passes'",
    r"\b(told|tells)\b(?!:)": "say who reports, logs, states or notifies",
    r"\btell (it|them|her|him|how|what|when|which|whether|the)\b": "say 'report', 'log', 'state', 'notify'",
    r"\bfacts (that (determine|a reader)|(of|about) (a|the|each) (unit|sentence|token|run))": (
        "say 'features', 'values', 'settings'"
    ),
    r"\bif (no|a|an|the) [\w ]{1,40} is (wanted|meant|asked)\b": "name the user, the caller or the option",
    r"\b(what|which|that) (they|it) (is|are|was|were) (asked|told|given)\b": "name who does it",
    r"\b(what|as|which|that) (is|was|are|were) (asked|wanted|wished)\b": "name the option or the caller",
    r"\bstands?\b(?! (for|in for|out|by)\b)": "say 'is', 'appears'",
    r"\b(lies?|lay)\b": "say 'is'",
    r"\b(go|goes|going|went) on\b": "say 'continue', 'resume'",
    r"\b(take|takes|taken|took|taking) up\b": "say 'resume'",
    r"\b(begin|begins|began|beginning) with\b": "say 'start with'",
    r"\banew\b": "say 'again'",
    r"\bbeside\b": "say 'next to', 'and', 'compared with'",
    r"(?<!\blet )\balone\b": "say 'only'",
    r"\bso (many|much)\b": "name the number",
    r"\bsuch an? ": "say 'this kind of', 'one'",
    r"\b(some|no|every)body\b|\bwhoever\b|\bwhosoever\b": "say 'a person', 'users', 'no user'",
    r"\bone's (own\b|self\b)|\bones own\b": "say 'your'",
}
CLAUSES = ("What", "Where", "Whether", "Who", "Whose", "Whom", "Which", "How", "When", "Why", "Of", "That")
# The imperative verbs that open docstrings; add a new one to the file.
VERBS = frozenset((Path(__file__).parent / "english_verbs.txt").read_text().split())


@dataclass(frozen=True)
class Finding:
    """A place, what is written there, and what to write instead."""

    place: str
    words: str
    advice: str

    def __str__(self) -> str:
        return f"{self.place}: {self.words!r}: {self.advice}"


_CODE = re.compile(
    r"`[^`]*`|https?://\S+|<!--.*?-->|(?<![\w-])--[a-z][a-z-]*|^ {4,}\w+(?:, \w+)*(?=: )",
    re.DOTALL | re.MULTILINE,
)
_COMPILED = [
    (re.compile(pattern, re.MULTILINE | re.IGNORECASE), advice) for pattern, advice in PHRASES.items()
]


def phrases(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the offset, the words and the advice of each refused phrase, code left out."""
    prose = _CODE.sub(lambda found: re.sub(r"[^\n]", "_", found.group()), text)
    for pattern, advice in _COMPILED:
        for found in pattern.finditer(prose):
            yield found.start(), found.group().strip(), advice


def _opening(node: ast.AST, text: str) -> str | None:
    """Return what is wrong with how a docstring opens, or None."""
    word = text.split()[0].rstrip(",.:;") if text.split() else ""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        decorators = {ast.unparse(each).split("(")[0].split(".")[-1] for each in node.decorator_list}
        if not decorators & {"property", "cached_property", "abstractproperty", "fixture"}:
            return None if word in VERBS else "open with an imperative verb"
    return "say what it is, not a clause" if word in CLAUSES else None


def _docstrings(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Constant]]:
    """Yield each node that has a docstring, with the constant that holds it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                yield node, first.value


def _messages(tree: ast.Module, skip: set[int]) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string of at least three words, f-strings with `_` for their values."""
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        if id(node) in skip or id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "_" for part in node.values)  # type: ignore[misc]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if len(text.split()) >= 3:
            yield node.lineno, text


def in_python(file: Path) -> Iterator[Finding]:
    """Yield what is wrong in the docstrings and messages of a Python file."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    name = _name(file)
    skip = set()
    for node, constant in _docstrings(tree):
        skip.add(id(constant))
        text = str(constant.value)
        if wrong := _opening(node, text):
            yield Finding(f"{name}:{constant.lineno}", text.strip().split("\n")[0][:70], wrong)
        for offset, words, advice in phrases(text):
            yield Finding(f"{name}:{constant.lineno + text.count(chr(10), 0, offset)}", words, advice)
    for line, text in _messages(tree, skip):
        for _, words, advice in phrases(text):
            yield Finding(f"{name}:{line}", words, advice)


def in_markdown(file: Path) -> Iterator[Finding]:
    """Yield what is wrong in the prose of a Markdown file."""
    text = re.sub(
        r"^( *)```.*?^\1```|^    .*?$",
        lambda found: re.sub(r"[^\n]", "_", found.group()),
        file.read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )
    for offset, words, advice in phrases(text):
        yield Finding(f"{_name(file)}:{text.count(chr(10), 0, offset) + 1}", words, advice)


def _name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else str(file)


def findings(places: list[Path]) -> Iterator[Finding]:
    """Yield what is wrong in files, and in the Python and Markdown files of folders."""
    for place in places:
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        for file in files:
            if file.suffix == ".py":
                yield from in_python(file)
            elif file.suffix == ".md":
                yield from in_markdown(file)


def main(words: list[str]) -> int:
    """Print the findings; 1 if there are any."""
    found = list(findings([Path(word).resolve() for word in words] or [ROOT / name for name in GUARDED]))
    for each in found:
        print(each)
    print(f"{len(found)} findings of the English check (none)")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
