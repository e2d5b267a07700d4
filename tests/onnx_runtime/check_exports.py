#!/usr/bin/env python3
"""Compares exported ONNX files with onnx's checker and ONNX Runtime, by hand.

  ninja -C build export_samples && build/tests/onnx_runtime/export_samples samples
  tests/onnx_runtime/check_exports.py samples

Each folder below the given one has model.onnx, arguments.safetensors and outputs.safetensors, and a line about.txt.
Needs onnx, onnxruntime, safetensors, ml_dtypes and numpy of PyPI. Prints the outcomes, and fails if one is wrong.
ONNX Runtime lacks kernels for some dtypes of some ops; those samples are run by the reference of the onnx package.
"""

import collections
import pathlib
import sys

import ml_dtypes
import numpy
import onnx
import onnx.reference
import onnxruntime
import safetensors

DTYPES = {"F64": numpy.float64, "F32": numpy.float32, "F16": numpy.float16, "BF16": ml_dtypes.bfloat16,
          "I64": numpy.int64, "I32": numpy.int32, "I8": numpy.int8, "U8": numpy.uint8, "BOOL": numpy.bool_}
# Tolerances of one op, and of a golden graph with its gradients.
TOLERANCES = {"float64": 1e-6, "float32": 2e-6, "float16": 4e-3, "bfloat16": 2e-2}
GOLDEN_TOLERANCES = {"float64": 1e-6, "float32": 1e-4}


class NotRun(Exception):
    """Neither of the programs runs the model."""


def read(path):
    """The tensors of a file by name."""
    tensors = {}
    for name, info in safetensors.deserialize(path.read_bytes()):
        values = numpy.frombuffer(bytes(info["data"]), DTYPES[info["dtype"]])
        tensors[name] = values.reshape(info["shape"])
    return tensors


def run(model, arguments):
    """The outputs, and the name of the program that computed them."""
    named = {value.name for value in model.graph.input}
    arguments = {name: value for name, value in arguments.items() if name in named}
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        if any(value.dtype == ml_dtypes.bfloat16 for value in arguments.values()):
            raise NotImplementedError("bf16 arguments")
        return session.run(None, arguments), "ONNX Runtime"
    except Exception as error:  # its exceptions have no common class
        text = str(error)
        if "NOT_IMPLEMENTED" not in text and "not implemented" not in text and "Type Error" not in text and \
           "bf16" not in text and "bfloat16" not in text and "INVALID_GRAPH" not in text and \
           "ort_value_tensor_slicer" not in text:  # a Scan of no elements
            raise
    try:
        return onnx.reference.ReferenceEvaluator(model).run(None, arguments), "onnx.reference"
    except Exception as error:  # such as its convolution of no elements
        raise NotRun(str(error)) from error


def error_of(got, wanted):
    """The largest difference, relative to the larger of 1 and the value; infinite for other types."""
    if got.dtype != wanted.dtype or got.shape != wanted.shape:
        return f"{got.dtype}{list(got.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    if got.size == 0:
        return 0.0
    a, b = got.astype(numpy.float64), wanted.astype(numpy.float64)
    same = (a == b) | (numpy.isnan(a) & numpy.isnan(b))
    if not numpy.array_equal(numpy.isnan(a), numpy.isnan(b)):
        return "other NaNs"
    with numpy.errstate(invalid="ignore"):
        distance = numpy.where(same, 0, numpy.abs(a - b) / numpy.maximum(1, numpy.abs(b)))
    return float(distance.max())


def check(folder):
    """The program that ran the model, and the error; a text if something is wrong."""
    path = folder / "model.onnx"
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(str(path))
    results, program = run(model, read(folder / "arguments.safetensors"))
    outputs = read(folder / "outputs.safetensors")
    is_golden = (folder / "about.txt").read_text().startswith("golden")
    tolerances = GOLDEN_TOLERANCES if is_golden else TOLERANCES
    worst = 0.0
    for value, got in zip(model.graph.output, results):
        wanted = outputs[value.name]
        error = error_of(numpy.asarray(got), wanted)
        if isinstance(error, str) or error > tolerances.get(str(wanted.dtype), 0):
            return program, f"{value.name}: {error}"
        worst = max(worst, error)
    return program, worst


def main():
    counts, wrong = collections.Counter(), 0
    for about in sorted(pathlib.Path(sys.argv[1]).glob("**/about.txt")):
        try:
            program, error = check(about.parent)
        except NotRun as fault:
            program, error = "no program", 0.0
            print(f"not run: {about.read_text().strip()}: {str(fault)[:100]}")
        except Exception as fault:  # a file that is not valid, or an error of the runtime
            program, error = "", f"{type(fault).__name__}: {str(fault)[:300]}"
        if isinstance(error, str):
            wrong += 1
            print(f"{about.parent.name} {about.read_text().strip()}\n    {program} {error}")
        else:
            counts[program] += 1
            if len(sys.argv) > 2 or about.read_text().startswith("golden"):
                print(f"{about.read_text().strip()}: {error:.1e} by {program}")
    print("equal: " + ", ".join(f"{count} by {program}" for program, count in counts.items()), f"{wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
