#!/usr/bin/env python3
"""Writes models of tests/import in which each output is one op, at a late-bound size n.

pip install onnx==1.22.0 onnxruntime && python3 tests/import/data/make_op_models.py
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from make_models import Builder, tensor, write

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
ELEMENT = {
    "float32": FLOAT,
    "int64": INT64,
    "bool": BOOL,
    "uint8": TensorProto.UINT8,
    "int32": TensorProto.INT32,
    "int8": TensorProto.INT8,
}


def case(name, inputs, ops, opset, seed, domains=()):
    """inputs: {name: (sizes, make)}, where "n" is late-bound.
    ops: (kind, operands, attributes[, results[, unused results[, the result to compare, by default the last]]])."""
    b = Builder(seed)
    outputs = []
    for i, (kind, operands, attributes, *rest) in enumerate(ops):
        operands = [
            b.buffer(f"c{i}_{k}", operand) if isinstance(operand, np.ndarray) else operand
            for k, operand in enumerate(operands)
        ]
        results = b.op(kind, *operands, results=rest[0] if rest else 1, **attributes)
        for unused in rest[1] if len(rest) > 1 else ():
            b.nodes[-1].output[unused] = ""
        outputs.append(results if isinstance(results, str) else results[rest[2] if len(rest) > 2 else -1])
    for i, output in enumerate(outputs):
        b.nodes.append(helper.make_node("Identity", [output], [f"{i:02}_{ops[i][0]}"], name=f"out_{i}"))
    data = []
    for n in (3, 4):
        data.append(
            {
                key: make(b.random, [n if size == "n" else size for size in sizes])
                for key, (sizes, make) in inputs.items()
            }
        )
    infos = [tensor(key, ELEMENT[str(data[0][key].dtype)], *sizes) for key, (sizes, _) in inputs.items()]
    results = [helper.make_empty_tensor_value_info(f"{i:02}_{op[0]}") for i, op in enumerate(ops)]
    write(name, b, infos, results, data, opset, domains=domains)


def normal(random, sizes):
    return random.normal(0, 1.5, sizes).astype(np.float32)


def positive(random, sizes):
    return random.uniform(1.1, 3, sizes).astype(np.float32)


def small(random, sizes):
    return random.uniform(-0.9, 0.9, sizes).astype(np.float32)


def whole(random, sizes):
    return random.integers(-9, 10, sizes)


def truth(random, sizes):
    return random.integers(0, 2, sizes).astype(bool)


def byte(random, sizes):
    return random.integers(0, 256, sizes).astype(np.uint8)


def ints(*values):
    return np.array(values, np.int64)


def real(value):
    return np.array(value, np.float32)


def elementwise():
    x = [
        "Abs",
        "Neg",
        "Sign",
        "Exp",
        "Floor",
        "Ceil",
        "Round",
        "Sin",
        "Cos",
        "Tan",
        "Sinh",
        "Cosh",
        "Asinh",
        "Tanh",
        "Erf",
        "Relu",
        "LeakyRelu",
        "Elu",
        "Celu",
        "Selu",
        "Sigmoid",
        "HardSigmoid",
        "HardSwish",
        "Softplus",
        "Softsign",
        "Mish",
        "ThresholdedRelu",
        "Softmax",
        "LogSoftmax",
        "Hardmax",
        "Identity",
        "IsNaN",
        "IsInf",
    ]
    ops = [(kind, ["x"], {}) for kind in x]
    ops += [(kind, ["p"], {}) for kind in ("Log", "Sqrt", "Reciprocal", "Acosh")] + [("Atanh", ["s"], {})]
    ops += [
        (kind, ["x", "y"], {})
        for kind in ("Add", "Sub", "Mul", "Div", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "PRelu")
    ]
    ops += [(kind, ["x", "y", "p"], {}) for kind in ("Sum", "Mean", "Max", "Min")]
    ops += [
        (kind, ["i", "j"], {})
        for kind in ("Add", "Mul", "Div", "Mod", "Equal", "Less", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
    ]
    ops += [("Mod", ["i", "j"], {"fmod": 1}), ("Mod", ["x", "y"], {"fmod": 1}), ("BitwiseNot", ["i"], {})]
    ops += [("Pow", ["p", "y"], {}), ("Pow", ["x", ints(2)], {}), ("Pow", ["i", ints(3)], {})]
    ops += [(kind, ["a", "b"], {}) for kind in ("And", "Or", "Xor")] + [
        ("Not", ["a"], {}),
        ("Where", ["a", "x", "y"], {}),
    ]
    ops += [("BitShift", ["u", np.array([1, 2, 3, 9], np.uint8)], {"direction": way}) for way in ("LEFT", "RIGHT")]
    ops += [
        ("Clip", ["x", real(-0.5), real(0.7)], {}),
        ("Clip", ["x", "", real(0.7)], {}),
        ("Gelu", ["x"], {}),
        ("Gelu", ["x"], {"approximate": "tanh"}),
        ("Shrink", ["x"], {"lambd": 0.6, "bias": 0.2}),
        ("Cast", ["x"], {"to": INT64}),
        ("Cast", ["i"], {"to": BOOL}),
        ("Cast", ["i"], {"to": TensorProto.INT8}),
        ("CastLike", ["i", "x"], {}),
        ("IsInf", [np.array([np.inf, -np.inf, 0, np.nan], np.float32)], {"detect_negative": 0}),
    ]
    inputs = {
        "x": (["n", 4], normal),
        "y": ([4], normal),
        "p": (["n", 4], positive),
        "s": (["n", 4], small),
        "i": (["n", 4], whole),
        "j": ([4], lambda random, sizes: random.choice([-3, -2, 2, 5], sizes)),
        "a": (["n", 4], truth),
        "b": ([4], truth),
        "u": (["n", 4], byte),
    }
    case("elementwise", inputs, ops, 20, 11)


def layout():
    ops = [
        ("Reshape", ["x", ints(0, -1)], {}),
        ("Reshape", ["x", ints(-1)], {}),
        ("Transpose", ["x"], {}),
        ("Transpose", ["x"], {"perm": [1, 0, 2]}),
        ("Unsqueeze", ["x", ints(-1, 0)], {}),
        ("Squeeze", ["one", ints(1)], {}),
        ("Flatten", ["x"], {"axis": 2}),
        ("Expand", ["one", ints(2, 1, 3, 1)], {}),
        ("Tile", ["x", ints(2, 1, 3)], {}),
        ("Slice", ["x", ints(1, 0), ints(3, 9), ints(1, 2), ints(1, 2)], {}),
        ("Slice", ["x", ints(-1), ints(-10), ints(1), ints(-2)], {}),
        ("Slice", ["x", ints(1), ints(2**62)], {}),
        ("Slice", ["x", ints(0), ints(-1)], {}),
        ("Concat", ["x", "x"], {"axis": 0}),
        ("Split", ["x"], {"axis": 1, "num_outputs": 2}, 2),
        ("Split", ["x", ints(1, 2)], {"axis": -1}, 2),
        ("Pad", ["x", ints(1, 0, 0, 2, 0, 1)], {}),
        ("Pad", ["x", ints(0, 1, 0, -1), real(2), ints(1, 2)], {}),
        ("Pad", ["x", ints(0, 2, 1, 0, 1, 2)], {"mode": "reflect"}),
        ("Pad", ["x", ints(0, 2, 1, 0, 1, 2)], {"mode": "edge"}),
        ("Gather", ["x", ints([0, -1], [2, 1])], {"axis": 1}),
        ("Gather", ["x", ints(-2).reshape(())], {"axis": 2}),
        ("Gather", ["x", "rows"], {}),
        ("GatherElements", ["x", "at"], {"axis": 1}),
        ("GatherElements", ["x", ints([[0, -1]])], {"axis": 2}),
        ("GatherND", ["x", ints([1, -1], [0, 2])], {}),
        ("ScatterND", ["x", ints([1], [-3]), np.ones((2, 4, 3), np.float32)], {}),
        ("ScatterElements", ["x", "at", "x"], {"axis": 1}),
        ("ScatterElements", ["x", ints([[0], [-1]]), np.ones((1, 2, 1), np.float32)], {"axis": 2, "reduction": "add"}),
        ("OneHot", ["rows", ints(3), np.array([2, 5], np.float32)], {}),
        ("Trilu", ["x", ints(1)], {}),
        ("Trilu", ["x"], {"upper": 0}),
        ("CumSum", ["x", ints(1)], {"exclusive": 1, "reverse": 1}),
        ("TopK", ["x", ints(2)], {"axis": 1}, 2),
        ("TopK", ["x", ints(2)], {"axis": 1, "largest": 0}, 2),
        ("ArgMax", ["x"], {"axis": 1}),
        ("ArgMin", ["x"], {"axis": 2, "keepdims": 0}),
        ("ArgMax", ["rows"], {"select_last_index": 1}),
        ("Shape", ["x"], {"start": 1}),
        ("Size", ["x"], {}),
        ("ConstantOfShape", [ints(2, 3)], {"value": numpy_helper.from_array(ints(7))}),
        ("Range", [real(1), real(4), real(0.5)], {}),
        ("Range", [ints(9).reshape(()), ints(-2).reshape(()), ints(-3).reshape(())], {}),
        ("EyeLike", ["square"], {"k": 1}),
        ("ReverseSequence", ["x", ints(1, 3, 2, 3)], {"time_axis": 0, "batch_axis": 1}),
        ("DepthToSpace", ["image"], {"blocksize": 2}),
        ("DepthToSpace", ["image"], {"blocksize": 2, "mode": "CRD"}),
        ("SpaceToDepth", ["image"], {"blocksize": 2}),
    ]
    kinds = (
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceL1",
        "ReduceL2",
        "ReduceSumSquare",
        "ReduceLogSumExp",
    )
    for kind in kinds:
        ops += [(kind, ["x", ints(0, -1)], {}), (kind, ["x"], {"keepdims": 0}), (kind, ["x", ints(1)], {"keepdims": 0})]
    ops += [
        ("ReduceSum", ["x"], {"noop_with_empty_axes": 1}),
        ("ReduceLogSum", ["positive", ints(1)], {}),
        ("ReduceSum", ["rows"], {}),
        ("ReduceMax", ["rows"], {}),
    ]
    inputs = {
        "x": (["n", 4, 3], normal),
        "one": ([2, 1, 3, 1], normal),
        "square": (["n", 3], normal),
        "rows": (["n"], lambda random, sizes: random.integers(-3, 3, sizes)),
        "positive": (["n", 4], positive),
        "at": (["n", 4, 3], lambda random, sizes: np.argsort(random.random(sizes), axis=1)),
        "image": (["n", 4, 2, 6], normal),
    }
    case("layout", inputs, ops, 18, 12)


def networks():
    weight, kernel = (
        np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)
        for seed, shape in ((1, (6, 5)), (2, (4, 2, 3, 3)))
    )
    scale, bias = np.linspace(0.5, 2, 6).astype(np.float32), np.linspace(-1, 1, 6).astype(np.float32)
    per4, up = scale[:4], np.random.default_rng(3).normal(0, 1, (4, 3, 2, 3)).astype(np.float32)
    rounded = b.op("Div", b.op("Sub", height, b.constant([1])), b.constant([12]))
    values["rounded"] = b.op("Expand", b.constant([2]), rounded)
    pool = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    rounded = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}
    full = {"dilations": [1, 2], "strides": [1, 1], "group": 2, "pads": [1, 2, 0, 1]}
    ops = [
        ("MatMul", ["x", weight], {}),
        ("MatMul", ["x", "x6"], {}),
        ("Gemm", ["m", weight], {"alpha": 0.5}),
        ("Gemm", ["m", weight.T.copy(), bias[:5]], {"transB": 1}),
        ("Gemm", ["m", weight.T.copy(), bias[:5].reshape(1, 5)], {"transB": 1, "beta": 2.0, "alpha": 0.5}),
        ("Einsum", ["x", "x"], {"equation": "bij, bkj -> bik"}),
        ("Einsum", ["x"], {"equation": "...j->..."}),
        ("LayerNormalization", ["x", scale, bias], {}),
        ("LayerNormalization", ["x", scale], {"epsilon": 1e-2}),
        ("LayerNormalization", ["x", np.outer(per4, scale).astype(np.float32)], {"axis": 1}, 3),
        ("GroupNormalization", ["image", per4, bias[:4]], {"num_groups": 2}),
        ("InstanceNormalization", ["image", per4, bias[:4]], {}),
        ("BatchNormalization", ["image", per4, bias[:4], bias[:4], per4], {}),
        ("LRN", ["image"], {"size": 3, "alpha": 0.1}),
        ("LpNormalization", ["x"], {"p": 1}),
        ("MeanVarianceNormalization", ["image"], {}),
        ("Conv", ["image", kernel, bias[:4]], full),
        ("Conv", ["image", kernel], {"group": 2, "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ("Conv", ["image", kernel], {"group": 2, "auto_pad": "SAME_LOWER"}),
        ("ConvTranspose", ["image", up, bias[:3]], {"strides": [2, 2], "pads": [0, 1, 1, 0], "output_padding": [1, 0]}),
        ("MaxPool", ["image"], pool),
        ("MaxPool", ["image"], rounded),
        ("MaxPool", ["image"], {"kernel_shape": [2, 2], "dilations": [2, 1]}),
        ("AveragePool", ["image"], pool),
        ("AveragePool", ["image"], {**pool, "count_include_pad": 1}),
        ("AveragePool", ["image"], {**rounded, "pads": [1, 1, 1, 1]}),
        ("LpPool", ["image"], pool),
        ("GlobalAveragePool", ["image"], {}),
        ("GlobalMaxPool", ["image"], {}),
        ("Resize", ["image", "", real([1, 1, 2, 0.5])], {"mode": "linear"}),
        (
            "Resize",
            ["image", "", real([1, 1, 1.6, 2])],
            {"mode": "cubic", "coordinate_transformation_mode": "align_corners"},
        ),
        (
            "Resize",
            ["image", "", "", ints(7, 3)],
            {
                "axes": [2, 3],
                "mode": "nearest",
                "nearest_mode": "floor",
                "coordinate_transformation_mode": "asymmetric",
            },
        ),
        ("Dropout", ["x"], {}),
        ("SoftmaxCrossEntropyLoss", ["m", "labels"], {"ignore_index": 1}),
        ("NegativeLogLikelihoodLoss", ["m", "labels", scale], {}),
        ("QuantizeLinear", ["image", per4, np.array([1, 2, 3, 4], np.uint8)], {"axis": 1}),
        ("DequantizeLinear", ["bytes", real(0.5), np.array(7, np.uint8)], {}),
        ("DynamicQuantizeLinear", ["x"], {}, 3),
        ("MatMulInteger", ["bytes", np.arange(12, dtype=np.uint8).reshape(6, 2), np.array(3, np.uint8)], {}),
    ]
    inputs = {
        "x": (["n", 4, 6], normal),
        "x6": (["n", 6, 2], normal),
        "m": (["n", 6], normal),
        "image": (["n", 4, 5, 6], normal),
        "bytes": (["n", 6], byte),
        "labels": (["n"], lambda random, sizes: random.integers(0, 6, sizes)),
    }
    case("networks", inputs, ops, 21, 13)


def contrib():
    scale, bias = np.linspace(0.5, 2, 6).astype(np.float32), np.linspace(-1, 1, 6).astype(np.float32)
    local = {"domain": "com.microsoft"}
    ops = [
        ("FastGelu", ["x", bias], local),
        ("BiasGelu", ["x", bias], local),
        ("Gelu", ["x"], local),
        ("QuickGelu", ["x"], {**local, "alpha": 1.5}),
        ("SkipLayerNormalization", ["x", "y", scale, bias, bias], {**local, "epsilon": 1e-5}),
        ("SkipSimplifiedLayerNormalization", ["x", "y", scale], {**local, "epsilon": 1e-5}, 4, (1, 2)),
    ]
    case("contrib", {"x": (["n", 2, 6], normal), "y": (["n", 2, 6], normal)}, ops, 18, 14, ["com.microsoft"])


def random_weights(seed, *shape):
    return np.random.default_rng(seed).normal(0, 0.5, shape).astype(np.float32)


def recurrent():
    """x has n steps, a batch of 2 and 3 columns; there are 2 hidden units."""

    def weights(gates, directions):
        return [
            random_weights(gates, directions, gates * 2, 3),
            random_weights(gates + 10, directions, gates * 2, 2),
            random_weights(gates + 20, directions, gates * 4),
        ]

    def first(seed, directions):
        return random_weights(seed, directions, 2, 2)

    both = {"hidden_size": 2, "direction": "bidirectional"}
    bounded = {"activations": ["HardSigmoid", "Softsign"], "activation_alpha": [0.3], "activation_beta": [0.4]}
    peepholes = ["x", *weights(4, 2), "lengths", first(1, 2), first(2, 2), random_weights(3, 2, 6)]
    ops = [
        ("LSTM", ["x", *weights(4, 1)], {"hidden_size": 2}),
        ("LSTM", ["x", *weights(4, 1)[:2]], {"hidden_size": 2, "direction": "reverse", "clip": 0.4}, 3),
        ("LSTM", peepholes, both),
        ("LSTM", peepholes, both, 2),
        ("LSTM", peepholes, {**both, "input_forget": 1}, 3),
        ("GRU", ["x", *weights(3, 1)], {"hidden_size": 2}),
        ("GRU", ["x", *weights(3, 1)], {"hidden_size": 2, "linear_before_reset": 1}),
        ("GRU", ["x", *weights(3, 2), "lengths", first(4, 2)], {**both, "linear_before_reset": 1}, 2),
        ("GRU", ["x", *weights(3, 1)], {"hidden_size": 2, **bounded}),
        ("RNN", ["x", *weights(1, 1)], {"hidden_size": 2, "direction": "reverse"}),
        ("RNN", ["x", *weights(1, 2), "lengths"], {**both, "activations": ["Relu", "Tanh"]}, 2),
        ("RNN", ["x", *weights(1, 1)], {"hidden_size": 2, "activations": ["LeakyRelu"], "activation_alpha": [0.2]}),
    ]
    inputs = {"x": (["n", 2, 3], normal), "lengths": ([2], lambda random, sizes: np.array([3, 1], np.int32))}
    case("recurrent", inputs, ops, 21, 15)


def vision():
    kernel = np.random.default_rng(5).integers(-9, 9, (4, 2, 3, 2)).astype(np.int8)
    cube = random_weights(6, 2, 3, 2, 1, 3)
    samples = {"output_height": 2, "output_width": 3, "sampling_ratio": 2, "spatial_scale": 0.5}
    rois = np.array([[0, 1, 6, 8], [-2, 3, 12, 5], [4, 4, 4.5, 5]], np.float32)
    ops = [
        ("GridSample", ["image", "grid"], {"mode": mode, "padding_mode": padding, "align_corners": corners})
        for mode in ("linear", "nearest", "cubic")
        for padding in ("zeros", "border", "reflection")
        for corners in ((0, 1) if mode == "linear" else (0,))
    ]
    ops += [
        ("GridSample", ["cubes", "grid3"], {}),
        ("RoiAlign", ["image", rois, ints(0, 2, 1)], samples),
        (
            "RoiAlign",
            ["image", rois, ints(0, 2, 1)],
            {**samples, "mode": "max", "coordinate_transformation_mode": "output_half_pixel"},
        ),
        ("MaxPool", ["image"], {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 1, 0, 1]}, 2),
        ("MaxPool", ["image"], {"kernel_shape": [2, 2], "strides": [2, 2], "storage_order": 1}, 2),
        ("MaxUnpool", ["small", "places"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("MaxUnpool", ["small", "places", ints(1, 1, 5, 6)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Col2Im", ["columns", ints(4, 5), ints(2, 3)], {"strides": [2, 1], "pads": [1, 0, 1, 0]}),
        ("ConvTranspose", ["cubes", cube], {"strides": [2, 1, 2], "pads": [1, 0, 1, 0, 0, 1]}),
        ("ConvTranspose", ["image", kernel[:, :, :, :1].astype(np.float32)], {"output_shape": [12, 18], "strides": [2, 3]}),
        (
            "QLinearConv",
            ["bytes", real(0.1), np.array(120, np.uint8), kernel, np.linspace(0.01, 0.1, 4).astype(np.float32),
             np.zeros(4, np.int8), real(0.37), np.array(100, np.uint8), np.arange(4, dtype=np.int32) * 100],
            {"group": 2, "pads": [1, 1, 1, 1]},
        ),
    ]
    inputs = {
        "image": (["n", 4, 5, 6], normal),
        "grid": (["n", 2, 3, 2], normal),
        "cubes": (["n", 2, 3, 4, 2], normal),
        "grid3": (["n", 2, 1, 2, 3], normal),
        "small": ([1, 1, 2, 3], positive),
        "places": ([1, 1, 2, 3], lambda random, sizes: ints(0, 3, 5, 13, 14, 23).reshape(sizes)),
        "columns": (["n", 12, 9], normal),
        "bytes": (["n", 4, 5, 6], byte),
    }
    case("vision", inputs, ops, 21, 16)


def signals():
    grams = {"min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "mode": "TFIDF", "ngram_counts": [0, 2]}
    pool = {"ngram_indexes": [0, 2, 1, 3], "pool_int64s": [1, 3, 1, 2, 3, 3], "weights": [0.5, 1.0, 2.0, 3.0]}
    ops = [(kind, ["s"], {}) for kind in ("Acos", "Asin")] + [("Atan", ["x"], {})]
    ops += [
        ("DFT", ["pairs", "", ints(1).reshape(())], {}),
        ("DFT", ["pairs", ints(8).reshape(()), ints(1).reshape(())], {"inverse": 1}),
        ("DFT", ["single", ints(3).reshape(()), ints(1).reshape(())], {"onesided": 1}),
        ("STFT", ["single", ints(2).reshape(()), np.hanning(4).astype(np.float32)], {}),
        ("HannWindow", [ints(7).reshape(())], {}),
        ("HammingWindow", [ints(7).reshape(())], {"periodic": 0}),
        ("BlackmanWindow", [ints(6).reshape(())], {}),
        ("Det", ["square"], {}),
        ("TfIdfVectorizer", ["tokens"], {**grams, **pool}),
        ("Trilu", ["x", "k"], {}),
        ("Trilu", ["x", "k"], {"upper": 0}),
        ("Pad", ["x", ints(1, 0, 0, 2), "value"], {}),
        ("OneHot", ["tokens", real(3), np.array([2, 5], np.float32)], {}),
        ("ScatterElements", ["x", ints([0, 2], [1, 1], [0, 0]), np.full((3, 2), 0.3, np.float32)],
         {"axis": 1, "reduction": "max"}),
        ("ScatterElements", ["whole", ints([0, -1, 1]), ints([5, -5, 7])], {"axis": 0, "reduction": "min"}),
        ("ScatterND", ["x", ints([1], [0], [1]), np.arange(12, dtype=np.float32).reshape(3, 4)], {"reduction": "mul"}),
    ]
    inputs = {
        "x": (["n", 4], normal),
        "s": (["n", 4], small),
        "pairs": (["n", 6, 2], normal),
        "single": (["n", 9, 1], normal),
        "square": (["n", 3, 3], normal),
        "tokens": (["n", 6], lambda random, sizes: random.integers(1, 4, sizes)),
        "whole": (["n", 3], whole),
        "k": ([], lambda random, sizes: np.array(random.integers(-1, 2))),
        "value": ([], lambda random, sizes: np.array(random.normal(), np.float32)),
    }
    case("signals", inputs, ops, 20, 17)


def newest():
    """Ops of opsets that ONNX Runtime does not have yet, and those of the preview domains."""
    heads = {"q_num_heads": 4, "kv_num_heads": 2}
    score = helper.make_graph(
        [helper.make_node("Mul", ["scores", "factor"], ["changed"])],
        "score",
        [tensor("scores", FLOAT, None, None, None, None)],
        [tensor("changed", FLOAT, None, None, None, None)],
        [numpy_helper.from_array(real(0.3), "factor")],
    )
    training = {"domain": "ai.onnx.preview.training"}
    state = random_weights(7, 2, 2, 3, 3)
    optimized = ["rate", "step", "x", "g", "g2"]
    ops = [
        ("LinearAttention", ["q", "k", "k"], {**heads, "update_rule": "linear"}, 2, (), 0),
        ("LinearAttention", ["q", "k", "k", state, "decay"], {**heads, "update_rule": "gated", "scale": 0.7}, 2),
        ("LinearAttention", ["q", "k", "k", "", "", "beta"], {**heads, "update_rule": "delta"}, 2, (), 0),
        ("LinearAttention", ["q", "k", "k", state, "decay", "beta"], heads, 2, (), 0),
        ("CausalConvWithState", ["signal", random_weights(8, 3, 1, 4), "", random_weights(9, 2, 3, 3)],
         {"activation": "silu"}, 2, (), 0),
        ("CausalConvWithState", ["signal", random_weights(8, 3, 1, 4), random_weights(1, 3)], {}, 2),
        ("TensorScatter", ["cache", "update", ints(1, 0)], {}),
        ("TensorScatter", ["cache", "update", ints(4, 3)], {"mode": "circular"}),
        ("TensorScatter", ["cache", "update"], {}),
        ("CumProd", ["k", ints(1).reshape(())], {}),
        ("CumProd", ["k", ints(-1).reshape(())], {"exclusive": 1, "reverse": 1}),
        ("DeformConv", ["image", random_weights(2, 4, 1, 2, 2), "offset", random_weights(3, 4), "mask"],
         {"pads": [0, 1, 1, 0], "strides": [1, 2], "group": 2, "offset_group": 1}),
        ("AffineGrid", ["theta", ints(2, 1, 3, 4)], {}),
        ("AffineGrid", ["theta", ints(2, 1, 3, 4)], {"align_corners": 1}),
        ("BitCast", ["bytes"], {"to": TensorProto.INT8}),
        ("FlexAttention", ["q4", "k4", "k4"], {"domain": "ai.onnx.preview", "score_mod": score}),
        ("Momentum", optimized, {**training, "mode": "nesterov", "alpha": 0.9, "beta": 0.8, "norm_coefficient": 0.1}, 2),
        ("Adagrad", optimized, {**training, "decay_factor": 0.1}, 2, (), 0),
        ("Adam", ["rate", "step", "x", "g", "g", "x", "x", "g", "g2", "g2"],
         {**training, "norm_coefficient_post": 0.1}, 6, (), 0),
    ]
    inputs = {
        "q": ([2, "n", 12], normal),
        "k": ([2, "n", 6], normal),
        "decay": ([2, "n", 6], lambda random, sizes: -positive(random, sizes)),
        "beta": ([2, "n", 1], small),
        "signal": ([2, 3, "n"], normal),
        "cache": ([2, 3, 5, "n"], normal),
        "update": ([2, 3, 2, "n"], normal),
        "image": ([2, 2, "n", 4], normal),
        "offset": ([2, 8, "n", 2], small),
        "mask": ([2, 4, "n", 2], small),
        "theta": ([2, 2, 3], normal),
        "bytes": (["n"], byte),
        "q4": ([2, 4, "n", 3], normal),
        "k4": ([2, 2, "n", 3], normal),
        "rate": ([], lambda random, sizes: real(0.1)),
        "step": ([], lambda random, sizes: np.array(2)),
        "x": (["n"], normal),
        "g": (["n"], normal),
        "g2": (["n"], positive),
    }
    case("newest", inputs, ops, 27, 18, ["ai.onnx.preview", "ai.onnx.preview.training"])


def strides():
    """Windows over images of any height and width, and slices that count from the end by sizes."""
    b = Builder(19)
    x = b.op("Conv", "image", b.weight("stem", 4, 3, 3, 3), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x = b.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 1], pads=[1] * 4)
    x = b.op("Conv", x, b.weight("patch", 4, 4, 3, 2), kernel_shape=[3, 2], strides=[3, 2])
    height = b.size("image", 2)
    end = b.op("Concat", height, b.size("image", 3), axis=0)
    last = b.op("Slice", "image", b.op("Neg", height), height, b.constant([2]))
    tail = b.op("Slice", b.op("Concat", "image", "image", axis=2), b.op("Neg", height), b.constant([2**31]), b.constant([2]))
    up = b.op("ConvTranspose", "image", b.weight("kernel", 3, 1, 3, 3), kernel_shape=[3, 3], strides=[2, 2])
    sizes = b.op("Concat", b.size(x, 0), b.size(x, 1), height, b.size("image", 3), axis=0)
    near = b.op("Resize", x, "", "", sizes, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    linear = b.op("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
    twice = b.op("Resize", "image", "", b.buffer("scales", np.array([1, 1, 2, 3], np.float32)), mode="nearest", nearest_mode="round_prefer_floor")
    mean = b.op("GlobalAveragePool", x)
    filled = b.op("Resize", mean, "", "", sizes, mode="linear", coordinate_transformation_mode="half_pixel")
    values = {"windows": x, "size": end, "last": last, "tail": tail, "up": up, "near": near, "linear": linear}
    rounded = b.op("Div", b.op("Sub", height, b.constant([1])), b.constant([12]))
    values["rounded"] = b.op("Expand", b.constant([2]), rounded)
    pool = {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}
    values |= {"twice": twice, "filled": filled, "ceil": b.op("MaxPool", "image", **pool)}
    values |= {"ceil_padded": b.op("MaxPool", "image", **pool, pads=[1, 0, 1, 1]), "mean": b.op("AveragePool", "image", **pool)}
    for name, value in values.items():
        b.nodes.append(helper.make_node("Identity", [value], [name], name=f"out_{name}"))
    data = [{"image": normal(b.random, sizes)} for sizes in ([1, 3, 24, 8], [2, 3, 12, 20])]
    results = [helper.make_empty_tensor_value_info(name) for name in values]
    write("strides", b, [tensor("image", FLOAT, "n", 3, "height", "width")], results, data, 17)


if __name__ == "__main__":
    for make in (elementwise, layout, networks, contrib, recurrent, vision, signals, newest, strides):
        make()
