#!/usr/bin/env python3
"""Writes programs of tests/import with an older torch, for each version of the schema that Lathe reads.

  for v in 2.9.0 2.10.0 2.11.0; do pip install torch==$v safetensors && python3 make_version_programs.py; done

The folders are those of make_programs.py, below torch_2_9, torch_2_10 and torch_2_11.
"""

import os

import torch

import make_programs
from make_programs import Llama, Mlp, ids, sentence, write


def main():
    release = "_".join(torch.__version__.split(".")[:2])
    make_programs.FOLDER = os.path.join(make_programs.FOLDER, f"torch_{release}")
    torch.manual_seed(1)
    write("mlp", Mlp().eval(), [{"x": torch.randn(n, 4)} for n in (2, 3)], {"x": {0: torch.export.Dim("n", max=64)}})
    runs = [{"input_ids": ids(n, t, 9), "position_ids": torch.arange(t).repeat(n, 1)} for n, t in ((2, 5), (3, 4))]
    llama = Llama(size=8, heads=2, kv=1).eval().double()
    write("llama", llama, runs, sentence("input_ids", "position_ids"))


if __name__ == "__main__":
    main()
