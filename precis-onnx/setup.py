"""Copies the modules of precis that need only Python and numpy into the wheel, so that each has one source."""

import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCE = Path(__file__).resolve().parent.parent / "src" / "precis"
SHARED = (
    "errors",
    "config",
    "decoding",
    "data.text.leaning",
    "data.text.marks",
    "data.text.sentences",
    "data.text.words",
    "data.text.units",
    "data.text.unit_facts",
    "data.text.wholeness",
    "generation.length",
    "generation.choosing",
)
_IMPORT = re.compile(r"^(from|import) precis\.", re.MULTILINE)


def copy_shared(package: Path) -> None:
    """Write the shared modules to `package/shared`, with imports adjusted."""
    for name in SHARED:
        file = SOURCE.joinpath(*name.split(".")).with_suffix(".py")
        text = _IMPORT.sub(r"\1 precis_onnx.shared.", file.read_text(encoding="utf-8"))
        target = package.joinpath("shared", *name.split(".")).with_suffix(".py")
        target.parent.mkdir(parents=True, exist_ok=True)
        for folder in (target.parent, *target.parent.parents):
            if folder == package:
                break
            (folder / "__init__.py").touch()
        target.write_text(text, encoding="utf-8")


class WithShared(build_py):
    """A build step that adds the copies; an editable install puts them in the source folder."""

    def run(self) -> None:
        super().run()
        place = Path(__file__).parent if self.editable_mode else Path(self.build_lib)
        copy_shared(place / "precis_onnx")


if __name__ == "__main__":
    setup(cmdclass={"build_py": WithShared})
