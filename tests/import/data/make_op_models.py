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
    """inputs: {name: (sizes, make)}, where "n" is late-bound; ops: (kind, operands, attributes[, results[, unused results]])."""
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
        outputs.append(results if isinstance(results, str) else results[-1])
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


if __name__ == "__main__":
    for make in (elementwise, layout, networks, contrib):
        make()
