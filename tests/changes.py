"""Small changes of a module, one place each: a comparison, a sign, a number, a condition."""

import ast
import copy
import importlib.machinery
import importlib.util
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

_COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """A changed module.

    Attributes:
        number: its place among the changes of the module.
        line: the line of the change in the source.
        was, now: the source of the changed expression.
        function: the innermost function around the change, as Python calls it (`Reader.read`); empty if none is.
        place: 2 for the second of equal changes in one function, and so on.
        defines: what the statement at the top of the module defines, inside which the change is: names, and those of
            a class's own fields.
    """

    module: str
    file: Path
    number: int
    line: int
    was: str
    now: str
    function: str = ""
    defines: frozenset[str] = frozenset()
    place: int = 1

    @property
    def tree(self) -> ast.Module:
        """The changed module, built on demand: a package has thousands of changes."""
        tree = ast.parse(_text(self.file))
        parent, field, index, _, new = next(islice(_changes(tree), self.number, None))
        _put(parent, field, index, new)
        return ast.fix_missing_locations(ast.parse(ast.unparse(tree)))

    @property
    def name(self) -> str:
        """The change in words, without its line, which other changes move."""
        where = f"{self.module}.{self.function}" if self.function else self.module
        return f"{where}: {self.was} -> {self.now}{f', place {self.place}' if self.place > 1 else ''}"


def mutants(module: str) -> list[Mutant]:
    """Return all changes of a module, in the order of its lines."""
    file = source_of(module)
    tree = ast.parse(_text(file))
    functions, defined = functions_around(tree), dict(_defined(tree))
    found: list[Mutant] = []
    equal: Counter[tuple[str, str, str]] = Counter()
    for number, (_, _, _, node, new) in enumerate(_changes(tree)):
        was, now = (ast.unparse(part.test if isinstance(part, ast.If) else part) for part in (node, new))
        function, line = functions[node], getattr(node, "lineno", 0)
        equal[function, was, now] += 1
        place = equal[function, was, now]
        found.append(Mutant(module, file, number, line, was, now, function, defined[node], place))
    return found


@cache
def _text(file: Path) -> str:
    """Return a source as it was at first: an editor may write it while its changes are tried."""
    return file.read_text()


def functions_around(tree: ast.Module) -> dict[ast.AST, str]:
    """Return the name of the innermost function around each node, and of a function's own node; empty for none."""
    return dict(_functions(tree, (), ""))


def _functions(node: ast.AST, inside: tuple[str, ...], function: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        within, around = inside, function
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            around = ".".join((*inside, child.name))
            within = (*inside, child.name, "<locals>")
        elif isinstance(child, ast.ClassDef):
            within = (*inside, child.name)
        yield child, around
        yield from _functions(child, within, around)


def _defined(tree: ast.Module) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Yield each node with the names that the statement around it defines for the functions of this module."""
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            yield from ((node, frozenset({statement.name})) for node in ast.walk(statement))
            for inner in statement.body:
                names = names_stored(inner) | {statement.name}
                yield from ((node, names) for node in ast.walk(inner))
        else:
            names = names_stored(statement)
            yield from ((node, names) for node in ast.walk(statement))


def names_stored(statement: ast.AST) -> frozenset[str]:
    """Return what a statement defines: its variables, or a function or class."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return frozenset({statement.name})
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return frozenset(node.id for node in stored if isinstance(node.ctx, ast.Store))


def changed_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the changes of one node, its children left as they are."""
    new: Any = copy.copy(node)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        new.ops = [_COMPARED[type(node.ops[0])](), *node.ops[1:]]
        yield new
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED and not _is_text(node):
        new.op = _COMPUTED[type(node.op)]()
        yield new
    elif isinstance(node, ast.BoolOp):
        new.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield new
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int):
        new.value = not node.value if isinstance(node.value, bool) else node.value + 1
        yield new
    elif isinstance(node, ast.Name) and node.id in _NAMES and isinstance(node.ctx, ast.Load):
        new.id = _NAMES[node.id]
        yield new
    elif isinstance(node, ast.If | ast.IfExp):
        new.test = ast.UnaryOp(ast.Not(), node.test)
        yield new


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str))
        for s in sides
    )


def source_of(module: str) -> Path:
    """Return the file of a module. `find_spec` of a name with dots would import its package, and so the module."""
    top, *inner = module.split(".")
    spec = importlib.util.find_spec(top)
    for part in inner:
        assert spec is not None, f"{module}: no such module"
        spec = importlib.machinery.PathFinder.find_spec(part, spec.submodule_search_locations)
    assert spec is not None, f"{module}: no such module"
    assert spec.origin is not None, f"{module}: lacks a source"
    return Path(spec.origin)


def _changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, int | None, ast.AST, ast.AST]]:
    """Yield each change: the parent, the field and the index of a node, the node, and its replacement."""
    for parent, field, index, node in _places(tree):
        for new in changed_nodes(node):
            yield parent, field, index, node, new


def _places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Yield the nodes that may change, each with its parent: no annotations, texts of errors, or decorators.

    No assertions either, of which `zip(..., strict=True)` is one, and no imports for types only.
    """
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params") or isinstance(
            value, ast.JoinedStr
        ):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if isinstance(child, ast.AST) and not _is_assertion_or_text(child):
                yield node, field, index, child
                yield from _places(child)


def _is_assertion_or_text(node: ast.AST) -> bool:
    is_strict = isinstance(node, ast.keyword) and node.arg == "strict"
    is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    return is_strict or is_for_types or isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr)


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def modules_of(names: Sequence[str]) -> list[str]:
    """Return the modules that these names mean: modules, or packages with all in them."""
    found = []
    for name in names:
        file = source_of(name)
        if file.name != "__init__.py":
            found.append(name)
            continue
        inner = sorted(
            f for f in file.parent.rglob("*.py") if f.read_text().strip() and f.name != "__init__.py"
        )
        found += [".".join((name, *f.relative_to(file.parent).with_suffix("").parts)) for f in inner]
    return found
