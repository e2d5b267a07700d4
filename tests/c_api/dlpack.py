"""Passes arrays between NumPy and the C API by DLPack: dlpack.py LIBLATHE_C"""
import ctypes as c
import gc
import sys
import weakref

import numpy as np

lib = c.CDLL(sys.argv[1])
lib.lathe_last_error.restype = c.c_char_p
capsules = c.pythonapi
capsules.PyCapsule_GetPointer.restype = c.c_void_p
capsules.PyCapsule_GetPointer.argtypes = (c.py_object, c.c_char_p)
capsules.PyCapsule_SetName.argtypes = (c.py_object, c.c_char_p)
capsules.PyCapsule_New.restype = c.py_object
capsules.PyCapsule_New.argtypes = (c.c_void_p, c.c_char_p, c.c_void_p)


def call(name, *arguments):
    if getattr(lib, "lathe_" + name)(*arguments):
        raise RuntimeError(lib.lathe_last_error(0).decode())


def made(name, *arguments):
    handle = c.c_void_p()
    call(name, *arguments, c.byref(handle))
    return handle


def given(values):
    """A DLManagedTensor* that the library owns."""
    capsule = values.__dlpack__()
    pointer = c.c_void_p(capsules.PyCapsule_GetPointer(capsule, b"dltensor"))
    capsules.PyCapsule_SetName(capsule, b"used_dltensor")
    return pointer


class Taken:
    """A DLManagedTensor* of the library, for np.from_dlpack."""

    def __init__(self, pointer):
        self.capsule = capsules.PyCapsule_New(pointer, b"dltensor", None)

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def address(values):
    return values.__array_interface__["data"][0]


graph = made("graph_parse", b"""graph @g(input %x: f32[n, 3], parameter %w: f32[3]) {
  %y = mul %x, %w
  output "y" %y
}""", None)
executable = made("compile", graph, None)
parameters = made("executable_parameters", executable)
run = made("call_create", executable)

x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
alive = weakref.ref(x)
call("call_set_input_dlpack", run, b"x", given(x))
call("parameters_set_dlpack", parameters, b"w", given(w))
w[2] = 10  # the store has the memory of NumPy
x[0, 0] = 7
call("call_run", run)
y = np.from_dlpack(Taken(made("call_take_output_dlpack", run, b"y")))
assert y.tolist() == [[7, 1, 20], [3, 4, 50]], y
shared = np.from_dlpack(Taken(made("parameters_share_dlpack", parameters, b"w")))
assert address(shared) == address(w)
call("call_run", run)  # has memory of its own for y
assert y.tolist() == [[7, 1, 20], [3, 4, 50]], y

# Strides: every other column, backwards.
wide = np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::-2]
del x
call("call_set_input_dlpack", run, b"x", given(wide))
gc.collect()
assert alive() is None, "the library kept an array that was replaced"
call("call_run", run)
y = np.from_dlpack(Taken(made("call_take_output_dlpack", run, b"y")))
assert y.tolist() == (wide * w).tolist(), y

# An error returns the array, and results live longer than all handles.
odd = np.zeros(3, np.complex64)
count = sys.getrefcount(odd)
try:
    call("parameters_set_dlpack", parameters, b"w", given(odd))
    raise AssertionError("no error")
except RuntimeError as error:
    assert "[argument_dtype]" in str(error), error
assert sys.getrefcount(odd) == count
call("call_destroy", run)
call("parameters_destroy", parameters)
call("executable_destroy", executable)
call("graph_destroy", graph)
assert y.tolist() == (wide * shared).tolist()
print("DLPack: NumPy and Lathe share arrays")
