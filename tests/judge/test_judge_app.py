"""The server of the page: who may ask what."""

import asyncio
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from precis_judge.judge_app import make_app
from precis_judge.verdicts import VerdictStore
from precis_text.errors import RunError
from tests.judge.studies import invented, lines, study_in

HOST = "127.0.0.1:8477"
OWN = {"X-Precis-Judge": "0"}
KEYS = ("faithfulness", "relevance", "grammaticality", "coherence", "overall")
VERDICT = {"page": 0, "choices": dict.fromkeys(KEYS, "left"), "reasons": {}, "seconds": 3}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[VerdictStore]:
    with VerdictStore.opened(study_in(tmp_path / "study")) as opened:
        yield opened


@pytest.fixture
def client(store: VerdictStore) -> TestClient:
    return TestClient(make_app(store, hosts={HOST}), base_url=f"http://{HOST}")


@pytest.fixture
def ann(client: TestClient, store: VerdictStore) -> TestClient:
    answer = client.post("/api/enter", json={"token": store.study.links["Ann"]}, headers=OWN)
    assert answer.status_code == 200
    said = answer.headers["set-cookie"]
    assert "HttpOnly" in said
    assert "SameSite=strict" in said
    return client


def test_another_host_name_is_refused_even_with_the_cookie(ann: TestClient) -> None:
    for host in ("evil.example:8477", "127.0.0.1", "127.0.0.1:80", ""):
        assert ann.get("/api/state", headers={**OWN, "Host": host}).status_code == 421
        assert ann.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({**OWN, "Origin": "http://evil.example"}, 403),
        ({**OWN, "Origin": "null"}, 403),
        ({**OWN, "Origin": "http://127.0.0.1:9999"}, 403),
        ({**OWN, "Sec-Fetch-Site": "cross-site"}, 403),
        ({**OWN, "Sec-Fetch-Site": "same-site"}, 403),
        ({"X-Precis-Judge": "1"}, 409),
        ({**OWN, "Content-Type": "text/plain"}, 415),
        ({**OWN, "Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
def test_a_verdict_is_taken_from_our_page_alone(
    ann: TestClient, store: VerdictStore, headers: dict[str, str], status: int
) -> None:
    assert ann.post("/api/verdict", json=VERDICT, headers=headers).status_code == status
    assert len(lines(store.study.folder / "verdicts.jsonl")) == (status == 200)


def test_without_the_token_there_is_nothing_to_see(client: TestClient) -> None:
    for path in ("/api/state", "/api/page/0", "/api/passages/0"):
        assert client.get(path, headers=OWN).status_code == 401
    assert client.post("/api/verdict", json=VERDICT, headers=OWN).status_code == 401
    for token in ("", "x" * 32, None, 5):
        assert client.post("/api/enter", json={"token": token}, headers=OWN).status_code == 401
    for path in ("/docs", "/openapi.json", "/page/../links.json", "/links.json"):
        assert client.get(path).status_code == 404


def test_no_name_of_a_system_and_no_hint_of_a_check_reaches_the_judge(
    ann: TestClient, store: VerdictStore
) -> None:
    for number in range(len(store.study.layout.pages["Ann"])):
        for path in ("page", "passages"):
            answer = ann.get(f"/api/{path}/{number}", headers=OWN)
            assert answer.status_code == 200
            assert not {"first", "second", "planted", "repeat", "item", "system"} & answer.json().keys()
            assert "doc-" not in answer.text
        assert ann.get(f"/api/page/{number + 1}", headers=OWN).status_code == 404
        assert ann.post("/api/verdict", json={**VERDICT, "page": number}, headers=OWN).status_code == 200


def test_a_page_has_the_human_summary_if_the_study_shows_it(ann: TestClient, tmp_path: Path) -> None:
    assert ann.get("/api/page/0", headers=OWN).json()["truth"] == ""
    documents = [replace(one, truth=f"The truth about {one.id}.") for one in invented(10)]
    with VerdictStore.opened(study_in(tmp_path / "shown", documents=documents)) as store:
        client = TestClient(make_app(store, hosts={HOST}), base_url=f"http://{HOST}")
        client.post("/api/enter", json={"token": store.study.links["Ann"]}, headers=OWN)
        page = client.get("/api/page/0", headers=OWN).json()
        item = store.study.layout.items[store.study.layout.pages["Ann"][0].item]
        assert page["truth"] == f"The truth about {item.document}."


def test_every_answer_forbids_what_the_page_does_not_need(ann: TestClient) -> None:
    for path in ("/", "/page.js", "/page.css", "/api/state", "/nothing"):
        headers = ann.get(path, headers=OWN).headers
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 400), (b"[" * 100_000, 400), (b" " * 300_000, 413), (b'{"page": "x"}', 404)],
)
def test_bodies_that_are_no_verdict(ann: TestClient, body: bytes, status: int) -> None:
    headers = {**OWN, "Content-Type": "application/json"}
    assert ann.post("/api/verdict", content=body, headers=headers).status_code == status


def test_a_body_that_does_not_end_is_refused_in_time(
    ann: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent() -> dict[str, object]:
        await asyncio.sleep(60)
        raise AssertionError("nobody waits so long")

    async def keep(message: Any) -> None:
        answered.append(message)

    answered: list[Any] = []
    monkeypatch.setattr("precis_judge.judge_app._BODY_SECONDS", 0.01)
    headers = {**OWN, "Content-Type": "application/json", "Host": HOST}
    scope = {
        "type": "http", "method": "POST", "path": "/api/enter", "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    asyncio.run(ann.app(scope, silent, keep))  # type: ignore[arg-type]
    assert answered[0]["status"] == 408


def test_a_verdict_that_cannot_be_written_is_not_acknowledged(
    ann: TestClient, store: VerdictStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("precis.storage.journal.os.fsync", full)
        answer = ann.post("/api/verdict", json=VERDICT, headers=OWN)
        assert (answer.status_code, "No space left" in answer.text) == (503, True)
        assert ann.get("/api/state", headers=OWN).json()["next"] == 0
    assert ann.post("/api/verdict", json=VERDICT, headers=OWN).json() == {"next": 1}


def _replace(file: Path) -> None:
    """Put a copy in its place, as file synchronizers and editors do."""
    file.with_name("copy").write_bytes(file.read_bytes())
    file.with_name("copy").replace(file)


def test_a_verdict_whose_file_was_replaced_is_not_acknowledged_and_the_server_is_told(tmp_path: Path) -> None:
    failures: list[RunError] = []
    study = study_in(tmp_path / "study")
    with pytest.raises(RunError, match="was replaced or deleted"), VerdictStore.opened(study) as store:
        _two_around(store, study.folder / "verdicts.jsonl", failures)
    assert "its 1 records are in verdicts.jsonl.kept-" in str(failures[0])


def _two_around(store: VerdictStore, file: Path, failures: list[RunError]) -> None:
    """Send a verdict, replace the file, and send another one."""
    app = make_app(store, hosts={HOST}, on_failure=failures.append)
    ann = TestClient(app, base_url=f"http://{HOST}")
    ann.post("/api/enter", json={"token": store.study.links["Ann"]}, headers=OWN)
    assert ann.post("/api/verdict", json=VERDICT, headers=OWN).json() == {"next": 1}
    _replace(file)
    answer = ann.post("/api/verdict", json={**VERDICT, "page": 1}, headers=OWN)
    assert (answer.status_code, "cannot save the verdict" in answer.text) == (503, True)
    assert str(file.parent) not in answer.text
    assert ann.get("/api/state", headers=OWN).json()["next"] == 1


def test_the_server_stops_with_one_line_when_the_file_of_verdicts_is_replaced(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study")
    words = [sys.executable, "-m", "precis", "judge", "serve", str(study.folder), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        link = next(word for line in server.stdout for word in line.split() if word.startswith("http"))
        place, _, token = link.partition("/#")
        _replace(study.folder / "verdicts.jsonl")
        with httpx.Client(base_url=place, headers=OWN) as ann:
            ann.post("/api/enter", json={"token": token})
            assert ann.post("/api/verdict", json=VERDICT).status_code == 503
        assert server.wait(30) == 1
        said = [line for line in server.stderr.read().splitlines() if line.startswith("error:")]
    assert len(said) == 1
    assert "verdicts.jsonl: was replaced or deleted by another program; its 0 records are in" in said[0]


def test_300_silent_connections_lock_no_judge_out(tmp_path: Path) -> None:
    study = study_in(tmp_path / "study")
    words = [sys.executable, "-m", "precis", "judge", "serve", str(study.folder), "--port", "0"]
    with ExitStack() as stack:
        server = stack.enter_context(
            subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
        stack.callback(server.terminate)
        assert server.stdout is not None
        link = next(word for line in server.stdout for word in line.split() if word.startswith("http"))
        place = link.partition("/#")[0]
        address = (httpx.URL(place).host, httpx.URL(place).port)
        for _ in range(300):
            stack.enter_context(socket.create_connection(address, timeout=10))
        assert httpx.get(place, trust_env=False).status_code == 200


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_calls_of_the_guide_judge_without_a_browser(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "guide" / "judge.md").read_text()
    (calls,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    (own,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "tone.toml").write_text(own)
    study = study_in(tmp_path / "study", asked=str(tmp_path / "tone.toml"), gold=0)
    words = [sys.executable, "-m", "precis", "judge", "serve", str(study.folder), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = next(line for line in server.stdout if line.startswith("Ann: "))
        place, _, token = line.removeprefix("Ann: ").strip().partition("/#")
        script = calls.replace("http://127.0.0.1:8477", place).replace("TOKEN", token)
        shell = ["sh", "-e", "-c", script.replace("curl ", "curl --silent --fail-with-body --noproxy '*' ")]
        done = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=False)
        server.terminate()
        server.wait(30)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith('{"number":0}')
    assert done.stdout.endswith('{"next":1}')
    record = lines(study.folder / "verdicts.jsonl")[-1]
    assert (record["judge"], record["page"], record["choices"]) == ("Ann", 0, {"tone": "left"})
