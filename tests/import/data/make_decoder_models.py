#!/usr/bin/env python3
"""Writes models of tests/import with the ops of decoders of ONNX Runtime's domain com.microsoft.

pip install onnx==1.22.0 onnxruntime && python3 tests/import/data/make_decoder_models.py
"""

import os

import numpy as np
import onnx
from onnx import TensorProto, helper

from make_models import FOLDER, Builder, run, tensor, write, write_json

INT32, INT64, FLOAT = TensorProto.INT32, TensorProto.INT64, TensorProto.FLOAT
LOCAL = {"domain": "com.microsoft"}
HEADS, KV, SIZE = 4, 2, 16


def rotary_tables(b, rows, columns):
    angles = np.outer(np.arange(rows), 100.0 ** (-np.arange(columns) / columns))
    return b.buffer("cos_cache", np.cos(angles).astype(np.float32)), b.buffer(
        "sin_cache", np.sin(angles).astype(np.float32)
    )


def as_int32(b, x):
    return b.op("Cast", x, to=INT32)


def group_query():
    """Attention over n cached rows and t new ones, in all forms that are imported."""
    b = Builder(21)
    cos, sin = rotary_tables(b, 16, SIZE // 2)
    new, past = ["q", "k", "v"], ["past_key", "past_value"]
    prompt = as_int32(b, b.size("q", 1))
    total = as_int32(b, b.op("Add", b.size("past_key", 2), b.size("q", 1)))
    token_total = as_int32(b, b.op("Add", b.size("past_key", 2), b.constant([1])))
    whole, one = b.op("Sub", b.op("Expand", prompt, b.constant([2])), b.constant([1], np.int32)), b.constant([0])
    first = {name: b.op("Slice", name, one, b.constant([1]), one) for name in [*new, *past]}
    first_total = b.op("Sub", total, b.constant([1], np.int32))
    token = {name: b.op("Slice", name, one, b.constant([1]), b.constant([1])) for name in new}
    sinks = b.buffer("sinks", np.linspace(-1, 2, HEADS).astype(np.float32))
    rotary = [cos, sin]
    packed = b.op("Concat", "q", "k", "v", axis=2)
    calls = [
        ([*new, "", "", whole, prompt, *rotary], {"do_rotary": 1}),
        ([*new, "", "", whole, prompt], {"local_window_size": 2}),
        ([*new, "", "", whole, prompt, *rotary], {"do_rotary": 1, "rotary_interleaved": 1, "scale": 0.3}),
        ([packed, "", "", "", "", whole, prompt], {"smooth_softmax": 1}),
        ([*new, "", "", whole, prompt, "", "", "", "bias", sinks], {"softcap": 2.0}),
        ([*new, "", "", whole, prompt], {"causal": 0}),
        ([*first.values(), first_total, total, *rotary], {"do_rotary": 1}, 3),
        ([*first.values(), first_total, total, *rotary, "positions"], {"do_rotary": 1}),
        ([*token.values(), *past, "lengths", token_total, *rotary], {"do_rotary": 1, "local_window_size": 3}),
        ([*token.values(), *past, "lengths", token_total], {"smooth_softmax": 1}),
    ]
    outputs = []
    for operands, attributes, *results in calls:
        made = b.op(
            "GroupQueryAttention", *operands, results=3, num_heads=HEADS, kv_num_heads=KV, **LOCAL, **attributes
        )
        outputs += made[: results[0] if results else 1]
    flat = b.op("RotaryEmbedding", "q", b.constant([2]), cos, sin, **LOCAL)
    outputs.append(b.op("RotaryEmbedding", flat, "positions2", cos, sin, **LOCAL, interleaved=1, num_heads=HEADS))
    for i, output in enumerate(outputs):
        b.nodes.append(helper.make_node("Identity", [output], [f"y{i}"], name=f"out_{i}"))

    def normal(*shape):
        return b.random.normal(size=shape).astype(np.float32)

    data = [
        {
            "q": normal(2, t, HEADS * SIZE),
            "k": normal(2, t, KV * SIZE),
            "v": normal(2, t, KV * SIZE),
            "past_key": normal(2, KV, n, SIZE),
            "past_value": normal(2, KV, n, SIZE),
            "bias": normal(2, HEADS, t, t),
            "lengths": np.array([n, n - 2], np.int32),
            "positions": np.arange(n - 1, n - 1 + t)[None],
            "positions2": np.array([np.arange(t), np.arange(1, t + 1)]),
        }
        for n, t in ((3, 4), (5, 2))
    ]
    inputs = [
        tensor("q", FLOAT, 2, "t", HEADS * SIZE),
        tensor("k", FLOAT, 2, "t", KV * SIZE),
        tensor("v", FLOAT, 2, "t", KV * SIZE),
        tensor("past_key", FLOAT, 2, KV, "n", SIZE),
        tensor("past_value", FLOAT, 2, KV, "n", SIZE),
        tensor("bias", FLOAT, 2, HEADS, "t", "t"),
        tensor("lengths", INT32, 2),
        tensor("positions", INT64, 1, "t"),
        tensor("positions2", INT64, 2, "t"),
    ]
    results = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(len(outputs))]
    write("group_query", b, inputs, results, data, 18, domains=["com.microsoft"])


def grouped_decoder():
    """A decoder as the model builder of onnxruntime-genai writes it: GroupQueryAttention with rotary embeddings, whose
    lengths are sums of attention_mask. `prompts.json` has the tokens that ONNX Runtime chooses."""
    hidden, vocab, layers = 16, 23, 2
    b = Builder(9)
    ones = b.constant([1])
    lengths = b.op("ReduceSum", "attention_mask", ones, keepdims=0)
    lengths = as_int32(b, b.op("Sub", lengths, ones))
    total = as_int32(b, b.op("Gather", b.op("Shape", "attention_mask"), b.constant(1)))
    cos, sin = rotary_tables(b, 32, SIZE // 2)
    x = b.op("Gather", b.weight("model.embed_tokens.weight", vocab, hidden, scale=1), "input_ids")
    names = []
    for i in range(layers):
        b.scope = f"/model/layers.{i}/attn"
        y = b.op("SimplifiedLayerNormalization", x, b.weight(f"model.layers.{i}.norm.weight", hidden, scale=1), axis=-1)
        parts = [
            b.op("MatMul", y, b.weight(f"model.layers.{i}.attn.{part}_proj.weight", hidden, heads * SIZE))
            for part, heads in (("q", HEADS), ("k", KV), ("v", KV))
        ]
        past = [f"past_key_values.{i}.{part}" for part in ("key", "value")]
        names += past
        y, *present = b.op(
            "GroupQueryAttention",
            *parts,
            *past,
            lengths,
            total,
            cos,
            sin,
            results=3,
            num_heads=HEADS,
            kv_num_heads=KV,
            do_rotary=1,
            local_window_size=6 if i else -1,
            **LOCAL,
        )
        for name, old in zip(past, present):
            b.nodes[-1].output[list(b.nodes[-1].output).index(old)] = name.replace("past_key_values", "present")
        x = b.op("Add", x, b.op("MatMul", y, b.weight(f"model.layers.{i}.attn.o_proj.weight", HEADS * SIZE, hidden)))
    b.scope = ""
    b.op("MatMul", x, b.weight("lm_head.weight", hidden, vocab, scale=1))
    b.nodes[-1].output[0] = "logits"
    inputs = [
        tensor("input_ids", INT64, "batch_size", "sequence_length"),
        tensor("attention_mask", INT64, "batch_size", "total_sequence_length"),
        *[tensor(name, FLOAT, "batch_size", KV, "past_sequence_length", SIZE) for name in names],
    ]
    outputs = [
        tensor("logits", FLOAT, "batch_size", "sequence_length", vocab),
        *[tensor(n.replace("past_key_values", "present"), FLOAT, "batch_size", KV, "total_sequence_length", SIZE) for n in names],
    ]
    graph = helper.make_graph(b.nodes, "grouped_decoder", inputs, outputs, b.initializers)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    folder = os.path.join(FOLDER, "grouped_decoder")
    os.makedirs(folder, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    prompts, texts = [[3, 14, 15, 9, 2, 6], [5, 3]], []
    for prompt in prompts:
        cache, ids, text = [np.zeros((1, KV, 0, SIZE), np.float32)] * len(names), list(prompt), []
        for _ in range(12):
            mask = np.ones((1, cache[0].shape[2] + len(ids)), np.int64)
            logits, *cache = run(model, {"input_ids": np.array([ids]), "attention_mask": mask, **dict(zip(names, cache))})
            ids = [int(logits[0, -1].argmax())]
            text += ids
        texts.append(text)
    write_json(folder, "prompts.json", {"prompts": prompts, "texts": texts})
    write_json(folder, "config.json", {"model_type": "llama", "max_position_embeddings": 32, "eos_token_id": None})


if __name__ == "__main__":
    group_query()
    grouped_decoder()
