#!/usr/bin/env python3
"""Writes the JSON in programs of tests/import without spaces, to keep the files small. Run it after the make scripts.

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


def compact(path):
    with zipfile.ZipFile(path) as archive:
        files = [(info.filename, archive.read(info)) for info in archive.infolist()]
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_STORED) as archive:
        for name, content in files:
            if name.endswith(".json"):
                content = json.dumps(json.loads(content), separators=(",", ":"), ensure_ascii=False).encode()
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
