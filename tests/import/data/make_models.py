#!/usr/bin/env python3
"""Writes the ONNX models of tests/import, with inputs and expected outputs for two sizes each.

  pip install onnx==1.22.0 onnxruntime && python3 tests/import/data/make_models.py

Models are small and have random weights, in the forms that exporters write: shapes as chains of Shape, Gather, Concat
and Reshape, decomposed norms, masks cut from buffers. Outputs are those of ONNX Runtime, or of onnx's reference for
ops that it does not have.
"""

import json
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = os.path.dirname(os.path.abspath(__file__))


class Builder:
    """Collects nodes and initializers. Values are names."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.initializers, self.count = [], [], 0
        self.scope = ""

    def op(self, kind, *inputs, results=1, domain="", **attributes):
        self.count += 1
        name = f"{self.scope}/{kind}_{self.count}"
        outputs = [f"{name}_output_{i}" for i in range(results)]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=name, domain=domain, **attributes))
        return outputs[0] if results == 1 else outputs

    def weight(self, name, *shape, scale=0.3):
        values = self.random.normal(0, scale, shape).astype(np.float32)
        self.initializers.append(numpy_helper.from_array(values, name))
        return name

    def buffer(self, name, values):
        self.initializers.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, values, dtype=np.int64):
        return self.op("Constant", value=numpy_helper.from_array(np.array(values, dtype)))

    def size(self, x, dim):
        """The size of a dim as [1], as TorchScript's exporter computes it."""
        number = self.op("Gather", self.op("Shape", x), self.constant(dim), axis=0)
        return self.op("Unsqueeze", number, self.constant([0]))

    def reshape(self, x, *sizes):
        parts = [size if isinstance(size, str) else self.constant([size]) for size in sizes]
        return self.op("Reshape", x, self.op("Concat", *parts, axis=0))

    def linear(self, x, name, rows, columns):
        product = self.op("MatMul", x, self.weight(f"{name}.weight", rows, columns))
        return self.op("Add", self.weight(f"{name}.bias", columns), product)

    def layer_norm(self, x, name, size):
        """Decomposed, as opsets before 17 have it."""
        centered = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1]))
        variance = self.op("ReduceMean", self.op("Pow", centered, self.constant(2, np.float32)), axes=[-1])
        root = self.op("Sqrt", self.op("Add", variance, self.constant(1e-5, np.float32)))
        scaled = self.op("Mul", self.op("Div", centered, root), self.weight(f"{name}.weight", size))
        return self.op("Add", scaled, self.weight(f"{name}.bias", size))

    def heads(self, x, heads, size):
        split = self.reshape(x, self.size(x, 0), self.size(x, 1), heads, size)
        return self.op("Transpose", split, perm=[0, 2, 1, 3])

    def merged(self, x, columns):
        y = self.op("Transpose", x, perm=[0, 2, 1, 3])
        return self.reshape(y, self.size(y, 0), self.size(y, 1), columns)


def tensor(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, shape)


def write(case, b, inputs, outputs, data, opset, functions=(), domains=(), external=False):
    graph = helper.make_graph(b.nodes, case, inputs, outputs, b.initializers)
    imports = [helper.make_opsetid("", opset), *[helper.make_opsetid(domain, 1) for domain in domains]]
    model = helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10)
    folder = os.path.join(FOLDER, case)
    os.makedirs(folder, exist_ok=True)
    expected = [run(model, feeds) for feeds in data]
    for output, values in zip(model.graph.output, expected[0]):
        if not output.HasField("type"):  # as the result is
            kind = helper.np_dtype_to_tensor_dtype(np.asarray(values).dtype)
            output.CopyFrom(tensor(output.name, kind, *[None] * np.asarray(values).ndim))
    onnx.checker.check_model(model)
    path = os.path.join(folder, "model.onnx")
    if external:
        onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    else:
        onnx.save(model, path)
    for i, (feeds, results) in enumerate(zip(data, expected)):
        os.makedirs(os.path.join(folder, f"test_data_set_{i}"), exist_ok=True)
        for kind, arrays in (
            ("input", [(v.name, feeds[v.name]) for v in inputs]),
            ("output", list(zip([v.name for v in outputs], results))),
        ):
            for k, (name, values) in enumerate(arrays):
                with open(os.path.join(folder, f"test_data_set_{i}", f"{kind}_{k}.pb"), "wb") as file:
                    file.write(numpy_helper.from_array(np.asarray(values), name).SerializeToString())


def run(model, feeds):
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, feeds)
    except Exception:  # an op that it does not have
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(model).run(None, feeds)


def attention(b, q, k, v, size, mask):
    """mask(scores) -> scores"""
    scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.op("Div", scores, b.constant(np.sqrt(size), np.float32))
    return b.op("MatMul", b.op("Softmax", mask(scores), axis=-1), v)


def bert():
    hidden, heads, vocab, longest = 8, 2, 11, 16
    b = Builder(1)
    words = b.op("Gather", b.weight("embeddings.word_embeddings.weight", vocab, hidden), "input_ids")
    positions = b.op(
        "Slice",
        b.buffer("embeddings.position_ids", np.arange(longest)[None]),
        b.constant([0]),
        b.size("input_ids", 1),
        b.constant([1]),
        b.constant([1]),
    )
    places = b.op("Gather", b.weight("embeddings.position_embeddings.weight", longest, hidden), positions)
    x = b.layer_norm(b.op("Add", words, places), "embeddings.LayerNorm", hidden)
    wide = b.op("Unsqueeze", "attention_mask", b.constant([1, 2]))
    excluded = b.op("Sub", b.constant(1, np.float32), b.op("Cast", wide, to=TensorProto.FLOAT))
    bias = b.op("Mul", excluded, b.constant(np.finfo(np.float32).min, np.float32))
    for layer in range(2):
        name = f"encoder.layer.{layer}"
        b.scope = f"/encoder/layer.{layer}/attention"
        q, k, v = (
            b.heads(b.linear(x, f"{name}.attention.{part}", hidden, hidden), heads, hidden // heads)
            for part in ("query", "key", "value")
        )
        seen = attention(b, q, k, v, hidden // heads, lambda scores: b.op("Add", scores, bias))
        out = b.linear(b.merged(seen, hidden), f"{name}.attention.output", hidden, hidden)
        x = b.layer_norm(b.op("Add", out, x), f"{name}.attention.LayerNorm", hidden)
        b.scope = f"/encoder/layer.{layer}"
        up = b.linear(x, f"{name}.intermediate", hidden, 12)
        half = b.op("Erf", b.op("Div", up, b.constant(np.sqrt(2), np.float32)))
        gelu = b.op("Mul", b.op("Mul", up, b.op("Add", half, b.constant(1, np.float32))), b.constant(0.5, np.float32))
        x = b.layer_norm(b.op("Add", b.linear(gelu, f"{name}.output", 12, hidden), x), f"{name}.LayerNorm", hidden)
    b.scope = "/pooler"
    first = b.op("Gather", x, b.constant(0), axis=1)
    b.op(
        "Tanh",
        b.op("Gemm", first, b.weight("pooler.weight", hidden, hidden), b.weight("pooler.bias", hidden), transB=1),
    )
    b.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"], name="/Identity"))
    b.nodes[-2].output[0] = "pooler_output"
    data = []
    for batch, length in ((2, 5), (1, 7)):
        mask = np.ones((batch, length), np.int64)
        mask[0, length - 2 :] = 0
        data.append({"input_ids": b.random.integers(0, vocab, (batch, length)), "attention_mask": mask})
    ids = [tensor(name, TensorProto.INT64, "batch_size", "sequence_length") for name in ("input_ids", "attention_mask")]
    write(
        "bert",
        b,
        ids,
        [
            tensor("last_hidden_state", TensorProto.FLOAT, "batch_size", "sequence_length", hidden),
            tensor("pooler_output", TensorProto.FLOAT, "batch_size", hidden),
        ],
        data,
        14,
    )


def gpt2():
    hidden, heads, vocab, longest = 8, 2, 13, 16
    b = Builder(2)
    length = b.size("input_ids", 1)
    table = b.weight("wte.weight", vocab, hidden)
    flat = b.op("Range", b.constant(0), b.op("Squeeze", length, b.constant([0])), b.constant(1))
    x = b.op("Add", b.op("Gather", table, "input_ids"), b.op("Gather", b.weight("wpe.weight", longest, hidden), flat))
    mask = b.buffer("h.0.attn.bias", np.tril(np.ones((1, 1, longest, longest), bool)))
    for layer in range(2):
        name, b.scope = f"h.{layer}", f"/h.{layer}/attn"
        y = b.layer_norm(x, f"{name}.ln_1", hidden)
        rows = b.op(
            "Gemm",
            b.reshape(y, -1, b.size(y, 2)),
            b.weight(f"{name}.attn.c_attn.weight", hidden, 3 * hidden),
            b.weight(f"{name}.attn.c_attn.bias", 3 * hidden),
        )
        joined = b.reshape(rows, b.size(y, 0), b.size(y, 1), 3 * hidden)
        parts = b.op("Split", joined, b.constant([hidden] * 3), results=3, axis=2)
        q, k, v = (b.heads(part, heads, hidden // heads) for part in parts)

        def causal(scores):
            cut = b.op("Slice", mask, b.constant([0]), b.size(scores, 2), b.constant([2]))
            cut = b.op("Slice", cut, b.constant([0]), b.size(scores, 3), b.constant([3]))
            return b.op("Where", cut, scores, b.constant(-10000, np.float32))

        out = b.linear(
            b.merged(attention(b, q, k, v, hidden // heads, causal), hidden), f"{name}.attn.c_proj", hidden, hidden
        )
        x = b.op("Add", out, x)
        b.scope = f"/h.{layer}/mlp"
        up = b.linear(b.layer_norm(x, f"{name}.ln_2", hidden), f"{name}.mlp.c_fc", hidden, 16)
        cube = b.op("Mul", b.op("Pow", up, b.constant(3, np.float32)), b.constant(0.044715, np.float32))
        inner = b.op("Tanh", b.op("Mul", b.op("Add", up, cube), b.constant(np.sqrt(2 / np.pi), np.float32)))
        gelu = b.op("Mul", b.op("Mul", up, b.constant(0.5, np.float32)), b.op("Add", inner, b.constant(1, np.float32)))
        x = b.op("Add", x, b.linear(gelu, f"{name}.mlp.c_proj", 16, hidden))
    b.scope = ""
    b.op("MatMul", b.layer_norm(x, "ln_f", hidden), b.op("Transpose", table, perm=[1, 0]))
    b.nodes[-1].output[0] = "logits"
    data = [{"input_ids": b.random.integers(0, vocab, shape)} for shape in ((2, 6), (1, 3))]
    write(
        "gpt2",
        b,
        [tensor("input_ids", TensorProto.INT64, "batch", "sequence")],
        [tensor("logits", TensorProto.FLOAT, "batch", "sequence", vocab)],
        data,
        13,
    )


def vit():
    hidden, heads, patches = 8, 2, 4
    b = Builder(3)
    image = b.op(
        "Conv",
        "pixel_values",
        b.weight("patch.weight", hidden, 3, 4, 4),
        b.weight("patch.bias", hidden),
        kernel_shape=[4, 4],
        strides=[4, 4],
    )
    tokens = b.op("Transpose", b.reshape(image, b.size(image, 0), hidden, -1), perm=[0, 2, 1])
    # The form of expand(batch, -1, -1): sizes of -1 are replaced by 1.
    wanted = b.op("Concat", b.size("pixel_values", 0), b.constant([-1]), b.constant([-1]), axis=0)
    ones = b.op("ConstantOfShape", b.constant([3]), value=numpy_helper.from_array(np.array([1], np.int64)))
    is_open = b.op("Equal", wanted, b.op("Mul", ones, b.constant(-1)))
    first = b.op("Expand", b.weight("cls_token", 1, 1, hidden), b.op("Where", is_open, ones, wanted))
    x = b.op("Add", b.op("Concat", first, tokens, axis=1), b.weight("position_embeddings", 1, patches + 1, hidden))
    b.scope = "/layer.0"
    y = b.op(
        "LayerNormalization", x, b.weight("norm.weight", hidden), b.weight("norm.bias", hidden), axis=-1, epsilon=1e-6
    )
    q, k, v = (b.heads(b.linear(y, f"layer.0.{part}", hidden, hidden), heads, hidden // heads) for part in "qkv")
    x = b.op("Add", b.merged(attention(b, q, k, v, hidden // heads, lambda scores: scores), hidden), x)
    b.scope = "/classifier"
    b.op(
        "Gemm",
        b.op("Gather", x, b.constant(0), axis=1),
        b.weight("classifier.weight", 5, hidden),
        b.weight("classifier.bias", 5),
        transB=1,
    )
    b.nodes[-1].output[0] = "logits"
    data = [{"pixel_values": b.random.normal(size=(n, 3, 8, 8)).astype(np.float32)} for n in (2, 3)]
    write(
        "vit",
        b,
        [tensor("pixel_values", TensorProto.FLOAT, "batch", 3, 8, 8)],
        [tensor("logits", TensorProto.FLOAT, "batch", 5)],
        data,
        17,
    )


def llama():
    """Opset 23: the ops of attention, a function of the model, and a branch with a constant condition."""
    hidden, heads, kv, size, vocab = 16, 4, 2, 4, 9
    b = Builder(4)
    x = b.op("Gather", b.weight("embed_tokens.weight", vocab, hidden), "input_ids")
    b.scope = "/layers.0/self_attn"
    y = b.op("RMSNormalization", x, b.weight("input_layernorm.weight", hidden), epsilon=1e-5)
    q, k, v = (
        b.op("MatMul", y, b.weight(f"self_attn.{part}_proj.weight", hidden, rows))
        for part, rows in (("q", heads * size), ("k", kv * size), ("v", kv * size))
    )
    angles = np.arange(16)[:, None] * 10000.0 ** (-np.arange(size // 2) / (size // 2))
    cos, sin = b.buffer("cos_cache", np.cos(angles).astype(np.float32)), b.buffer(
        "sin_cache", np.sin(angles).astype(np.float32)
    )
    q = b.op("RotaryEmbedding", q, cos, sin, "position_ids", num_heads=heads)
    k = b.op("RotaryEmbedding", k, cos, sin, "position_ids", num_heads=kv)
    y = b.op("Attention", q, k, v, is_causal=1, q_num_heads=heads, kv_num_heads=kv)
    x = b.op("Add", x, b.op("MatMul", y, b.weight("self_attn.o_proj.weight", heads * size, hidden)))
    b.scope = "/layers.0/mlp"
    gate, up = (b.op("MatMul", x, b.weight(f"mlp.{part}_proj.weight", hidden, 24)) for part in ("gate", "up"))
    x = b.op(
        "Add",
        x,
        b.op(
            "MatMul", b.op("SwiGlu", gate, up, domain="local", alpha=1.0), b.weight("mlp.down_proj.weight", 24, hidden)
        ),
    )
    body = [
        helper.make_node("Constant", [], ["scale"], name="scale"),
        helper.make_node("Mul", ["gate", "scale"], ["scaled"], name="scaled"),
        helper.make_node("Sigmoid", ["scaled"], ["open"], name="open"),
        helper.make_node("Mul", ["gate", "open"], ["silu"], name="silu"),
        helper.make_node("Mul", ["silu", "up"], ["y"], name="product"),
    ]
    reference = helper.make_attribute_ref("value_float", onnx.AttributeProto.FLOAT)
    reference.ref_attr_name = "alpha"
    body[0].attribute.append(reference)
    function = helper.make_function(
        "local", "SwiGlu", ["gate", "up"], ["y"], body, [helper.make_opsetid("", 23)], ["alpha"]
    )
    b.scope = "/head"

    def branch(name, node):
        return helper.make_graph([node], name, [], [tensor(name, TensorProto.FLOAT, None)])

    norm = b.weight("norm.weight", hidden)
    chosen = b.op(
        "If",
        b.constant(True, bool),
        then_branch=branch("then", helper.make_node("RMSNormalization", [x, norm], ["then"], name="norm")),
        else_branch=branch("else", helper.make_node("Identity", [x], ["else"], name="same")),
    )
    b.op("MatMul", chosen, b.weight("lm_head.weight", hidden, vocab))
    b.nodes[-1].output[0] = "logits"
    data = [
        {"input_ids": b.random.integers(0, vocab, (n, t)), "position_ids": np.tile(np.arange(t), (n, 1))}
        for n, t in ((2, 5), (1, 3))
    ]
    write(
        "llama",
        b,
        [tensor(name, TensorProto.INT64, "batch", "length") for name in ("input_ids", "position_ids")],
        [tensor("logits", TensorProto.FLOAT, "batch", "length", vocab)],
        data,
        23,
        [function],
        ["local"],
    )


def decoder():
    """A decoder with a cache, as optimum exports it: shapes of the cache as chains of Shape and Gather, rotary
    embeddings, a mask of bools, key and value heads that are repeated. `prompts.json` has the tokens that ONNX Runtime
    chooses after each prompt alone."""
    hidden, heads, kv, size, vocab, layers = 16, 4, 2, 4, 23, 2
    b = Builder(8)
    int64, real = TensorProto.INT64, TensorProto.FLOAT
    x = b.op("Gather", b.weight("embed_tokens.weight", vocab, hidden, scale=1), "input_ids")
    past = b.op("Gather", b.op("Shape", "past_key_values.0.key"), b.constant(2))
    length = b.op("Gather", b.op("Shape", "input_ids"), b.constant(1))
    total = b.op("Add", past, length)
    rows = b.op("Unsqueeze", b.op("Range", past, total, b.constant(1)), b.constant([1]))
    columns = b.op("Range", b.constant(0), total, b.constant(1))
    causal = b.op("LessOrEqual", columns, rows)
    given = b.op("Cast", b.op("Unsqueeze", "attention_mask", b.constant([1, 2])), to=TensorProto.BOOL)
    seen = b.op("And", given, causal)
    bias = b.op("Where", seen, b.constant(0, np.float32), b.constant(-1e30, np.float32))
    inverse = b.buffer("inv_freq", (100.0 ** (-np.arange(size // 2) / (size // 2))).astype(np.float32))
    angles = b.op("Mul", b.op("Unsqueeze", b.op("Cast", "position_ids", to=real), b.constant([1, 3])), inverse)
    both = b.op("Concat", angles, angles, axis=-1)
    cos, sin = b.op("Cos", both), b.op("Sin", both)

    def rotated(y):
        low = b.op("Slice", y, b.constant([0]), b.constant([size // 2]), b.constant([3]))
        high = b.op("Slice", y, b.constant([size // 2]), b.constant([size]), b.constant([3]))
        turned = b.op("Concat", b.op("Neg", high), low, axis=-1)
        return b.op("Add", b.op("Mul", y, cos), b.op("Mul", turned, sin))

    def repeated(y):
        sizes = b.op("Concat", b.size(y, 0), b.constant([kv, heads // kv]), b.size(y, 2), b.constant([size]), axis=0)
        wide = b.op("Expand", b.op("Unsqueeze", y, b.constant([2])), sizes)
        return b.reshape(wide, b.size(y, 0), heads, b.size(y, 2), size)

    for i in range(layers):
        b.scope = f"/layers.{i}/self_attn"
        y = b.layer_norm(x, f"layers.{i}.norm", hidden)
        q, k, v = (
            b.heads(b.op("MatMul", y, b.weight(f"layers.{i}.{part}.weight", hidden, count * size)), count, size)
            for part, count in (("q", heads), ("k", kv), ("v", kv))
        )
        q, k = rotated(q), rotated(k)
        k, v = (
            b.op("Concat", f"past_key_values.{i}.{part}", y, axis=2) for part, y in (("key", k), ("value", v))
        )
        b.nodes[-2].output[0], b.nodes[-1].output[0] = k, v = f"present.{i}.key", f"present.{i}.value"
        scores = b.op("MatMul", q, b.op("Transpose", repeated(k), perm=[0, 1, 3, 2]))
        weights = b.op("Softmax", b.op("Add", b.op("Mul", scores, b.constant(0.5, np.float32)), bias), axis=-1)
        y = b.merged(b.op("MatMul", weights, repeated(v)), hidden)
        x = b.op("Add", x, b.op("MatMul", y, b.weight(f"layers.{i}.o.weight", hidden, hidden)))
    b.op("MatMul", x, b.weight("lm_head.weight", hidden, vocab, scale=1))
    b.nodes[-1].output[0] = "logits"

    names = [f"past_key_values.{i}.{part}" for i in range(layers) for part in ("key", "value")]
    inputs = [
        tensor("input_ids", int64, "batch_size", "sequence_length"),
        tensor("attention_mask", int64, "batch_size", "past_sequence_length + 1"),
        tensor("position_ids", int64, "batch_size", "sequence_length"),
        *[tensor(name, real, "batch_size", kv, "past_sequence_length", size) for name in names],
    ]
    outputs = [
        tensor("logits", real, "batch_size", "sequence_length", vocab),
        *[tensor(n.replace("past_key_values", "present"), real, "batch_size", kv, "past_sequence_length + 1", size) for n in names],
    ]
    graph = helper.make_graph(b.nodes, "decoder", inputs, outputs, b.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    folder = os.path.join(FOLDER, "decoder")
    os.makedirs(folder, exist_ok=True)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    prompts, texts = [[3, 14, 15, 9, 2, 6], [5, 3]], []
    for prompt in prompts:
        cache, ids, text = [np.zeros((1, kv, 0, size), np.float32)] * len(names), list(prompt), []
        for _ in range(12):
            seen = cache[0].shape[2]
            results = run(
                model,
                {
                    "input_ids": np.array([ids]),
                    "attention_mask": np.ones((1, seen + len(ids)), np.int64),
                    "position_ids": np.arange(seen, seen + len(ids))[None],
                    **dict(zip(names, cache)),
                },
            )
            cache, ids = results[1:], [int(results[0][0, -1].argmax())]
            text += ids
        texts.append(text)
    write_json(folder, "prompts.json", {"prompts": prompts, "texts": texts})
    write_json(folder, "config.json", {"model_type": "llama", "max_position_embeddings": 32, "eos_token_id": None})


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w") as file:
        json.dump(value, file)
        file.write("\n")


def external():
    b = Builder(5)
    b.linear("x", "fc", 4, 3)
    b.nodes[-1].output[0] = "y"
    data = [{"x": b.random.normal(size=(n, 4)).astype(np.float32)} for n in (2, 3)]
    write(
        "external",
        b,
        [tensor("x", TensorProto.FLOAT, "n", 4)],
        [tensor("y", TensorProto.FLOAT, "n", 3)],
        data,
        17,
        external=True,
    )


if __name__ == "__main__":
    for case in (bert, gpt2, vit, llama, external, decoder):
        case()
