"""What an installation consists of: licences, hashes, the bill of materials, and where each package comes from."""

import json
import os
import re
import socket
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tools import supply_chain

ROOT = Path(__file__).parents[1]
PINNED: dict[str, str] = {
    canonicalize_name(name): version
    for name, version in supply_chain.pinned((ROOT / "constraints.txt").read_text())
}


def test_every_licence_of_what_is_installed_is_permissive() -> None:
    found = {each.name: supply_chain.licence_of(each) for each in supply_chain.needed()}
    assert len(found) > 60
    assert {name: licence for name, licence in found.items() if not supply_chain.is_allowed(licence)} == {}


def test_a_licence_that_asks_for_more_is_noticed() -> None:
    for licence in (
        "GPL-3.0-only",
        "GNU Affero General Public License v3",
        "Proprietary",
        "not declared",
        "submit",
    ):
        assert not supply_chain.is_allowed(licence)


def test_the_bill_of_materials_names_every_package_with_its_version() -> None:
    made = supply_chain.sbom()
    named = {each["name"].lower(): each for each in made["components"]}
    assert {"torch", "transformers", "fastapi", "ray", "pypdfium2"} <= named.keys()
    assert not any(name.startswith("precis") for name in named)
    assert named["fastapi"]["purl"] == f"pkg:pypi/fastapi@{PINNED['fastapi']}"
    assert json.loads(json.dumps(made)) == made


def test_hashed_requirements_have_the_pinned_versions_and_a_hash_each() -> None:
    lines = supply_chain.hashed_requirements(tomllib.loads((ROOT / "uv.lock").read_text()))
    named = {}
    for line in lines:
        found = re.fullmatch(r"([\w.-]+)==(\S+)(?: --hash=sha256:[0-9a-f]{64})+", line)
        assert found is not None
        name, version = found.groups()
        named[name] = version
    assert {"torch", "fastapi", "uvicorn", "pypdfium2", "numpy"} <= named.keys()
    assert not {"ray", "pytest", "optuna"} & named.keys()
    assert {name: PINNED[name] for name in named} == named


def test_hashed_requirements_without_torch_lack_cuda_and_keep_what_every_build_needs() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    whole, few = (
        {line.partition("==")[0] for line in supply_chain.hashed_requirements(lock, with_torch=with_torch)}
        for with_torch in (True, False)
    )
    assert few < whole
    assert {"torch", "nvidia-cublas", "cuda-bindings"} <= whole - few
    assert {"transformers", "numpy", "uvicorn", "setuptools", "networkx", "sympy"} <= few
    assert not {name for name in few if name.startswith(("nvidia", "cuda", "triton"))}


def test_hashed_requirements_of_everything_are_all_that_make_install_needs() -> None:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    lines = supply_chain.hashed_requirements(lock, everything=True, with_torch=False)
    named = {line.partition("==")[0] for line in lines}
    assert {"pytest", "ruff", "mypy", "ray", "optuna", "zensical", "onnxruntime", "pypdfium2"} <= named
    needed = {canonicalize_name(each.name) for each in supply_chain.needed()}
    alone = {name for name in needed if name.startswith(("nvidia", "cuda", "triton"))} | {"torch"}
    assert needed - alone - named == set()
    assert not {name for name in named if name.startswith("precis")}


def test_known_vulnerabilities_are_named_by_package() -> None:
    asked = []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = json.dumps({"results": [{}, {"vulns": [{"id": "GHSA-1"}, {"id": "PYSEC-2"}]}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        found = supply_chain.advisories([("numpy", "2.0"), ("starlette", "0.1")], url=url)
        server.shutdown()
    assert found == {"starlette 0.1": ["GHSA-1", "PYSEC-2"]}
    assert asked[0]["queries"][1] == {"package": {"name": "starlette", "ecosystem": "PyPI"}, "version": "0.1"}


def test_advisories_without_a_network_exit_with_a_code_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    assert supply_chain.print_advisories([("numpy", "2.0")], url=url) == os.EX_UNAVAILABLE
    printed = capsys.readouterr()
    assert printed.err.startswith(f"The advisories were not checked: {url} cannot be reached")
    assert printed.out == ""


def test_the_index_of_torch_serves_torch_alone() -> None:
    """With --extra-index-url either index may serve any name, and the higher version wins."""
    for name in ("Makefile", "packaging/Dockerfile", "README.md", "docs/guide/install.md"):
        text = (ROOT / name).read_text().replace("\\\n", " ")
        assert "--extra-index-url" not in text, name
        for line in text.splitlines():
            if "--index-url" in line:
                assert "--no-deps" in line, line
