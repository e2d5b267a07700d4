#!/usr/bin/env python3
"""Runs the node tests of PyPI's onnx package (1.22.0 has 1,765 with data) through the program node_tests.

  pip install onnx==1.22.0 && ninja -C build node_tests
  python3 tests/node_tests/node_tests.py build/tests/node_tests/node_tests [--compiled] [--list wrong,error] [FILTER]

--data names another folder of tests, such as those of Debian's package libonnx-testdata (932 node tests of onnx 1.12):

  python3 tests/node_tests/node_tests.py build/tests/node_tests/node_tests --data /usr/share/libonnx-testdata/data/node

Prints how many tests pass, fail by an error that names what is missing, give wrong numbers, or fail in another way,
and the ops that are missing most often.
"""

import argparse
import collections
import os
import re
import subprocess
import sys


def node_folder():
    import onnx.backend.test

    return os.path.join(os.path.dirname(onnx.backend.test.__file__), "data", "node")


def folders(root, pattern):
    names = sorted(name for name in os.listdir(root) if re.search(pattern, name))
    return [os.path.join(root, name) for name in names]


def run(program, arguments, paths):
    """Yields one line per folder. A crash of the program counts for the folder that it was in."""
    while paths:
        process = subprocess.run(
            [program, *arguments], input="\n".join(paths) + "\n", text=True, stdout=subprocess.PIPE
        )
        lines = process.stdout.splitlines()
        yield from lines
        if len(lines) == len(paths):
            return
        yield f"{os.path.basename(paths[len(lines)])} crash exit status {process.returncode}"
        paths = paths[len(lines) + 1 :]


def missing_parts(reason):
    """Returns the ops and attributes that an error lists."""
    return re.findall(r"the (?:op|attribute) [\w.]+(?: of \w+)?", reason) or [re.sub(r"\S*\.onnx\S*", "", reason)[:90]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--data", help="folder of the tests (default: that of the onnx package)")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--list", default="wrong,error,crash", help="kinds of results to print one by one")
    options = parser.parse_args()
    counts, parts = collections.Counter(), collections.Counter()
    for line in run(options.program, ["--compiled"] if options.compiled else [], folders(options.data or node_folder(), options.filter)):
        name, kind, *rest = line.split(" ", 2)
        counts[kind] += 1
        reason = rest[0] if rest else ""
        if kind in options.list.split(","):
            print(name, kind, reason)
        if kind == "missing":
            parts.update(missing_parts(reason))
    for part, count in parts.most_common(40):
        print(f"{count:5} {part}")
    print(", ".join(f"{count} {kind}" for kind, count in counts.most_common()))
    return 1 if counts["wrong"] or counts["error"] or counts["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
