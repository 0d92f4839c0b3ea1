"""The folders of `faults.malicious`: a model of ours or a BART, and one thing in it that means harm."""

import json
import os
import pickle  # written, to see that it is never read
import shutil
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from faults.small_models import make, save
from precis.tuning import Prefix, attach, method

Change = Callable[["Ground", Path], object]
WEIGHTS, CONFIG, DECODING = "model.safetensors", "config.json", "generation_config.json"
TOKENIZER, TOKENIZER_CONFIG, INDEX = "tokenizer.json", "tokenizer_config.json", "model.safetensors.index.json"


@dataclass(frozen=True)
class Ground:
    """The shared inputs of the cases: whole models, a document, and files that must not be touched."""

    scratch: Path
    document: Path
    canary: Path
    outside: Path
    bart: Path
    zcodepp: Path
    adapter: Path
    digest: str

    @classmethod
    def make(cls, scratch: Path) -> "Ground":
        document = scratch / "document.txt"
        document.write_text(
            "Ann: the meeting is at noon, and Bob brings the cake. Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n"
            * 3
        )
        ground = cls(
            scratch=scratch,
            document=document,
            canary=scratch / "canary",
            outside=save("bart", scratch / "outside", seed=1),
            bart=save("bart", scratch / "bart"),
            zcodepp=save("zcodepp", scratch / "zcodepp"),
            adapter=scratch / "adapter",
            digest="",
        )
        attach(make("bart"), method("prefix", Prefix(length=2))).save(ground.adapter)
        return replace(ground, digest=ground._digest())

    def _digest(self) -> str:
        whole = sha256()
        for file in sorted(self.outside.iterdir()):
            whole.update(f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}\n".encode())
        return whole.hexdigest()

    def changed(self) -> bool:
        """Test whether the model outside has changed."""
        return self._digest() != self.digest

    @property
    def harmless_base(self) -> Path:
        """The model that adapters are opened on."""
        return self.bart

    def model_of(self, folder: Path) -> Path:
        """Return the value of --model."""
        return self.bart if (folder / "on-bart").exists() else folder

    def adapter_options(self, folder: Path) -> list[str]:
        """Return --adapter for a folder that does not know its base."""
        return ["--adapter", str(folder)] if (folder / "on-bart").exists() else []


@dataclass(frozen=True)
class Case:
    """One folder: a copy of `base`, changed."""

    name: str
    change: Change
    base: str = "bart"
    may_be_harmless: bool = False

    def make(self, ground: Ground, number: int) -> Path:
        """Write it."""
        folder = ground.scratch / "cases" / f"{number:03d}"
        shutil.copytree(getattr(ground, self.base), folder)
        self.change(ground, folder)
        return folder


def edit(name: str, changes: Mapping[str, Any] | Callable[[Ground], Mapping[str, Any]]) -> Change:
    """Replace entries of a JSON file."""

    def change(ground: Ground, folder: Path) -> None:
        file = folder / name
        values = json.loads(file.read_text()) if file.exists() else {}
        new = changes(ground) if callable(changes) else changes
        file.write_text(json.dumps({**values, **new}))

    return change


def write(name: str, content: str | bytes | Callable[[Ground], str]) -> Change:
    """Write a file with this content."""

    def change(ground: Ground, folder: Path) -> None:
        text = content(ground) if callable(content) else content
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    return change


def both(*changes: Change) -> Change:
    """Make the changes one after the other."""

    def change(ground: Ground, folder: Path) -> None:
        for one in changes:
            one(ground, folder)

    return change


def link(name: str, target: str | None = None) -> Change:
    """Replace a file by a link to the same file outside, or to `target`."""

    def change(ground: Ground, folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target if target is not None else ground.outside / name)

    return change


def pipe(name: str) -> Change:
    """Put a pipe without a writer in place of a file."""

    def change(_: Ground, folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return change


def gone(*names: str) -> Change:
    """Remove these files."""

    def change(_: Ground, folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return change


class _Runs:
    def __init__(self, canary: Path) -> None:
        self._canary = canary

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.system, (f"touch {self._canary}",))


def harmful_pickle(name: str, *, alone: bool) -> Change:
    """Write a pickle that runs a command."""

    def change(ground: Ground, folder: Path) -> None:
        if alone:
            (folder / WEIGHTS).unlink()
        (folder / name).write_bytes(pickle.dumps(_Runs(ground.canary)))

    return change


def _module(ground: Ground) -> str:
    return f"open({str(ground.canary)!r}, 'w').close()\nclass Evil: pass\ndef generate(**_): pass\n"


CODE = both(
    *(write(name, _module) for name in ("evil.py", "custom_generate/generate.py", "modeling_evil.py"))
)


def header(entries: Any, *, length: int | None = None, tail: bytes = b"") -> Change:
    """Write a safetensors file with this header; a function makes a large header on demand."""

    def change(ground: Ground, folder: Path) -> None:
        made = entries() if callable(entries) else entries
        text = made if isinstance(made, bytes) else json.dumps(made).encode()
        size = struct.pack("<Q", len(text) if length is None else length)
        write(WEIGHTS, size + text + tail)(ground, folder)

    return change


def aside(_: Ground, folder: Path) -> None:
    """Rename the weights: without any, the folder would be refused before its index is read."""
    (folder / WEIGHTS).rename(folder / "own.safetensors")


def index(weight_map: Any) -> Change:
    """Write an index that names other files than the one with the weights."""
    return both(aside, edit(INDEX, {"metadata": {"total_size": 1}, "weight_map": weight_map}))


def index_with_shard(name: str, *, source: Callable[[Ground], Path], at: str | None = None) -> Change:
    """Write an index that names `name` for all weights, which is a link to `source` if `at` is given."""

    def change(ground: Ground, folder: Path) -> None:
        index({"model.shared.weight": name.format(outside=ground.outside)})(ground, folder)
        if at is not None:
            (folder / at).symlink_to(source(ground))

    return change


def tokenizer(changes: Mapping[str, Any]) -> Change:
    """Replace parts of tokenizer.json."""
    return edit(TOKENIZER, changes)


def split(pattern: str) -> dict[str, Any]:
    """Return a pre-tokenizer by a regular expression."""
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def on_bart(*changes: Change) -> Change:
    """Change an adapter that is opened on the BART."""
    return both(*changes, write("on-bart", ""))


def unsealed(change: Change) -> Change:
    """Make a change without a seal, which would detect it."""
    return both(gone("seal.json"), change)


def tensor(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def _unix_socket(_: Ground, folder: Path) -> None:
    place = Path.cwd()
    os.chdir(folder)  # the name of a socket has 100 characters at most
    try:
        socket.socket(socket.AF_UNIX).bind("socket.json")
    finally:
        os.chdir(place)


def _pickles() -> list[Case]:
    names = ("pytorch_model.bin", "model.pt", "model.ckpt", "model.pkl")
    return [
        *(Case(f"pickle {name}", harmful_pickle(name, alone=True)) for name in names),
        Case("pickle as safetensors", harmful_pickle(WEIGHTS, alone=False)),
        Case("pickle beside", harmful_pickle("training_args.bin", alone=False), may_be_harmless=True),
        Case("pickle of the optimizer", harmful_pickle("optimizer.pt", alone=False), may_be_harmless=True),
    ]


def _code() -> list[Case]:
    own = {"auto_map": {"AutoConfig": "evil.Evil", "AutoModelForSeq2SeqLM": "evil.Evil"}}
    theirs = {"auto_map": {"AutoModelForSeq2SeqLM": "somebody/evil--evil.Evil"}}
    cases: list[tuple[str, str, dict[str, Any], bool]] = [
        ("auto_map", CONFIG, own, True),
        ("auto_map of a new kind", CONFIG, {**own, "model_type": "evil"}, False),
        ("auto_map of the hub", CONFIG, theirs, True),
        ("auto_map of the hub, new kind", CONFIG, {**theirs, "model_type": "evil"}, False),
        ("auto_map, trusted", CONFIG, {**own, "trust_remote_code": True}, True),
        ("custom pipelines", CONFIG, {"custom_pipelines": {"summarization": {"impl": "evil.Evil"}}}, True),
        (
            "tokenizer auto_map",
            TOKENIZER_CONFIG,
            {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}},
            True,
        ),
        ("tokenizer auto_map list", TOKENIZER_CONFIG, {"auto_map": ["evil.Evil", None]}, True),
        ("tokenizer of a new class", TOKENIZER_CONFIG, {"tokenizer_class": "evil.Evil"}, True),
        ("custom generate", CONFIG, {"custom_generate": "."}, True),
        ("custom generate, decoding", DECODING, {"custom_generate": "somebody/evil"}, False),
        ("decoding that trusts", DECODING, {"trust_remote_code": True}, False),
    ]
    return [Case(name, both(CODE, edit(file, new)), may_be_harmless=ok) for name, file, new, ok in cases]


def _escapes() -> list[Case]:
    """Return names and values that would control the terminal of a person who reads the message about them."""
    steers = "evil\x1b]0;owned\x07\x1b[2J\x9b31m\r"
    cases: dict[str, dict[str, Any]] = {
        "escapes as a kind": {"model_type": steers},
        "escapes as a kernel": {"_attn_implementation": steers},
        "escapes as a type": {"dtype": steers},
        "escapes as a size": {"d_model": steers},
        "escapes as a number of layers": {"encoder_layers": [steers]},
        "escapes as a name of code": {"auto_map": {steers: steers}, "model_type": steers},
    }
    made = [Case(name, edit(CONFIG, new), may_be_harmless=True) for name, new in cases.items()]
    made += [Case("escapes as decoding", edit(DECODING, {"num_beams": steers}))]
    return [*made, Case("escapes in a use", write("precis.json", json.dumps({"max_source": steers})))]


def _implementations() -> list[Case]:
    kernel = "kernels-community/flash-attn"
    cases: dict[str, dict[str, Any]] = {
        "attention kernel": {"_attn_implementation": kernel},
        "attention kernel, public name": {"attn_implementation": kernel},
        "attention kernel, inner name": {"_attn_implementation_internal": kernel},
        "attention kernel of a stranger": {"_attn_implementation": "somebody/evil:attend"},
        "attention kernel, nested": {"encoder": {"_attn_implementation": "somebody/evil"}},
        "attention kernel by part": {"_attn_implementation": {"": "somebody/evil"}},
        "experts kernel": {"_experts_implementation": "somebody/evil"},
        "experts kernel, public name": {"experts_implementation": "somebody/evil"},
        "kernels": {"use_kernels": True, "kernel_config": {"kernel_mapping": {"Linear": "somebody/evil"}}},
        "fused": {"fusion_config": {"x": True}},
        "weights elsewhere": {"transformers_weights": "../../outside/model.safetensors"},
        "settings elsewhere": {"configuration_files": ["config.4.0.0/../../../outside/config.json"]},
        "gguf": {"gguf_file": "/etc/passwd"},
        "quantized": {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}},
        "quantized by awq": {"quantization_config": {"quant_method": "awq", "bits": 4}},
    }
    return [Case(name, both(CODE, edit(CONFIG, new))) for name, new in cases.items()]


def _places() -> list[Case]:
    linked = (CONFIG, WEIGHTS, TOKENIZER, TOKENIZER_CONFIG, DECODING)
    piped = (CONFIG, WEIGHTS, TOKENIZER, DECODING, "precis.json", "seal.json")
    up, one, torch_file = "../../outside/model.safetensors", "a.safetensors", "pytorch_model.bin"
    elsewhere = {"tokenizer_file": "../../outside/tokenizer.json"}
    return [
        *(Case(f"link {name}", link(name)) for name in linked),
        Case("link to a device", link(WEIGHTS, "/dev/zero")),
        Case("link to passwd", link("added_tokens.json", "/etc/passwd")),
        Case("link in a circle", link(CONFIG, CONFIG)),
        Case("link to a folder", link("additional_chat_templates", "/etc")),
        Case("link in a folder", both(write("sub/x.json", "{}"), link("sub/passwd", "/etc/passwd"))),
        *(Case(f"pipe {name}", pipe(name)) for name in piped),
        Case("socket", _unix_socket),
        Case("shard above", index({"a": up})),
        Case("shard absolute", index_with_shard("{outside}/model.safetensors", source=lambda g: g.outside)),
        Case("shard passwd", index({"a": "/etc/passwd"})),
        Case("shard deep", both(write("sub/x", ""), index({"a": "sub/../../../outside/model.safetensors"}))),
        Case("shard linked", index_with_shard(one, source=lambda g: g.outside / WEIGHTS, at=one)),
        Case("shard is the index", index({"a": INDEX})),
        Case("shard is a folder", both(write("a.safetensors/x", ""), index({"a": "a.safetensors"}))),
        Case("shard of a device", index_with_shard(one, source=lambda _: Path("/dev/zero"), at=one)),
        Case("shard is a pickle", both(index({"a": torch_file}), harmful_pickle(torch_file, alone=False))),
        Case("many shards", index({f"w{i}": f"{i}.safetensors" for i in range(100_000)})),
        Case("index without a map", both(aside, write(INDEX, '{"weight_map": 5}'))),
        Case("index of brackets", both(aside, write(INDEX, "[" * 200_000))),
        Case("vocabulary elsewhere", edit(TOKENIZER_CONFIG, {"vocab_file": "/etc/passwd"}), may_be_harmless=True),
        Case("tokenizer elsewhere", edit(TOKENIZER_CONFIG, elsewhere), may_be_harmless=True),
        Case("tokenizers elsewhere", edit(TOKENIZER_CONFIG, {"fast_tokenizer_files": ["tokenizer.1/../../x.json"]})),
    ]  # fmt: skip


def _headers() -> list[Case]:
    one = tensor("F32", [1], 0, 4)
    return [
        Case("header beyond the end", header({"a": one}, length=1 << 40)),
        Case("header beyond all", header({"a": one}, length=(1 << 64) - 1)),
        Case("header of 90 MB", header(lambda: b'{"a":' + b" " * 90_000_000 + b"1}")),
        Case("header of brackets", header(b"[" * 1_000_000)),
        Case(
            "header of many tensors",
            header(lambda: {f"w{i}": tensor("F32", [0], 0, 0) for i in range(200_000)}),
        ),
        Case("tensor beyond the end", header({"a": tensor("F32", [1 << 40], 0, 1 << 42)})),
        Case("tensor of a negative shape", header({"a": tensor("F32", [-1], 0, 4)}, tail=b"0000")),
        Case("tensor of another length", header({"a": tensor("F32", [2], 0, 4)}, tail=b"0000")),
        Case("tensor of no type", header({"a": tensor("EVIL", [1], 0, 4)}, tail=b"0000")),
        Case("header that is a list", header([1, 2])),
    ]


def _sizes() -> list[Case]:
    bart: dict[str, dict[str, Any]] = {
        "layers": {"encoder_layers": 200_000},
        "deep decoder": {"decoder_layers": 10**9},
        "width": {"d_model": 10**9},
        "vocabulary": {"vocab_size": 10**12},
        "labels": {"num_labels": 10**9},
        "positions": {"max_position_embeddings": 10**9},
        "heads": {"encoder_attention_heads": 10**9},
        "inner width": {"encoder_ffn_dim": 10**9},
        "width as a fraction": {"d_model": 1e18},
        "nothing": {"d_model": 0, "vocab_size": -5},
    }
    ours: dict[str, dict[str, Any]] = {
        "our layers": {"encoder_layers": 200_000},
        "our vocabulary": {"vocab_size": 10**12},
        "our width": {"hidden_size": 10**9},
        "our buckets": {"position_buckets": 10**9},
        "our streams": {"future_tokens": 10**9},
        "our kernel": {"convolution_kernel": 10**9},
        "our global layers": {"chunk_length": 10**9, "global_layers": 10**9},
    }
    return [
        *(Case(name, edit(CONFIG, new)) for name, new in bart.items()),
        *(Case(name, edit(CONFIG, new), base="zcodepp") for name, new in ours.items()),
        Case("settings of brackets", write(CONFIG, "[" * 200_000)),
        Case("settings of objects", write(CONFIG, '{"a":' * 100_000 + "1" + "}" * 100_000)),
        Case(
            "settings with a long number",
            write(CONFIG, '{"model_type": "bart", "d_model": ' + "9" * 100_000 + "}"),
        ),
    ]


def _tokenizers() -> list[Case]:
    space = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}
    return [
        Case("panicking split", tokenizer({"pre_tokenizer": split("(a+)+$")})),
        Case("panicking split, nested", tokenizer({"pre_tokenizer": split("(?:(a|aa)+)+b")})),
        Case("panicking normalizer", tokenizer({"normalizer": space})),
        Case("broken expression", tokenizer({"pre_tokenizer": split("((")})),
        Case(
            "unknown token beyond",
            tokenizer({"model": {"type": "Unigram", "unk_id": 9, "vocab": [["a", 0.0]]}}),
        ),
        Case("tokenizer of brackets", write(TOKENIZER, "[" * 500_000)),
        Case("tokenizer of nothing", write(TOKENIZER, "{}")),
        Case("a million lists", write(TOKENIZER, "[" + "[]," * 5_000_000 + "[]]")),
    ]


def _decoding() -> list[Case]:
    template = (
        "{% for x in range(10**9) %}{{ cycler.__init__.__globals__.os.system('touch canary') }}{% endfor %}"
    )
    return [
        Case("a million beams", edit(DECODING, {"num_beams": 1_000_000})),
        Case("endless summaries", edit(DECODING, {"max_length": 10**9, "max_new_tokens": 10**9})),
        Case("no summary ends", edit(DECODING, {"min_new_tokens": 10**9})),
        Case("a million summaries", edit(DECODING, {"num_return_sequences": 10**6}), may_be_harmless=True),
        Case("beams as a text", edit(DECODING, {"num_beams": "evil"})),
        Case("compiled", edit(DECODING, {"compile_config": {"backend": "evil"}})),
        Case("chat template", edit(TOKENIZER_CONFIG, {"chat_template": template}), may_be_harmless=True),
        Case("chat template file", write("chat_template.jinja", template), may_be_harmless=True),
        Case("use of another type", write("precis.json", '{"max_source": "abc"}')),
        Case("use of a text", write("precis.json", '{"grounded_on": 5}')),
    ]


def _base(model: str) -> str:
    return json.dumps({"model": model, "beside": ""})


def _adapters() -> list[Case]:
    hub = both(gone("seal.json"), write("base.json", _base("somebody/evil")))
    prefixed = both(gone("seal.json"), write("base.json", _base("hub:somebody/evil")))
    passwd = write("base.json", _base("/etc"))

    def longer(_: Ground, folder: Path) -> None:
        file = folder / "adapter.json"
        file.write_text(file.read_text().replace('"length": 2', '"length": 1000000000'))

    def typed(_: Ground, folder: Path) -> None:
        file = folder / "adapter.safetensors"
        file.write_bytes(file.read_bytes().replace(b'"F32"', b'"I32"'))

    adapter = "adapter"
    return [
        Case("base on the hub", hub, base=adapter),
        Case("base on the hub, said", prefixed, base=adapter),
        Case("base anywhere", unsealed(passwd), base=adapter),
        Case("base of brackets", unsealed(write("base.json", "[" * 200_000)), base=adapter),
        Case("long prefix", on_bart(unsealed(longer)), base=adapter),
        Case("prefix of integers", on_bart(unsealed(typed)), base=adapter),
        Case("adapter of brackets", on_bart(unsealed(write("adapter.json", "[" * 200_000))), base=adapter),
        Case("adapter linked", on_bart(unsealed(link("adapter.safetensors", "/etc/passwd"))), base=adapter),
        Case("adapter decodes", on_bart(unsealed(write(DECODING, '{"num_beams": 1000000}'))), base=adapter),
        Case("adapter of PEFT", write("adapter_config.json", '{"base_model_name_or_path": "somebody/evil"}')),
    ]


CASES: tuple[Case, ...] = (
    *_pickles(),
    *_code(),
    *_escapes(),
    *_implementations(),
    *_places(),
    *_headers(),
    *_sizes(),
    *_tokenizers(),
    *_decoding(),
    *_adapters(),
)
