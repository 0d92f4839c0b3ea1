"""A service behind a proxy that shows it under a path."""

from pathlib import Path

import pytest

from precis.server.client_keys import Keys
from precis.server.listener import Address
from precis_text.errors import UserError
from tests.server.conftest import Serve


def test_paths_work_with_the_prefix_and_without_it(serve: Serve) -> None:
    with serve(prefix="/a/precis").client() as client:
        for path in ("/health", "/a/precis/health"):
            assert client.get(path).json() == {"status": "ok"}
        sent = client.get("/a/precis")
        assert (sent.status_code, sent.headers["location"]) == (307, "/a/precis/")
        assert 'href="page.css"' in client.get("/a/precis/").text
        assert client.get("/a/precis/openapi.json").json()["servers"] == [{"url": "/a/precis"}]
        assert client.get("/a/precisely/health").status_code == 404
        answer = client.post("/a/precis/v1/summarize", json={"text": "Ann sings. " * 9, "words": 5})
        assert answer.status_code == 200


def test_the_prefix_opens_nothing(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text("ann 0123456789abcdefABCDEF0123\n")
    with serve(prefix="/p", keys=Keys.read(path)).client() as client:
        for asked in ("/p/v1/models", "/p/p/health/../v1/models", "/p/metrics", "/p//health"):
            assert client.get(asked).status_code == 401, asked


@pytest.mark.parametrize("prefix", ["precis", "/precis/", "/a b", "//", "/a//b"])
def test_a_prefix_that_is_no_path_is_one_line(prefix: str) -> None:
    with pytest.raises(UserError, match="--root-path"):
        Address(prefix=prefix)
