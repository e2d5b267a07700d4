#!/usr/bin/env python3
"""Writes programs of tests/import in which each output is one op, at a late-bound size n.

pip install torch==2.15.0 safetensors && python3 tests/import/data/pt2/make_op_programs.py
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from make_programs import DYNAMIC, write

INF = float("inf")


class Ops(nn.Module):
    """ops: {name: function of the inputs}; buffers are tensors of the functions."""

    def __init__(self, ops, **buffers):
        super().__init__()
        self.ops = ops
        for name, values in buffers.items():
            self.register_buffer(name, values)

    def forward(self, **inputs):
        return {name: op(self, **inputs) for name, op in self.ops.items()}


def case(name, ops, inputs, sizes=(4, 5), **buffers):
    """inputs: {name: function of n}; dim 0 of each input is n."""
    torch.manual_seed(3)
    runs = [{key: make(n) for key, make in inputs.items()} for n in sizes]
    dynamic = {key: {0: DYNAMIC} for key in inputs}
    tensors = {f"{i:02}_{key}": op for i, (key, op) in enumerate(ops)}
    write(name, Ops(tensors, **buffers), runs, {"inputs": dynamic}, gradients=False)


def unary(function):
    return lambda s, x, y, i, b: function(x)


def elementwise():
    x = lambda function: lambda s, x, y, i, b: function(x)
    i = lambda function: lambda s, x, y, i, b: function(i)
    xy = lambda function: lambda s, x, y, i, b: function(x, y)
    ops = [
        ("add_alpha", xy(lambda x, y: torch.add(x, y, alpha=2.5))),
        ("sub_int", i(lambda i: i - 3)),
        ("rsub", x(lambda x: 2 - x)),
        ("int_times_real", i(lambda i: i * 0.5)),
        ("int_plus_float", lambda s, x, y, i, b: i + x),
        ("bool_plus_bool", lambda s, x, y, i, b: b + b),
        ("bool_times_int", lambda s, x, y, i, b: b * 3),
        ("size_times", x(lambda x: x * x.shape[0])),
        ("half_of_size", x(lambda x: x + x.shape[0] / 2)),
        ("div_ints", i(lambda i: i / 4)),
        ("floor_div", i(lambda i: i // 4)),
        ("floor_div_real", x(lambda x: x // 0.4)),
        ("trunc_div", i(lambda i: torch.div(i, 4, rounding_mode="trunc"))),
        ("remainder", i(lambda i: i % -4)),
        ("remainder_real", x(lambda x: x % 0.7)),
        ("fmod", i(lambda i: torch.fmod(i, 4))),
        ("pow_2", x(lambda x: x**2)),
        ("pow_tensor", xy(lambda x, y: x.abs() ** y)),
        ("pow_of_number", x(lambda x: 2**x)),
        ("pow_int", i(lambda i: i**3)),
        ("maximum", xy(torch.maximum)),
        ("clamp", x(lambda x: x.clamp(-0.5, 1))),
        ("clamp_min", i(lambda i: i.clamp(min=-2))),
        ("clamp_tensor", xy(lambda x, y: torch.clamp(x, max=y))),
        ("addcmul", xy(lambda x, y: torch.addcmul(x, x, y, value=0.5))),
        ("lerp", xy(lambda x, y: torch.lerp(x, y, 0.3))),
        ("exp2", x(torch.exp2)),
        ("log_of_int", i(lambda i: torch.log(i.abs() + 1))),
        ("log2", x(lambda x: torch.log2(x.abs()))),
        ("tan", x(torch.tan)),
        ("asinh", x(torch.asinh)),
        ("round", x(torch.round)),
        ("isfinite", x(torch.isfinite)),
        ("nan_to_num", x(lambda x: torch.nan_to_num(torch.log(x - 0.5), nan=3.0))),
        ("gelu", x(F.gelu)),
        ("hardswish", x(F.hardswish)),
        ("hardsigmoid", x(F.hardsigmoid)),
        ("relu6", x(F.relu6)),
        ("leaky_relu", x(lambda x: F.leaky_relu(x, 0.2))),
        ("elu", x(lambda x: F.elu(x, 0.7))),
        ("selu", x(F.selu)),
        ("celu", x(lambda x: F.celu(x, 1.3))),
        ("mish", x(F.mish)),
        ("softplus", x(lambda x: F.softplus(x, 2, 1))),
        ("logsigmoid", x(F.logsigmoid)),
        ("softsign", x(F.softsign)),
        ("threshold", x(lambda x: F.threshold(x, 0.3, -1))),
        ("glu", x(lambda x: F.glu(x, 1))),
        ("softmax_of_int", i(lambda i: F.softmax(i, 0, dtype=torch.float32))),
        ("log_softmax", x(lambda x: F.log_softmax(x, -1))),
        ("eq_mixed", lambda s, x, y, i, b: i == x.round()),
        ("ge_size", i(lambda i: i >= i.shape[0])),
        ("logical", lambda s, x, y, i, b: torch.logical_xor(i, b) | ~b),
        ("bitwise", i(lambda i: (i & 6) ^ 3)),
        ("bitwise_not", i(torch.bitwise_not)),
        ("where_number", lambda s, x, y, i, b: torch.where(b, x, 2)),
        ("where_mixed", lambda s, x, y, i, b: torch.where(b, i, y)),
        ("masked_fill", lambda s, x, y, i, b: x.masked_fill(b, -INF)),
        ("dropout", x(lambda x: F.dropout(x, 0.4, training=False))),
        ("in_place", lambda s, x, y, i, b: F.relu(x + 1, inplace=True).mul_(2).sub_(i)),
    ]
    case(
        "elementwise",
        ops,
        {
            "x": lambda n: torch.randn(n, 6),
            "y": lambda n: torch.rand(n, 6),
            "i": lambda n: torch.randint(-9, 10, (n, 6)),
            "b": lambda n: torch.rand(n, 6) > 0.5,
        },
    )


def layout():
    x = lambda function: lambda s, x, i: function(x)
    ops = [
        ("view_inferred", x(lambda x: x.view(x.shape[0], -1))),
        ("view_sizes", x(lambda x: x.reshape(x.shape[0] * 2, 3, 4))),
        ("permute", x(lambda x: x.permute(2, 0, 1))),
        ("transpose", x(lambda x: x.transpose(-1, 0))),
        ("mT", x(lambda x: x.mT)),
        ("movedim", x(lambda x: x.movedim(2, 0))),
        ("squeeze", x(lambda x: x[:, :1].squeeze(1))),
        ("unsqueeze", x(lambda x: x.unsqueeze(-1))),
        ("expand", x(lambda x: x[:, :1].expand(-1, 5, -1))),
        ("flatten", x(lambda x: x.flatten(0, 1))),
        ("unflatten", x(lambda x: x.unflatten(1, (3, -1)))),
        ("slice_step", x(lambda x: x[:, 1:6:2])),
        ("slice_negative", x(lambda x: x[:, -3:, :-1])),
        ("slice_late", x(lambda x: x[1:])),
        ("slice_by_size", lambda s, x, i: s.table[: x.shape[0]]),
        ("select_last", x(lambda x: x[:, -1])),
        ("narrow", x(lambda x: x.narrow(1, 2, 3))),
        ("flip", x(lambda x: x.flip(0, 2))),
        ("roll", x(lambda x: x.roll((1, -2), (1, 2)))),
        ("tril", x(lambda x: x.tril(-1))),
        ("triu", x(lambda x: x.triu(1))),
        ("diagonal", x(lambda x: x.diagonal(0, 1, 2))),
        ("unfold", x(lambda x: x.unfold(1, 3, 1))),
        ("pixel_shuffle", x(lambda x: F.pixel_shuffle(x.reshape(-1, 4, 2, 3), 2))),
        ("cat", x(lambda x: torch.cat([x, x[:, :2]], 1))),
        ("cat_late", x(lambda x: torch.cat([x, x], 0))),
        ("stack", x(lambda x: torch.stack([x, -x], -1))),
        ("split", x(lambda x: x.split(4, 1)[1])),
        ("split_sizes", x(lambda x: x.split([1, 5], 1)[1])),
        ("chunk", x(lambda x: x.chunk(3, 1)[2])),
        ("unbind", x(lambda x: x.unbind(1)[3])),
        ("repeat", x(lambda x: x.repeat(2, 1, 1, 2))),
        ("repeat_interleave", x(lambda x: x.repeat_interleave(2, 1))),
        ("pad", x(lambda x: F.pad(x, (1, 2, 0, -1), value=0.5))),
        ("pad_reflect", x(lambda x: F.pad(x, (2, 1), mode="reflect"))),
        ("to_int", x(lambda x: x.to(torch.int32))),
        ("type_as", lambda s, x, i: i.type_as(x)),
        ("full", x(lambda x: torch.full((x.shape[0], 2), 3))),
        ("full_like", x(lambda x: torch.full_like(x, 2, dtype=torch.int64))),
        ("new_zeros", x(lambda x: x.new_zeros(x.shape[0] + 1, 2))),
        ("arange_late", x(lambda x: torch.arange(x.shape[0]))),
        ("arange_step", x(lambda x: torch.arange(1, 8, 3) + x.shape[0])),
        ("arange_real", x(lambda x: torch.arange(0, 1, 0.25) * x.shape[0])),
        ("eye", x(lambda x: torch.eye(3, 4) + x.shape[0])),
        ("linspace", x(lambda x: torch.linspace(-1, 1, 5) + x.shape[0])),
        ("embedding", lambda s, x, i: F.embedding(i, s.table)),
        ("index_one", lambda s, x, i: x[:, i[0]]),
        ("index_two", lambda s, x, i: x[:, i[0], i[0].clamp(max=3)]),
        ("index_apart", lambda s, x, i: x[i[0].clamp(max=3), :, i[0].clamp(max=3)]),
        ("index_broadcast", lambda s, x, i: x[torch.arange(x.shape[0])[:, None], i]),
        ("index_put", lambda s, x, i: x.index_put((i[:, 0].clamp(max=3),), torch.tensor(7.0), accumulate=True)),
        ("gather", lambda s, x, i: x[:, :, 0].gather(1, i)),
        ("gather_fewer", lambda s, x, i: x[:, :, 0].gather(1, i[:2])),
        ("scatter", lambda s, x, i: torch.zeros(x.shape[0], 6).scatter(1, i[:, :1], x[:, :1, 0])),
        ("scatter_value", lambda s, x, i: x[:, :, 0].scatter(1, i[:, :1], 5.0)),
        ("scatter_add", lambda s, x, i: torch.zeros(x.shape[0], 6).scatter_add(1, i, x[:, :3, 0])),
        ("index_select", lambda s, x, i: x.index_select(1, i[0])),
        ("slice_scatter", x(lambda x: torch.slice_scatter(x, x[:, :2], 1, 2, 4))),
        ("select_scatter", x(lambda x: torch.select_scatter(x, x[:, 0], 1, 3))),
        ("one_hot", lambda s, x, i: F.one_hot(i, 6)),
        ("sum_all", x(lambda x: x.sum())),
        ("sum_bool", x(lambda x: (x > 0).sum(1))),
        ("mean_dims", x(lambda x: x.mean((0, -1), keepdim=True))),
        ("mean_dtype", lambda s, x, i: i.mean(0, dtype=torch.float64)),
        ("amax", x(lambda x: x.amax((1, 2)))),
        ("max_dim", x(lambda x: x.max(1)[0] + x.max(1)[1])),
        ("argmax", x(lambda x: x.argmax(-1, keepdim=True))),
        ("argmin_all", x(lambda x: x.argmin())),
        ("prod", x(lambda x: x.prod(1))),
        ("any", x(lambda x: (x > 2).any(1))),
        ("all_int", lambda s, x, i: i.all()),
        ("var", x(lambda x: x.var(1))),
        ("std_dims", x(lambda x: x.std((1, 2), correction=0, keepdim=True))),
        ("var_mean", x(lambda x: torch.var_mean(x, 1, correction=1)[1])),
        ("logsumexp", x(lambda x: x.logsumexp((1, 2)))),
        ("vector_norm", x(lambda x: torch.linalg.vector_norm(x, 2, 1))),
        ("norm_1", x(lambda x: x.norm(1, -1))),
        ("cumsum", lambda s, x, i: i.cumsum(0)),
        ("topk", x(lambda x: x.topk(3, 1)[0])),
        ("sort", x(lambda x: x.sort(1, descending=True)[1])),
        ("argsort", x(lambda x: x.argsort(1))),
        ("size_products", x(lambda x: x.reshape(x.shape[0] * x.shape[1] // 2, -1))),
        ("diff", x(lambda x: x.diff(n=2, dim=1))),
        ("diff_joined", lambda s, x, i: i.diff(prepend=i[:, :1], append=i[:, 1:])),
        ("diff_bools", x(lambda x: (x > 0).diff(dim=0))),
    ]
    case(
        "layout",
        ops,
        {"x": lambda n: torch.randn(n, 6, 4), "i": lambda n: torch.randint(0, 6, (n, 3))},
        table=torch.randn(9, 3),
    )


def networks():
    x = lambda function: lambda s, x, m, t: function(x)
    ops = [
        ("linear_vector", x(lambda x: F.linear(x[0, 0, 0], torch.ones(3, 6)))),
        ("matmul_ints", lambda s, x, m, t: t[:, None] @ t[None]),
        ("mv", lambda s, x, m, t: m @ s.v),
        ("bmm", lambda s, x, m, t: torch.bmm(m[:, None], m[:, :, None])),
        ("addmm", lambda s, x, m, t: torch.addmm(s.v[:5], m, s.w, alpha=0.5, beta=2)),
        ("baddbmm", lambda s, x, m, t: torch.baddbmm(x[:, 0], x[:, 1].mT @ x[:, 0], x[:, 1].mT, beta=0.5)),
        ("einsum", lambda s, x, m, t: torch.einsum("bchw,bc->bhw", x, m[:, :4])),
        ("outer", lambda s, x, m, t: torch.outer(s.v, m[:, 0])),
        ("sdpa_mask", lambda s, x, m, t: F.scaled_dot_product_attention(x, x, x, attn_mask=s.seen)),
        ("sdpa_bias", lambda s, x, m, t: F.scaled_dot_product_attention(x, x, x, attn_mask=s.bias, scale=0.3)),
        ("sdpa_gqa", lambda s, x, m, t: F.scaled_dot_product_attention(x, x[:, :2], x[:, 2:], enable_gqa=True)),
        ("layer_norm", x(lambda x: F.layer_norm(x, (6, 6)))),
        ("layer_norm_weight", lambda s, x, m, t: F.layer_norm(m, (8,), s.v, None, 1e-3)),
        ("rms_norm", x(lambda x: F.rms_norm(x, (6,)))),
        ("group_norm", x(lambda x: F.group_norm(x, 2))),
        ("instance_norm", x(lambda x: F.instance_norm(x))),
        ("batch_norm", lambda s, x, m, t: F.batch_norm(x, s.v[:4], s.v[4:].exp())),
        ("conv1d", lambda s, x, m, t: F.conv1d(x[:, 0], s.k, s.v[:3], stride=2, padding=1)),
        ("conv1d_same", lambda s, x, m, t: F.conv1d(x[:, 0], s.k[:, :, :2], padding="same")),
        ("conv2d", lambda s, x, m, t: F.conv2d(x, s.k2, dilation=(1, 2), groups=2)),
        (
            "conv_transpose2d",
            lambda s, x, m, t: F.conv_transpose2d(
                x, s.k2.transpose(0, 1)[:, :2].repeat(2, 1, 1, 1), stride=2, output_padding=1
            ),
        ),
        ("max_pool2d", x(lambda x: F.max_pool2d(x, 3, 2, 1))),
        ("max_pool1d", x(lambda x: F.max_pool1d(x[:, 0], 2))),
        ("avg_pool2d", x(lambda x: F.avg_pool2d(x, 3, 1, 1, count_include_pad=False))),
        ("adaptive_pool", x(lambda x: F.adaptive_avg_pool2d(x, (3, 1)))),
        ("nearest", x(lambda x: F.interpolate(x, scale_factor=2))),
        ("bilinear", x(lambda x: F.interpolate(x, (4, 9), mode="bilinear"))),
        ("cross_entropy", lambda s, x, m, t: F.cross_entropy(m, t, label_smoothing=0.1)),
        ("cross_entropy_2d", lambda s, x, m, t: F.cross_entropy(x[:, :, 0], t[:, None].expand(-1, 6) % 4)),
        ("nll_ignored", lambda s, x, m, t: F.nll_loss(F.log_softmax(m, 1), t, ignore_index=2)),
        ("mse", lambda s, x, m, t: F.mse_loss(m, m * 2, reduction="sum")),
        ("smooth_l1", lambda s, x, m, t: F.smooth_l1_loss(m, m * 2)),
        ("bce", lambda s, x, m, t: F.binary_cross_entropy_with_logits(m, (m > 0).float())),
    ]
    bias = torch.randn(6, 6)
    bias[:, 3] = -INF
    seen = torch.rand(6, 6) > 0.3
    seen[2] = False
    case(
        "networks",
        ops,
        {
            "x": lambda n: torch.randn(n, 4, 6, 6),
            "m": lambda n: torch.randn(n, 8),
            "t": lambda n: torch.tensor([0, 2, 5, 7, 1])[:n],
        },
        (2, 3),
        v=torch.randn(8),
        w=torch.randn(8, 5),
        k=torch.randn(3, 6, 3),
        k2=torch.randn(6, 2, 2, 2),
        seen=seen,
        bias=bias,
    )


if __name__ == "__main__":
    elementwise()
    layout()
    networks()
