#!/usr/bin/env python3
"""Exports Hugging Face models and compares ONNX Runtime with Lathe and with transformers, by hand.

  tests/onnx_runtime/check_models.py build/tools/lathe tests/hf/models/*

Each folder has model/, inputs.safetensors, and expected.safetensors with the float64 logits of transformers. Needs onnx,
onnxruntime, safetensors and numpy of PyPI. Prints, for opsets 18 and 23, the largest difference of the logits from those
of `lathe run`, relative to their largest element, and, with the attention mask as an input, that from transformers.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime
from safetensors.numpy import load_file, save_file

MOST = 2e-5  # the tolerance of f32 logits in tests/hf/cases.json


def ran(*words):
    subprocess.run([str(word) for word in words], check=True, stderr=subprocess.DEVNULL)


def logits_of(path, inputs):
    """Checks a model and runs it. Returns its first output."""
    onnx.checker.check_model(str(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    return session.run(None, {value.name: inputs[value.name] for value in session.get_inputs()})[0]


def error(got, wanted):
    return float(numpy.abs(got - wanted).max() / numpy.abs(wanted).max())


def check(lathe, folder, opset, scratch):
    """The errors against `lathe run`, and against transformers; None where there is no mask."""
    inputs, model = load_file(folder / "inputs.safetensors"), folder / "model"
    ran(lathe, "export", model, "-o", scratch / "plain.onnx", "--opset", opset)
    names = [value.name for value in onnx.load(scratch / "plain.onnx").graph.input]
    save_file({name: inputs[name] for name in names}, scratch / "inputs.safetensors")
    ran(lathe, "run", model, "--input", scratch / "inputs.safetensors", "-o", scratch / "outputs.safetensors")
    results = list(load_file(scratch / "outputs.safetensors").values())
    by_lathe = error(logits_of(scratch / "plain.onnx", inputs), results[0])
    expected = load_file(folder / "expected.safetensors")
    is_seq2seq = json.loads((model / "config.json").read_text()).get("is_encoder_decoder", False)
    if "logits" not in expected or is_seq2seq:
        return by_lathe, None
    mask = inputs.get("attention_mask")
    more = [name for name, given in (("mask", "attention_mask"), ("types", "token_type_ids"),
                                     ("positions", "position_ids")) if given in inputs]
    extra = ["--inputs", ",".join(more)] if more else []
    ran(lathe, "export", model, "-o", scratch / "masked.onnx", "--opset", opset, "--external-data", *extra)
    logits = logits_of(scratch / "masked.onnx", inputs)
    if mask is not None:
        logits = logits * mask[..., None]
    return by_lathe, error(logits, expected["logits"])


def main():
    wrong = 0
    for folder in map(pathlib.Path, sys.argv[2:]):
        for opset in (18, 23):
            with tempfile.TemporaryDirectory() as scratch:
                try:
                    errors = check(pathlib.Path(sys.argv[1]), folder, opset, pathlib.Path(scratch))
                except Exception as fault:  # of Lathe, the checker or the runtime
                    print(f"{folder.name:22} opset {opset}: {type(fault).__name__}: {str(fault)[:300]}")
                    wrong += 1
                    continue
            shown = ["none" if value is None else f"{value:.1e}" for value in errors]
            print(f"{folder.name:22} opset {opset}: from lathe {shown[0]}, from transformers {shown[1]}")
            wrong += any(value is not None and not value <= MOST for value in errors)
    print(f"{wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
