"""Trains the graph of curve.lathe from Python, with ctypes and NumPy alone.

    train.py LIBLATHE_C CURVE.lathe
"""
import ctypes as c
import sys

import numpy as np

lib = c.CDLL(sys.argv[1])
lib.lathe_last_error.restype = c.c_char_p
F32 = 1  # LATHE_F32


def call(name, *arguments):
    if getattr(lib, "lathe_" + name)(*arguments):
        raise RuntimeError(lib.lathe_last_error(0).decode())


def made(name, *arguments):
    """Calls a function that creates a handle, its last argument."""
    handle = c.c_void_p()
    call(name, *arguments, c.byref(handle))
    return handle


def array(values):
    """An array as the arguments that describe it: dtype, rank, shape, strides (NULL: row-major), data."""
    return F32, values.ndim, (c.c_int64 * values.ndim)(*values.shape), None, c.c_void_p(values.ctypes.data)


x = ((2 * np.arange(32, dtype=np.float32) + 1) / np.float32(32) - 1).reshape(32, 1)
y = x * x
bias = (np.arange(16, dtype=np.float32) - 8) / np.float32(8)

graph = made("graph_parse", open(sys.argv[2], "rb").read(), sys.argv[2].encode())
step = made("graph_training_step", graph, b"loss", b"adamw", (c.c_char_p * 2)(b"lr", b"weight_decay"),
            (c.c_double * 2)(0.02, 0), c.c_size_t(2))
weights = made("parameters_create")
for name in (b"W_hidden", b"W_out"):
    call("parameters_init", weights, graph, name, b"xavier_uniform", c.c_double(1), c.c_double(0), c.c_uint64(7),
         None, None, c.c_size_t(0))
call("parameters_set", weights, b"b_hidden", *array(bias))
call("parameters_init_states", weights, step, c.c_uint64(7), None, None, c.c_size_t(0))
options = made("options_create")
call("options_set_parameters", options, weights)
training = made("call_create", made("compile", step, options))
evaluation = made("call_create", made("compile", graph, options))

results = {name: np.zeros((), np.float32) for name in ("loss", "grad_norm", "learning_rate")}
results["curve"] = np.zeros((32, 1), np.float32)  # each run writes its results there
for run in (training, evaluation):
    call("call_set_input", run, b"x", *array(x))
    call("call_set_input", run, b"y", *array(y))
    for name in results if run is training else ("curve", "loss"):
        call("call_set_output", run, name.encode(), *array(results[name]))
for i in range(300):
    call("call_run", training)
    if i % 100 == 0:
        print(f"step {i}: loss {results['loss']:.9g}")
call("call_run", evaluation)
for i in range(0, 32, 8):
    print(f"y({x[i, 0]:g}) = {results['curve'][i, 0]:.9g}")
