"""Writes convolution_cases.safetensors: results and gradients of torch.nn.functional in f64.

pip install torch safetensors
"""
import pathlib

import numpy
import torch
import torch.nn.functional as F
from safetensors.torch import save_file


def filled(shape, phase):
    count = int(numpy.prod(shape))
    # Equal elements too, for the ties of max_pool.
    return torch.tensor(numpy.round(numpy.sin(1.0 + phase + 1.7 * numpy.arange(count)), 1)).reshape(shape)


def coefficients(shape):
    count = int(numpy.prod(shape))
    return torch.tensor(numpy.cos(0.3 * numpy.arange(count))).reshape(shape)


def batch_norm(x, w, b):
    return F.batch_norm(x, None, None, w, b, training=True)


# name: (function of x and further operands, their shapes)
CASES = {
    "conv1d": (lambda x, w, b: F.conv1d(x, w, b, padding=2), [(2, 3, 9), (4, 3, 5), (4,)]),
    "conv1d strided": (lambda x, w: F.conv1d(x, w, stride=2, padding=1, dilation=2), [(1, 2, 11), (3, 2, 3)]),
    "conv1d causal depthwise": (lambda x, w, b: F.conv1d(x, w, b, padding=3, groups=4)[..., :-3], [(2, 4, 7), (4, 1, 4), (4,)]),
    "conv2d": (lambda x, w, b: F.conv2d(x, w, b, padding=1), [(2, 3, 6, 5), (4, 3, 3, 3), (4,)]),
    "conv2d strided": (lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(3, 0)), [(1, 2, 8, 6), (3, 2, 7, 2), (3,)]),
    "conv2d patches": (lambda x, w, b: F.conv2d(x, w, b, stride=4), [(1, 3, 8, 12), (5, 3, 4, 4), (5,)]),
    "conv2d grouped": (lambda x, w: F.conv2d(x, w, groups=2, dilation=2, padding=2), [(1, 4, 6, 6), (6, 2, 3, 3)]),
    "conv2d depthwise": (lambda x, w, b: F.conv2d(x, w, b, groups=3, stride=2, padding=1), [(2, 3, 7, 6), (3, 1, 3, 3), (3,)]),
    "conv3d": (lambda x, w: F.conv3d(x, w, padding=(1, 0, 1)), [(1, 2, 3, 4, 3), (2, 2, 2, 3, 2)]),
    "conv_transpose1d": (lambda x, w, b: F.conv_transpose1d(x, w, b, stride=3, padding=1, output_padding=2, dilation=2), [(2, 3, 4), (3, 2, 3), (2,)]),
    "conv_transpose2d": (lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, groups=2), [(1, 4, 3, 4), (4, 3, 4, 4), (6,)]),
    "conv_transpose3d": (lambda x, w, b: F.conv_transpose3d(x, w, b, stride=2, padding=1, groups=2, dilation=(1, 2, 1)), [(1, 4, 2, 3, 2), (4, 1, 2, 2, 3), (2,)]),
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2, 1), [(2, 2, 9)]),
    "max_pool2d": (lambda x: F.max_pool2d(x, (3, 2), 2, (1, 0)), [(1, 2, 7, 8)]),
    "max_pool2d of equal elements": (lambda x: F.max_pool2d(F.relu(x), 3, 2, 1, 1), [(1, 2, 7, 8)]),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 4, 3, 2), [(1, 2, 9)]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), [(1, 2, 7, 6)]),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (3, 1)), [(1, 2, 7, 5)]),
    "reflect": (lambda x: F.pad(x, (2, 1), "reflect"), [(2, 3, 6)]),
    "replicate": (lambda x: F.pad(x, (2, 3), "replicate"), [(2, 3, 6)]),
    "circular": (lambda x: F.pad(x, (2, 3), "circular"), [(2, 3, 6)]),
    "nearest": (lambda x: F.interpolate(x, size=(10, 4)), [(1, 2, 5, 6)]),
    "bilinear": (lambda x: F.interpolate(x, size=(10, 7), mode="bilinear"), [(1, 2, 5, 6)]),
    "bilinear with aligned corners": (lambda x: F.interpolate(x, size=(10, 4), mode="bilinear", align_corners=True), [(1, 2, 5, 6)]),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), [(2, 4, 3, 5), (4,), (4,)]),
    "batch_norm": (batch_norm, [(3, 4, 5), (4,), (4,)]),
}

results = {}
for name, (function, shapes) in CASES.items():
    operands = [filled(shape, k).requires_grad_() for k, shape in enumerate(shapes)]
    y = function(*operands)
    (y * coefficients(y.shape)).sum().backward()
    results[name + ".y"] = y.detach().contiguous()
    for k, operand in enumerate(operands):
        results[f"{name}.{k}"] = operand.grad.contiguous()
save_file(results, pathlib.Path(__file__).parent / "convolution_cases.safetensors")
