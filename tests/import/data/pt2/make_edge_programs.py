#!/usr/bin/env python3
"""Writes programs of tests/import whose operands are the values where ops have cases of their own: limits, equal
elements, infinities, integers that overflow, and tensors without dims.

pip install torch==2.15.0 safetensors && python3 tests/import/data/pt2/make_edge_programs.py
"""

import torch
from torch import nn
from torch.nn import functional as F

from make_aten_programs import NAN, by, shorten
from make_op_programs import INF, Ops
from make_programs import DYNAMIC, write


class Ties(nn.Module):
    """Ops of a parameter at the places where their gradients jump, and of its rows, which have equal elements."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([[0.0, 1, -1, 2.5, 3, -3], [2, 2, 2, 2, 2, 2], [6, 1, -20, 1, -0.5, 0]]))

    def forward(self, x):
        w, half = self.w, torch.tensor(0.5)
        ops = {
            "relu6": F.relu6(w),
            "hardtanh": F.hardtanh(w, -0.5, 2.5),
            "hardswish": F.hardswish(w),
            "leaky_relu": F.leaky_relu(w, 0.2),
            "prelu": F.prelu(w, half.reshape(1)),
            "elu": F.elu(w, 2.0) + F.celu(w, 0.5) + F.selu(w),
            "softplus": F.softplus(w, 2.0, 2.0),
            "clamp": w.clamp(-1, 2.5) + w.clamp(min=0.0) + w.clamp(max=2.0),
            "max": w.max(1).values + w.min(1, keepdim=True).values.squeeze(1),
            "median": w.median() + w.nanmedian(),
            "std": w.std(1) + torch.std_mean(w, 1, correction=0)[0],
            "norm": w.norm(p=0.5, dim=1) + torch.linalg.vector_norm(w[1:2], -1),
            "odd": torch.asinh(w) + torch.special.i1(w * 0.1) + torch.special.i1e(w),
            "lgamma": torch.lgamma(w[0, 1:5:2]) + torch.mvlgamma(w[1, :2] + 2, 2),
            "digamma": torch.digamma(w[0, 3:5]),
            "atan2": torch.atan2(w, w.flip(1)),
            "quotient": torch.div(w, 0.3, rounding_mode="floor") + torch.div(w, 0.3, rounding_mode="trunc"),
            "cumprod": w.cumprod(1),
            "cross_entropy": F.binary_cross_entropy((w > 0).double() * (w * 0 + 1), (w > 1).double(), reduction="none"),
            "windows": F.adaptive_max_pool2d(w.reshape(1, 1, 3, 6), (2, 4)).sum(2),
            "margins": F.margin_ranking_loss(w, w.flip(1), torch.ones_like(w)) + F.hinge_embedding_loss(w, -torch.ones_like(w)),
        }
        return {name: (y.sum() + 0.5) * x for name, y in ops.items()}


def ties():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(5)
    write("ties", Ties(), [{"x": torch.randn(2)} for _ in range(2)])
    torch.set_default_dtype(torch.float32)


def edges():
    x, xy, i, ij, b = by("x"), by("x", "y"), by("i"), by("i", "j"), by("b")
    scalar = lambda function: x(lambda x: function(x[0, 0]))
    ops = [
        ("threshold", x(lambda x: F.threshold(x, 0.5, -3.0))),
        ("sign", x(torch.sign)),
        ("root", x(lambda x: x**0.5)),
        ("floor_divide", xy(torch.floor_divide)),
        ("remainder", xy(torch.remainder)),
        ("fmod", xy(torch.fmod)),
        ("remainder_f64", xy(lambda x, y: torch.remainder(x.double(), y.double()))),
        ("whole_quotient", x(lambda x: (torch.isfinite(x).double() // 0.1) + (torch.isfinite(x).double() % -0.1))),
        ("cumprod", x(lambda x: x.cumprod(1))),
        ("cumprod_int", i(lambda i: (i * 1000003).cumprod(1))),
        ("atan2", xy(torch.atan2)),
        ("slice_scatter", x(lambda x: x.slice_scatter(x[:, :0], 1, 3, 1))),
        ("lerp", xy(lambda x, y: torch.lerp(x, y, y))),
        ("power", ij(torch.pow)),
        ("power_of_bytes", i(lambda i: (i.to(torch.uint8) ** 5).int() + i.to(torch.int8) ** 3)),
        ("power_of_number", i(lambda i: 3 ** i.abs())),
        ("nan_to_num", i(torch.nan_to_num)),
        ("bool_sign", b(lambda b: torch.sign(b))),
        ("bool_square", b(torch.square)),
        ("bytes", i(lambda i: torch.addcmul(i.to(torch.uint8), i.to(torch.uint8), i.to(torch.uint8), value=3))),
        ("bytes_diff", i(lambda i: i.to(torch.uint8).diff())),
        ("bytes_any", i(lambda i: torch.stack([i.to(torch.uint8).any(), i.to(torch.uint8).all()]))),
        ("no_dims", b(lambda b: torch.any(b, dim=()) & torch.all(b, dim=()))),
        ("squeeze", b(lambda b: b.unsqueeze(1).squeeze(dim=()))),
        ("argmax", i(lambda i: torch.argmax(i, keepdim=True))),
        ("var", i(lambda i: torch.var(i.double(), 1, correction=1.5))),
        ("scalar_sort", scalar(lambda s: torch.stack([torch.sort(s)[0], torch.topk(s, 1)[0], torch.max(s, 0, True)[0]]))),
        ("scalar_sums", scalar(lambda s: torch.cumsum(s, 0) + s.transpose(0, -1) + s.flatten(0)[0])),
        ("scalar_softmax", scalar(lambda s: torch.softmax(s, 0) + torch.log_softmax(s, 0) + torch.argmin(s, 0))),
        ("no_elements", x(lambda x: x[:, :0].cummax(1).values.sum() + x[:, :0].diff().sum())),
        ("mean_windows", x(lambda x: F.avg_pool2d(x[None, :, :40].reshape(1, -1, 5, 8), (3, 2), 2, (1, 0), ceil_mode=True))),
        ("mean_elements", x(lambda x: F.avg_pool1d(x[:, None, :8], 3, 2, 1, ceil_mode=True, count_include_pad=False))),
        ("divided_windows", x(lambda x: F.avg_pool2d(x[None, :, :40].reshape(1, -1, 5, 8), 2, divisor_override=3))),
        ("batch_norm", x(lambda x: F.batch_norm(x[:, :4], None, None, training=True))),
        ("inverse_power", x(lambda x: torch.linalg.matrix_power(x[0, :4].reshape(2, 2), -2))),
        ("zeroed", x(lambda x: x.clone().zero_())),
    ]
    special = torch.tensor([1.0, 0.3, -7.5, INF, -INF, NAN, 0.0, -0.0])
    inputs = {
        "x": lambda n: torch.cat([torch.randn(n, 4) * 9, special.repeat_interleave(8).expand(n, -1)], 1),
        "y": lambda n: torch.cat([torch.randn(n, 4), special.repeat(8).expand(n, -1)], 1),
        "i": lambda n: torch.tensor([3, -3, 7, 1, -1, 2, 0]).expand(n, -1).contiguous(),
        "j": lambda n: torch.tensor([39, 41, 25, -2, -3, -1, 0]).expand(n, -1).contiguous(),
        "b": lambda n: torch.rand(n, 3) > 0.5,
    }
    torch.manual_seed(3)
    runs = [{key: make(2) for key, make in inputs.items()} for _ in range(2)]
    write("edges", Ops({f"{i:02}_{key}": op for i, (key, op) in enumerate(ops)}), runs, {"inputs": dict.fromkeys(inputs)}, gradients=False)


class Core(nn.Module):
    """Composite ops that run_decompositions() replaces by ops of their own."""

    def forward(self, x):
        spectrum = torch.fft.rfft2(x, norm="ortho")
        return {
            "spectrum": torch.view_as_real(spectrum),
            "image": torch.fft.irfft2(spectrum * 2, s=(6, 5), norm="forward"),
            "complex": torch.view_as_real(torch.fft.ifft(torch.fft.fft(x[:, 0]) * spectrum[:, 0, :1])),
            "norm": F.instance_norm(x, eps=0.1),
        }


def core():
    torch.manual_seed(6)
    runs = [{"x": torch.randn(n, 6, 5)} for n in (3, 2)]
    write("core", Core(), runs, {"x": {0: DYNAMIC}}, core=True, gradients=False)


if __name__ == "__main__":
    for make in (ties, edges, core):
        make()
        shorten(make.__name__)
