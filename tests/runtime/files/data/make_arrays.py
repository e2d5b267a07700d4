#!/usr/bin/env python3
"""Writes arrays.npz and compressed.npz, which NpzFile reads in tests.

pip install numpy && python3 tests/runtime/files/data/make_arrays.py
"""

import os

import numpy as np

FOLDER = os.path.dirname(os.path.abspath(__file__))


def arrays():
    random = np.random.default_rng(1)
    return {
        "steps": np.arange(1000, dtype=np.int64) % 97,  # long matches, in a block with codes of its own
        "noise": random.integers(0, 256, 700).astype(np.uint8),  # stored as it is
        "row": np.array([1.5, -2], np.float32),  # a block with the fixed codes
        "columns": np.asfortranarray(np.arange(24, dtype=np.float64).reshape(2, 3, 4)),
        "flags": np.array([[True, False], [False, True]]),
        "number": np.array(7, np.int32),
        "none": np.zeros((0, 3), np.float16),
        "pairs": np.array([1 + 2j, 3 - 4j], np.complex64),
        "layers/0.weight": np.array([-1, 2], np.int8),
    }


np.savez(os.path.join(FOLDER, "arrays.npz"), **arrays())
np.savez_compressed(os.path.join(FOLDER, "compressed.npz"), **arrays())
