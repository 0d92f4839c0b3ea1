"""Writes programs as ONNX files, and the settings with which a runtime reads and writes without transformers.

Two programs can share one file and its weights; a condition chooses one.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from transformers import GenerationConfig

from precis.data.text.encoding import sentence_mark
from precis.export.onnx_graphs import Program
from precis.extract.unit_encoder import around
from precis.generation.fast.token_rules import listed, unsupported
from precis.generation.generation_settings import generation_config, settings_of
from precis.generation.input_plan import assumed_limit, fusion_limit, input_limit, output_limit
from precis.generation.model_loader import LoadedModel
from precis.models.family import FamilyConfig
from precis_text.errors import UserError, first_line, missing_extra

SETTINGS = "onnx.json"
FORMAT = 1
LONGEST = 4096
"""Maximum input tokens of a Z-Code++ or ProphetNet: a layer stores the scores of all pairs, 3.4 GB for 6 heads."""
_SHARED_FROM = 256  # bytes; smaller constants stay with their branch
_LIMIT = 2**31 - 2**20  # the largest protobuf message

Graph = Any  # onnx.ModelProto, which is untyped


def need_onnx() -> None:
    """Raise `UserError` if a package of the extra is not installed."""
    try:
        import onnx  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise missing_extra("export", wanted_by="precis export onnx") from None


@torch.no_grad()
def traced(program: Program, what: str) -> Graph:
    """Trace a program to an ONNX model with its names; raise `UserError` if an operation cannot be exported."""
    try:
        with _quiet():
            exported = torch.export.export(
                program.module,
                program.examples,
                dynamic_shapes=program.axes,
                strict=False,
                prefer_deferred_runtime_asserts_over_guards=True,
            )
            made = torch.onnx.export(exported, dynamo=True, optimize=True, verbose=False)
    except Exception as error:  # torch's decompositions raise many types
        raise UserError(f"{what} cannot be exported to ONNX: {first_line(error)}") from error
    assert made is not None
    graph = made.model_proto
    inputs, outputs = graph.graph.input, graph.graph.output
    names = dict(zip((one.name for one in inputs), program.inputs, strict=True))
    names |= dict(zip((one.name for one in outputs), program.outputs, strict=True))
    _rename(graph.graph, names)
    return graph


def either(condition: Graph, then: Graph, other: Graph, *, outputs: tuple[str, ...]) -> Graph:
    """Return one model that runs `then` if `condition` is true, else `other`.

    Args:
        condition: a model whose only output is the condition; it shares the inputs of the others.
        outputs: names of the result's outputs, in order; a branch that lacks one returns it empty.
    """
    from onnx import helper

    shared: dict[str, Any] = {}
    typed = {
        one.name: (one.type.tensor_type.elem_type, len(one.type.tensor_type.shape.dim))
        for model in (other, then)
        for one in model.graph.output
    }
    branches = []
    for number, model in enumerate((then, other)):
        _share_weights(model.graph, shared, prefix=f"branch{number}.")
        branch = model.graph
        there = {one.name for one in branch.output}
        given = []
        for name in outputs:
            if name not in there:
                kind, rank = typed[name]
                empty = helper.make_tensor(f"branch{number}.none.{name}", kind, [0] * rank, [])
                branch.node.append(helper.make_node("Constant", [], [f"branch{number}.{name}"], value=empty))
            given.append(_open(f"branch{number}.{name}", *typed[name]))
        _rename(branch, {name: f"branch{number}.{name}" for name in there})
        made = helper.make_graph(branch.node, f"branch{number}", [], given, branch.initializer)
        branches.append(made)
    inputs = _united(condition.graph.input, then.graph.input, other.graph.input)
    results = [_open(name, *typed[name]) for name in outputs]
    choice = helper.make_node(
        "If",
        [condition.graph.output[0].name],
        list(outputs),
        then_branch=branches[0],
        else_branch=branches[1],
    )
    whole = helper.make_graph(
        [*condition.graph.node, choice],
        "model",
        inputs,
        results,
        [*condition.graph.initializer, *shared.values()],
    )
    return helper.make_model(whole, opset_imports=other.opset_import, ir_version=other.ir_version)


def _open(name: str, kind: int, rank: int) -> Any:
    """Return an output with dynamic axes."""
    from onnx import helper

    return helper.make_tensor_value_info(name, kind, [f"{name}.{axis}" for axis in range(rank)])


def flag(name: str) -> Graph:
    """Return a condition: an input of one boolean with this name."""
    from onnx import TensorProto, helper

    given = helper.make_tensor_value_info(name, TensorProto.BOOL, [1])
    chosen = helper.make_tensor_value_info("is_chosen", TensorProto.BOOL, [1])
    return helper.make_model(
        helper.make_graph([helper.make_node("Identity", [name], ["is_chosen"])], "flag", [given], [chosen])
    )


def longer_than(name: str, length: int) -> Graph:
    """Return a condition: the second axis of this input is longer than `length`."""
    from onnx import TensorProto, helper

    given = helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
    chosen = helper.make_tensor_value_info("is_long", TensorProto.BOOL, [1])
    limit = helper.make_tensor("longest", TensorProto.INT64, [1], [length])
    nodes = [
        helper.make_node("Shape", [name], ["length_of_all"], start=1, end=2),
        helper.make_node("Greater", ["length_of_all", "longest"], ["is_long"]),
    ]
    return helper.make_model(helper.make_graph(nodes, "longer", [given], [chosen], [limit]))


def save(model: Graph, path: Path) -> None:
    """Write a model as one file; raise `UserError` if it is too large for one ONNX file."""
    import onnx

    if model.ByteSize() >= _LIMIT:
        raise UserError(f"{path.name}: exceeds 2 GiB, the limit of an ONNX file; export a smaller model")
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def quantize(path: Path) -> None:
    """Quantize the matrices of a file to 8 bits, and activations at each run (onnxruntime's dynamic quantization).

    Raises:
        UserError: if onnxruntime is not installed.
    """
    try:
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError:
        raise missing_extra("onnx", wanted_by="precis export onnx --int8") from None
    small = path.with_suffix(".int8")
    with _quiet():
        quantize_dynamic(
            path, small, weight_type=QuantType.QInt8, per_channel=True, extra_options={"EnableSubgraph": True}
        )
    small.replace(path)


def _share_weights(graph: Any, shared: dict[str, Any], *, prefix: str) -> None:
    """Move large initializers out of a branch, store equal ones once, and prefix all other names."""
    names, small = {}, []
    for weight in graph.initializer:
        if len(weight.raw_data) < _SHARED_FROM:
            names[weight.name] = prefix + weight.name
            small.append(weight)
            continue
        about = repr((weight.data_type, *weight.dims)).encode()
        key = hashlib.sha256(about + weight.raw_data).hexdigest()
        kept = shared.setdefault(key, weight)
        names[weight.name] = kept.name = kept.name if kept is not weight else f"weight.{len(shared)}"
    outputs = {one.name for one in graph.output}
    for node in graph.node:
        names |= {name: prefix + name for name in node.output if name and name not in outputs}
    del graph.initializer[:]
    graph.initializer.extend(small)
    _rename(graph, names)


def _rename(graph: Any, names: dict[str, str]) -> None:
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    _rename(inner, names)
    for one in (*graph.input, *graph.output, *graph.initializer):
        one.name = names.get(one.name, one.name)
    del graph.value_info[:]


def _united(*groups: Any) -> list[Any]:
    """Return all inputs, each name once."""
    found: dict[str, Any] = {}
    for group in groups:
        for one in group:
            found.setdefault(one.name, one)
    return list(found.values())


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence torch's and onnxruntime's notes about missing packages, and their progress."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def source_limits(loaded: LoadedModel) -> tuple[int, int]:
    """Return the longest input in tokens that is read whole, and the longest that fusion-in-encoder reads."""
    config = loaded.model.config
    declared = input_limit(config, loaded.tokenizer, trained=loaded.use.max_source)
    whole = assumed_limit(config) if declared is None else declared
    fused = fusion_limit(config)
    if fused and config.local_chunk is not None:  # its own chunks, unless equal to fusion-in-encoder's
        encoder: Any = loaded.model.get_encoder()
        own = encoder.stack.plan
        with encoder.fused():
            fused = fused if encoder.stack.plan == own else 0
    longest = min(max(whole, fused), LONGEST) if isinstance(config, FamilyConfig) else whole
    return min(whole, longest), longest


def settings_for(loaded: LoadedModel) -> dict[str, Any]:
    """Return the content of `onnx.json`; raise `UserError` if the checkpoint needs a rule that the runtime lacks."""
    tokenizer, whole, longest = loaded.tokenizer, *source_limits(loaded)
    before, after = around(tokenizer)
    found: dict[str, Any] = {
        "format": FORMAT, "modes": list(loaded.use.modes), "languages": list(loaded.use.languages),
        "instruction": loaded.use.instruction, "max_source": whole, "longest_source": longest,
        "before": before, "after": after, "special": sorted(tokenizer.all_special_ids),
        "unknown": tokenizer.unk_token_id,
        "separator": tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id,
        "padding": tokenizer.pad_token_id or 0, "sentence_mark": sentence_mark(tokenizer),
    }  # fmt: skip
    if "abstract" in loaded.use.modes:
        found["search"] = _search(loaded)
    return found


def _search(loaded: LoadedModel) -> dict[str, Any]:
    settings = settings_of(loaded.model)
    config: GenerationConfig = generation_config(settings, loaded.model, loaded.tokenizer)
    unknown = unsupported(config)
    if unknown:
        raise UserError(
            f"{loaded.source}: generation_config.json sets {', '.join(unknown)}, which an exported model does not "
            "support; remove that setting"
        )
    start = config.decoder_start_token_id
    return {
        **asdict(settings), "longest_target": output_limit(loaded.model.config),
        "start": config.bos_token_id if start is None else start, "end_marks": listed(config.eos_token_id),
        "forced_first": config.forced_bos_token_id, "forced_last": listed(config.forced_eos_token_id),
        "never": listed(config.suppress_tokens), "never_first": listed(config.begin_suppress_tokens),
    }  # fmt: skip
