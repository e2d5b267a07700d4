#!/usr/bin/env python3
"""Writes programs of tests/import without what Lathe does not read, to keep the files small: spaces in the JSON, the
example inputs, the devices and strides of intermediate values, and the kinds of arguments. Run it after the make
scripts.

python3 tests/import/data/pt2/compact_programs.py

Programs whose text the tests change stay as torch.export writes them.
"""

import glob
import json
import os
import struct
import zipfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
CHANGED_BY_TESTS = {"aliases", "control", "counter", "encoder_core", "floats", "mlp", "sliced", "written"}


def without_layouts(json_value):
    """Returns a program without the devices and strides of its values, and the kinds of arguments."""
    if isinstance(json_value, list):
        return [without_layouts(each) for each in json_value]
    if not isinstance(json_value, dict):
        return json_value
    if "strides" in json_value and "dtype" in json_value:
        json_value = {key: value for key, value in json_value.items() if key != "device"} | {"strides": []}
    if "arg" in json_value and "kind" in json_value:
        json_value = {key: value for key, value in json_value.items() if key != "kind"}
    if json_value.get("is_hop_single_tensor_return", 0) is None:
        json_value = {key: value for key, value in json_value.items() if key != "is_hop_single_tensor_return"}
    return {key: without_layouts(value) for key, value in json_value.items()}


def compact(path):
    with zipfile.ZipFile(path) as archive:
        files = [(name, archive.read(name)) for name in archive.namelist() if "sample_inputs" not in name]
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_STORED) as archive:
        for name, content in files:
            if name.endswith(".json"):
                is_program = "/models/" in name
                parsed = json.loads(content)
                parsed = without_layouts(parsed) if is_program else parsed
                content = json.dumps(parsed, separators=(",", ":"), ensure_ascii=False).encode()
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            # The content starts at a multiple of 64 bytes, as PyTorch writes it.
            start = archive.fp.tell() + 30 + len(name.encode()) + 4
            info.extra = struct.pack("<HH", 0x4246, -start % 64) + b"Z" * (-start % 64)
            archive.writestr(info, content)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    for path in glob.glob(os.path.join(FOLDER, "**", "*.pt2"), recursive=True):
        if not CHANGED_BY_TESTS & set(os.path.relpath(path, FOLDER).split(os.sep)):
            compact(path)
