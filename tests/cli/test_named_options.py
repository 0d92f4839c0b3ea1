"""Every option that a message names exists: in the command that raises it, or else in some command."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from precis.cli.application import parser

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*ROOT.glob("packages/*/src/**/*.py"), *ROOT.glob("experiments/src/**/*.py")])
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_COMMAND = re.compile(r"`?precis ((?:[a-z][a-z-]*[a-z] ?)+)((?:(?!precis )[^`;)\n])*)")
#: Options of other programs that our messages name.
OF_OTHERS = {
    "--head": "ray start", "--merge": "llama-gguf-split", "--decrypt": "qpdf", "--force-ocr": "ocrmypdf",
    "--headless": "soffice", "--convert-to": "soffice", "--list-langs": "tesseract",
    "--quiet": "pip", "--no-deps": "pip", "--dest": "pip",
}  # fmt: skip


#: Options of other commands that a command names: it says what to do next, or with its result.
OF_NEXT = {
    "model_commands.py": {"--model"},
    "data_command.py": {"--task", "--data", "--instruction", "--skip-bad"},
}


#: Modules below packages/precis/src/precis -> the commands that raise their messages, and options of some of them only.
OF_MODULES = {
    "evaluation/error_view.py": (("errors",), ()),
    "evaluation/scoring.py": (("evaluate",), ()),
    "phases/data/corpus_packing.py": (("data pack",), ()),
    "phases/measure/evaluation_inputs.py": (("evaluate",), ()),
    "phases/measure/human_scores.py": (("probe metrics",), ()),
    "phases/measure/model_comparison.py": (("compare",), ()),
    "phases/measure/model_scores.py": (("evaluate",), ()),
    "phases/measure/probe_curves.py": (("probe curves",), ()),
    "phases/measure/support_models.py": (("evaluate",), ()),
    "phases/plans/finetuning_plan.py": (("finetune",), ()),
    "phases/plans/learning_curve.py": (("finetune",), ()),
    "phases/plans/mixture_plan.py": (("ground",), ()),
    "phases/plans/pretraining_plan.py": (("pretrain",), ()),
    "phases/plans/tuning_plan.py": (("tune",), ()),
    "phases/search/grid_search.py": (("finetune", "tune"), ()),
    "phases/search/prefix_search.py": (("tune",), ()),
    "phases/search/search_space.py": (("finetune", "tune"), ()),
    "phases/train/extractor_training.py": (("extractor",), ()),
    "phases/train/grounding.py": (("ground",), ()),
    "phases/train/pair_training.py": (
        ("finetune", "tune", "ground"),
        ("--dev", "--recipe", "--sampling-seed"),
    ),
    "phases/train/prefix_tuning.py": (("tune",), ()),
    "phases/train/seed_runs.py": (("finetune", "tune", "ground"), ()),
    "phases/use/model_conversion.py": (("convert",), ()),
    "phases/use/model_push.py": (("push",), ("--model",)),
    "phases/use/summaries_file.py": (("summarize",), ()),
}


@cache
def options() -> dict[str, frozenset[str]]:
    """The options of every command, by the name of the command; those of groups too."""
    found: dict[str, frozenset[str]] = {}

    def walk(command: Any, name: str) -> None:
        own = {each for one in command.params for each in (*one.opts, *one.secondary_opts)}
        found[name] = frozenset(own | {"--help"})
        for sub, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{name} {sub}".strip())

    walk(parser(), "")
    return found


def known() -> frozenset[str]:
    onnx = (ROOT / "packages" / "precis-onnx" / "src" / "precis_onnx" / "cli.py").read_text()
    return frozenset().union(*options().values(), _OPTION.findall(onnx), OF_OTHERS)


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """Literal texts of a module, with {} for their expressions, without docstrings."""
    tree = ast.parse(file.read_text())
    nodes = [*ast.walk(tree)]
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and id(node) not in inside | alone:
            yield node.lineno, node.value if isinstance(node.value, str) else ""


def faults(text: str, of: frozenset[str] | None = None) -> Iterator[str]:
    """Options that do not exist: after the name of a command in it, elsewhere in `of` or else in any."""
    rest = text = f"precis {text}" if text.split(" ")[0] in options() else text
    if "var(--" in text:  # a style sheet
        return
    for found in _COMMAND.finditer(text):
        words = found[1].split()
        name = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in options()), None)
        if name is not None:
            yield from (f"{name} {one}" for one in _OPTION.findall(found[2]) if one not in options()[name])
            rest = rest.replace(found[0], " ")
    yield from (one for one in _OPTION.findall(rest) if one not in ((of or known()) | OF_OTHERS.keys()))


@pytest.mark.long
def test_every_option_in_a_message_exists_in_some_command() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {fault}"
        for file in SOURCES
        for line, text in texts(file)
        for fault in faults(text)
    ]
    assert found == []


def commands_of(file: Path) -> list[str]:
    """The commands whose functions are in a module."""
    names = re.findall(
        r"@(?:describe_command|\w+\.command|\w+\.callback)\(\s*(?:\"([a-z ]+)\")?", file.read_text()
    )
    return [each for each in options() if {each, each.split(" ")[-1]} & {*names} - {""}]


COMMANDS = [
    file
    for file in SOURCES
    if file.name.endswith(("_command.py", "_commands.py")) and file.parent.name != "framework"
]


@pytest.mark.parametrize("file", COMMANDS, ids=lambda file: file.stem)
def test_a_message_of_a_command_names_its_own_options(file: Path) -> None:
    own = frozenset().union(*(options()[name] for name in commands_of(file)))
    assert len(own) > 1, "no command found in this module"
    own |= OF_NEXT.get(file.name, set())
    found = [f"{file.name}:{line}: {fault}" for line, text in texts(file) for fault in faults(text, own)]
    assert found == []


@pytest.mark.parametrize("module", OF_MODULES)
def test_a_message_of_a_module_names_options_of_every_command_that_raises_it(module: str) -> None:
    commands, others = OF_MODULES[module]
    file = ROOT / "packages" / "precis" / "src" / "precis" / module
    own = frozenset.intersection(*(options()[name] for name in commands)) | {*others}
    assert [f"{line}: {fault}" for line, text in texts(file) for fault in faults(text, own)] == []


_WRONG = "--" + "never"  # in parts: the check of the pages would take it for an option


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("start again with --restart or " + _WRONG, [_WRONG]),
        ("use `precis evaluate --task X --restart`", ["evaluate --restart"]),
        ("make one with `precis data pack --restart`; add --data", []),
    ],
)
def test_a_wrong_option_is_found(text: str, fault: list[str]) -> None:
    assert [*faults(text)] == fault
