#!/usr/bin/env python3
"""Writes programs of tests/import with ATen ops that run_decompositions() would replace: aliases and composite ops.

pip install torch==2.15.0 safetensors && python3 tests/import/data/pt2/make_aten_programs.py
"""

import json
import os
import zipfile

import torch
from torch import nn
from torch.nn import functional as F

from make_op_programs import INF, Ops, case
from make_programs import DYNAMIC, FOLDER, write

NAN = float("nan")


def shorten(name):
    """Writes a program again without spaces in its JSON and without the example inputs, which are not read."""
    path = os.path.join(FOLDER, name, "model.pt2")
    with zipfile.ZipFile(path) as archive:
        parts = [(part, archive.read(part)) for part in archive.namelist() if "sample_inputs" not in part]
    with zipfile.ZipFile(path, "w") as archive:
        for part, data in parts:
            short = json.dumps(json.loads(data), separators=(",", ":")).encode() if part.endswith(".json") else data
            archive.writestr(zipfile.ZipInfo(part), short)


def by(*names):
    """Returns a decorator that gives a function the inputs of these names, in place of the module and all inputs."""
    return lambda function: lambda s, **inputs: function(*(inputs[name] for name in names))


def aliases():
    x, i, xy = by("x"), by("i"), by("x", "y")
    ops = [
        ("multiply", x(lambda x: torch.multiply(x, 2))),
        ("divide", i(lambda i: torch.divide(i, 3, rounding_mode="floor"))),
        ("functions", x(lambda x: torch.arcsin(x / 4) + torch.arccos(x / 4) * torch.arctan(x) + torch.arcsinh(x))),
        ("clip", xy(lambda x, y: torch.clip(x, y, y + 1))),
        ("concatenate", lambda s, x, y, i: torch.concatenate([x, i], -1)),
        ("float_power", i(lambda i: torch.float_power(i, 2))),
        ("shifts", i(lambda i: (i << 2) + (i >> 1))),
    ]
    inputs = {
        "x": lambda n: torch.randn(n, 3),
        "y": lambda n: torch.randn(n, 3),
        "i": lambda n: torch.randint(-5, 6, (n, 3)),
    }
    case("aliases", ops, inputs)


def floats():
    x, xy, i = by("x"), by("x", "y"), by("i")
    ops = [
        ("fmax", xy(torch.fmax)),
        ("fmin", xy(torch.fmin)),
        ("hypot", xy(torch.hypot)),
        ("logaddexp", xy(torch.logaddexp)),
        ("logaddexp2", xy(torch.logaddexp2)),
        ("xlogy", xy(torch.xlogy)),
        ("atan2", xy(torch.atan2)),
        ("copysign", xy(torch.copysign)),
        ("erfc", x(lambda x: torch.special.erfc(x * 2) * 1e6)),
        ("logit", x(lambda x: torch.logit(x / 8 + 0.5, eps=0.1))),
        ("sinc", x(torch.sinc)),
        ("signbit", x(torch.signbit)),
        ("isclose", xy(lambda x, y: torch.isclose(x, y, rtol=0.5, equal_nan=True))),
        ("isin", i(lambda i: torch.isin(i, torch.tensor([1, -2])))),
        ("softshrink", x(F.softshrink)),
    ]
    special = torch.tensor([NAN, INF, 0.0, -0.0])
    inputs = {
        "x": lambda n: torch.cat([torch.randn(n, 4), special.repeat_interleave(4).expand(n, -1)], 1),
        "y": lambda n: torch.cat([torch.randn(n, 4), special.repeat(4).expand(n, -1)], 1),
        "i": lambda n: torch.randint(-3, 4, (n, 20)),
    }
    case("floats", ops, inputs, (2, 3))


def ordering():
    x, g, i = by("x"), by("g"), by("i")
    places = torch.tensor([-0.5, 0.2, 0.7])
    special = lambda n: torch.tensor([[NAN] + [0.5] * (n - 1), [2.0] + [INF] * (n - 1)]).T
    ops = [
        ("aminmax", g(lambda g: torch.aminmax(g, dim=0))),
        ("count_nonzero", i(lambda i: torch.count_nonzero(i, (0, 1)))),
        ("std_mean", x(lambda x: torch.std_mean(x, 0, keepdim=True))),
        ("nansum", g(lambda g: torch.nansum(g, 0))),
        ("nanmean", g(lambda g: torch.nanmean(g, (0, 1), keepdim=True))),
        ("cumprod", i(lambda i: torch.cumprod(i, 0))),
        ("repeats", x(lambda x: x.repeat_interleave(torch.tensor([1, 0, 2, 1]), 1, output_size=4))),
        ("scatter_ints", i(lambda i: torch.cat([i.scatter_reduce(0, i % 2, i, how) for how in ("prod", "mean", "amin")]))),
        ("scatter_nan", g(lambda g: g.scatter_reduce(1, (g > 0).long(), g, "amin"))),
        ("cummax", g(lambda g: torch.cummax(g, 0))),
        ("cummin", i(lambda i: torch.cummin(i, -1))),
        ("logcumsumexp", x(lambda x: torch.logcumsumexp(x, 0))),
        ("msort", x(torch.msort)),
        ("median", g(lambda g: torch.median(g, 0).values)),
        ("nanmedian", g(lambda g: torch.nanmedian(g, 0, keepdim=True).values)),
        ("kthvalue", x(lambda x: torch.kthvalue(x, 2, 0))),
        ("quantile", x(lambda x: torch.quantile(x, torch.tensor([0.1, 0.6]), 0, keepdim=True))),
        ("bucketize", g(lambda g: torch.bucketize(g, places, right=True))),
        ("searchsorted", x(lambda x: torch.searchsorted(torch.sort(x)[0], x, out_int32=True))),
        ("norms", x(lambda x: torch.linalg.vector_norm(x, 3, 0) + torch.linalg.vector_norm(x, 0.5, 0))),
    ]
    inputs = {
        "x": lambda n: torch.randn(n, 4),
        "g": lambda n: torch.cat([torch.randn(n, 4), special(n)], 1),
        "i": lambda n: torch.randint(-3, 4, (n, 5)),
    }
    case("ordering", ops, inputs)


def matrices():
    x, v, xm = by("x"), by("v"), by("x", "m")
    ops = [
        ("block_diag", xm(lambda x, m: torch.block_diag(x, m))),
        ("tensor_split", x(lambda x: x.tensor_split(3, 1)[1])),
        ("diag", v(lambda v: torch.diag(v, -1))),
        ("diagonal", by("m")(lambda m: torch.diag(m[:2], 1))),
        ("diag_embed", x(lambda x: torch.diag_embed(x, 1, 0, 2))),
        ("trace", lambda s, x, m, v: torch.trace(s.w)),
        ("take", x(lambda x: torch.take(x, torch.tensor([[0, -1], [2, 1]])))),
        ("take_along_dim", lambda s, x, m, v: torch.take_along_dim(s.w, s.at, 1)),
        ("ger", v(lambda v: torch.ger(v, v[:2]))),
        ("inner", xm(lambda x, m: torch.inner(x[:, :4], m))),
        ("addr", v(lambda v: torch.addr(v[:2], v, v[:2], alpha=2))),
        ("tensordot", xm(lambda x, m: torch.tensordot(x, m, dims=([0], [0])))),
        ("multi_dot", lambda s, x, m, v: torch.linalg.multi_dot([s.w, s.w, s.w[0]])),
        ("matrix_power", lambda s, x, m, v: torch.matrix_power(s.w, 5)),
        ("cross", x(lambda x: torch.linalg.cross(x[:, :3], x[:1, 2:]))),
        ("bilinear", lambda s, x, m, v: F.bilinear(x, m, s.bilinear)),
    ]
    inputs = {
        "x": lambda n: torch.randn(n, 5),
        "m": lambda n: torch.randn(n, 4),
        "v": lambda n: torch.randn(n),
    }
    buffers = {"w": torch.randn(5, 5), "at": torch.tensor([[0, 2]]), "bilinear": torch.randn(2, 5, 4)}
    case("matrices", ops, inputs, **buffers)


def losses():
    xy, xyt, pq = by("x", "y"), by("x", "y", "t"), by("p", "q")
    ops = [
        ("huber", xy(lambda x, y: F.huber_loss(x, y, delta=0.5))),
        ("bce", pq(lambda p, q: F.binary_cross_entropy(p, q, p + 0.1))),
        ("kl_div", pq(lambda p, q: F.kl_div(p.log(), q, reduction="sum"))),
        ("cosine_embedding", xyt(lambda x, y, t: F.cosine_embedding_loss(x, y, t, margin=0.2))),
        ("margin_ranking", xyt(lambda x, y, t: F.margin_ranking_loss(x, y, t[:, None].expand_as(x), 0.3))),
        ("triplet", xy(lambda x, y: F.triplet_margin_loss(x, y, y * 2, p=1, swap=True, reduction="none"))),
        ("soft_margin", by("x", "t")(lambda x, t: F.soft_margin_loss(x, t[:, None].expand_as(x)))),
        ("poisson", xy(lambda x, y: F.poisson_nll_loss(x, y.abs() * 3, full=True))),
        ("cosine_similarity", xy(lambda x, y: F.cosine_similarity(x[:, None], y[None], -1))),
        ("pairwise_distance", xy(lambda x, y: F.pairwise_distance(x, y, 3, keepdim=True))),
        ("cdist", xy(lambda x, y: torch.cdist(x, y))),
        ("weight_norm", xy(lambda x, y: torch._weight_norm(x, y[:1], 1))),
        ("weights_of_classes", xyt(lambda x, y, t: F.cross_entropy(x, t.clamp(0), y[0].exp(), label_smoothing=0.1, ignore_index=1))),
        ("sums_of_classes", xyt(lambda x, y, t: F.cross_entropy(x, t.clamp(0), ignore_index=1, reduction="sum"))),
        ("probabilities", xy(lambda x, y: F.cross_entropy(x, y.softmax(-1), reduction="none", label_smoothing=0.2))),
    ]
    inputs = {
        "x": lambda n: torch.randn(n, 4),
        "y": lambda n: torch.randn(n, 4),
        "p": lambda n: torch.rand(n, 3) * 0.8 + 0.1,
        "q": lambda n: (torch.rand(n, 3) - 0.2).relu(),
        "t": lambda n: torch.tensor([1, -1, -1])[:n],
    }
    case("losses", ops, inputs, (2, 3))


def vision():
    x, d = by("x"), by("d")
    resized = lambda **options: x(lambda x: F.interpolate(x, **options))
    grid = lambda **options: lambda s, x, d: F.grid_sample(x, s.grid.expand(x.shape[0], -1, -1, -1), **options)
    ops = [
        ("unfold", x(lambda x: F.unfold(x, (3, 2), padding=1, stride=2, dilation=(1, 2)))),
        ("pixel_shuffle", x(lambda x: F.pixel_shuffle(x.repeat(1, 2, 1, 1)[..., :2], 2))),
        ("channel_shuffle", x(lambda x: F.channel_shuffle(x, 2))),
        ("adaptive_max", x(lambda x: F.adaptive_max_pool2d(x, (3, 2)))),
        ("bicubic", resized(size=(3, 7), mode="bicubic")),
        ("bicubic_aa", resized(size=(2, 5), mode="bicubic", antialias=True)),
        ("nearest_exact", resized(size=(3, 7), mode="nearest-exact")),
        ("grid", grid(align_corners=False)),
        ("grid_reflection", grid(align_corners=False, padding_mode="reflection")),
        ("grid_bicubic", grid(align_corners=True, mode="bicubic")),
        ("affine_grid", x(lambda x: F.affine_grid(x[:, 0, :2, :3], (x.shape[0], 1, 2, 1), align_corners=True))),
        ("avg_pool3d", d(lambda d: F.avg_pool3d(d, (3, 2, 2), 1, (1, 0, 1), count_include_pad=False))),
        ("max_pool3d", d(lambda d: F.max_pool3d(d, 2))),
        ("positions", x(lambda x: F.max_pool2d(x, (3, 2), 2, 1, (1, 2), return_indices=True))),
        ("unpool", x(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2))),
        ("adaptive3d", d(lambda d: F.adaptive_avg_pool3d(d, (2, 1, 3)))),
        ("transposed3d", d(lambda d: F.conv_transpose3d(d, d[:1, :, :2], None, (2, 1, 3), 1, (1, 0, 1), 1, (1, 2, 1)))),
    ]
    inputs = {"x": lambda n: torch.randn(n, 2, 4, 4), "d": lambda n: torch.randn(n, 1, 3, 2, 4)}
    torch.manual_seed(5)
    case("vision", ops, inputs, (3, 2), grid=torch.randn(1, 2, 4, 2))


def images():
    """Images of any size."""
    x = by("x")
    ops = [
        ("fold", x(lambda x: F.fold(F.unfold(x, 3, padding=1, stride=2), x.shape[2:], 3, padding=1, stride=2))),
        ("pixel_unshuffle", x(lambda x: F.pixel_unshuffle(x, 2))),
        ("grid", x(lambda x: F.grid_sample(x, x[:, :2].permute(0, 2, 3, 1), align_corners=False))),
        ("irfft", x(lambda x: torch.fft.irfft(torch.fft.rfft(x)))),
    ]
    torch.manual_seed(3)
    sizes = {"x": {2: DYNAMIC, 3: DYNAMIC}}
    tensors = {f"{i:02}_{key}": op for i, (key, op) in enumerate(ops)}
    runs = [{"x": torch.randn(1, 2, 4, 6)}, {"x": torch.randn(1, 2, 6, 4)}]
    write("images", Ops(tensors), runs, {"inputs": sizes}, gradients=False)


def recurrent():
    """The exporter fixes the number of steps and the batch. Layers share weights, w of 3 inputs and v of 6, and x is
    also the first state."""

    def rows(s, count):
        return getattr(s, f"w{count}"), getattr(s, f"b{count}")

    def lstm(s, x, i):
        weights = [s.w12, s.w12, s.b12, s.b12] * 2 + [s.v12, s.w12, s.b12, s.b12] * 2
        states = torch.cat([x, x])
        return torch._VF.lstm(x, [states, states], weights, True, 2, 0.0, False, True, True)

    def layers(function, gates, states, biases, options):
        def run(s, x, i):
            w, b = rows(s, gates)
            return function(x, x[:states], ([w, w, b, b] if biases else [w, w]) * states, biases, *options)

        return run

    def cell(function, gates):
        def run(s, x, i):
            w, b = rows(s, gates)
            return function(x[0], [x[1], x[0]] if gates == 12 else x[1], w, w, b, b)

        return run

    bags = lambda mode, **options: lambda s, x, i: F.embedding_bag(i, s.w12, mode=mode, **options)
    ops = [
        ("lstm", lstm),
        ("gru", layers(torch._VF.gru, 9, 2, True, (2, 0.0, False, False, False))),
        ("tanh", layers(torch._VF.rnn_tanh, 3, 1, False, (1, 0.0, False, False, True))),
        ("relu", layers(torch._VF.rnn_relu, 3, 2, True, (1, 0.0, False, True, True))),
        ("lstm_cell", cell(torch._VF.lstm_cell, 12)),
        ("gru_cell", cell(torch._VF.gru_cell, 9)),
        ("mean_bag", bags("mean", padding_idx=1)),
        ("max_bag", bags("max")),
        ("sum_bag", lambda s, x, i: F.embedding_bag(i[0], s.w12, s.at, per_sample_weights=x[0, 0], mode="sum")),
    ]
    torch.manual_seed(3)
    buffers = {f"w{n}": torch.randn(n, 3) for n in (3, 9, 12)} | {f"b{n}": torch.randn(n) for n in (3, 9, 12)}
    buffers |= {"v12": torch.randn(12, 6), "at": torch.tensor([0, 0, 2])}
    runs = [{"x": torch.randn(2, 2, 3), "i": torch.randint(0, 5, (2, 3))} for _ in range(2)]
    tensors = {f"{i:02}_{key}": op for i, (key, op) in enumerate(ops)}
    write("recurrent", Ops(tensors, **buffers), runs, {"inputs": {"x": {}, "i": {}}}, gradients=False)


def fourier():
    x, c = by("x"), by("c")
    complex_of = lambda c: torch.view_as_complex(c)
    parts = lambda function: c(lambda c: torch.view_as_real(function(complex_of(c))))
    triangles = torch.bartlett_window(7)

    def inverse(spectrum, **options):
        y = torch.istft(spectrum, 8, 3, window=torch.full((8,), 0.5), onesided=spectrum.shape[1] == 5, **options)
        return y if y.is_complex() else torch.complex(y, y)

    ops = [
        ("rfft", x(lambda x: torch.fft.rfft(x).abs())),
        ("rfft_longer", x(lambda x: torch.fft.rfft(x, 11, 1, "forward").imag)),
        ("irfft", x(lambda x: torch.fft.irfft(torch.fft.rfft(x), 7))),
        ("fft", parts(lambda c: torch.fft.fft(c, 4, norm="ortho") * 2)),
        ("ifft2", parts(torch.fft.ifft2)),
        ("stft", x(lambda x: torch.stft(x.flatten(1), 8, 3, 6, x[0, 0, :6], return_complex=True).abs())),
        ("polar", x(lambda x: torch.view_as_real(torch.polar(x.abs(), x)))),
        ("istft", parts(lambda c: inverse(c.unsqueeze(-1).expand(-1, 5, 6), length=33))),
        ("istft_complex", parts(lambda c: inverse(c[:, :1].expand(-1, 8)[..., None] * c[:1, :, None].mT, return_complex=True))),
        ("stft_complex", parts(lambda c: torch.stft(c, 2, 1, return_complex=True) * c[:, :1, None].sgn())),
        ("windows", x(lambda x: x[:1] + torch.stack([torch.hann_window(7), torch.kaiser_window(7, False, 8.6), triangles]))),
        ("more_windows", x(lambda x: x[:1, :2] + torch.stack([torch.blackman_window(7), torch.hamming_window(7, False, 0.6, 0.3)]))),
        ("shifts", x(lambda x: torch.fft.fftshift(x, 1) + torch.fft.ifftshift(x, (1, 2)) + torch.fft.fftfreq(7, 0.5))),
        ("products", parts(lambda c: torch.einsum("bi,bj->ij", c, c / (c + 1)) + (c.exp().mT @ c))),
        ("angles", c(lambda c: torch.angle(torch.view_as_complex(c)))),
    ]
    inputs = {"x": lambda n: torch.randn(n, 3, 7), "c": lambda n: torch.randn(n, 5, 2)}
    case("fourier", ops, inputs, (2, 3))


class Scattered(nn.Module):
    """Sums, products, means and extremes of equal and of different numbers, of indices that repeat."""

    def __init__(self):
        super().__init__()
        self.x = nn.Parameter((torch.rand(5, 3, dtype=torch.float64) * 4).round() - 1.5)
        self.y = nn.Parameter((torch.rand(6, 3, dtype=torch.float64) * 4).round() - 2)

    def forward(self, i):
        x, y, rows = self.x, self.y[: i.shape[0]], i[:, 0]
        both = lambda how: torch.stack([x.scatter_reduce(0, i, y, how, include_self=own) for own in (True, False)])
        results = {how: both(how) for how in ("sum", "prod", "mean", "amax", "amin")}
        results["rows"] = torch.stack([x.index_reduce(0, rows, y, how, include_self=False) for how in ("prod", "mean", "amax")])
        results["columns"] = torch.scatter_reduce(x.T, 1, i.T, y.T, "amax")
        results["times"] = x.detach().scatter(0, i, y.detach(), reduce="multiply")
        results["put"] = x.put(i, y, accumulate=True).index_fill(1, rows[:1], 3.0).masked_scatter(x > 1, y.exp())
        results["diagonals"] = torch.diagonal_scatter(x, y[0, :2], 1) + torch.kron(x, y[:1, :1])
        return results


def scattered():
    torch.manual_seed(3)
    runs = [{"i": torch.randint(0, 3, (n, 3))} for n in (6, 4)]
    write("scattered", Scattered(), runs, {"i": {0: torch.export.Dim("n", max=6)}})


def special():
    x, p = by("x"), by("p")
    functions = torch.special
    ops = [
        ("gammas", x(lambda x: torch.stack([torch.lgamma(x), torch.digamma(x)]))),
        ("multigamma", p(lambda p: torch.mvlgamma(p + 1, 2))),
        ("quantiles", p(lambda p: torch.erfinv(p * 2 - 1) + functions.ndtri(p))),
        ("distribution", x(functions.ndtr)),
        ("entropy", x(lambda x: functions.entr(x) + functions.xlog1py(x, x + 6))),
        ("bessel", x(lambda x: torch.stack([torch.i0(x * 5), functions.i0e(x * 5), functions.i1(x * 5), functions.i1e(x)]))),
        ("decimals", x(lambda x: torch.round(x * 7, decimals=1) + F.rrelu(x, training=False))),
        ("quantized", x(quantized)),
        ("triangle", x(lambda x: x[0][torch.tril_indices(2, 3, -1)] + torch.logspace(0, 1, 2, 3.0))),
    ]
    spread = torch.tensor([-4.5, -2.0, -0.3, 0.0, 1.0, 5.5])
    inputs = {"x": lambda n: torch.cat([torch.randn(n, 3), spread.expand(n, -1)], 1), "p": lambda n: torch.rand(n, 3)}
    case("special", ops, inputs, (3, 2))


def quantized(x):
    """As the export of quantized models writes it."""
    import torch.ao.quantization.fx._decomposed  # noqa: F401

    ops, scales, zeros = torch.ops.quantized_decomposed, torch.tensor([0.1, 0.2]), torch.tensor([1, -2])
    q = ops.quantize_per_tensor(x, 0.05, -3, -128, 127, torch.int8)
    y = ops.quantize_per_channel(x[:, :2], scales, zeros, 1, -128, 127, torch.int8)
    y = ops.dequantize_per_channel(y, scales, zeros, 1, -128, 127, torch.int8)
    return torch.cat([ops.dequantize_per_tensor(q, 0.05, -3, -128, 127, torch.int8), y], 1)


def solved():
    linalg, a, ab = torch.linalg, by("a"), by("a", "b")
    square = lambda a: a @ a.mT + torch.eye(3)
    ops = [
        ("inverse", a(linalg.inv)),
        ("solve", ab(lambda a, b: linalg.solve(a, b) + linalg.solve(a[0], b[..., :1].mT, left=False).mT)),
        ("vector", ab(lambda a, b: linalg.solve(a, b[:, :, 0]))),
        ("determinants", a(lambda a: linalg.det(a) + linalg.slogdet(a)[0] * linalg.slogdet(a)[1])),
        ("logdet", a(lambda a: torch.logdet(a @ a.mT))),
        ("cholesky", a(lambda a: torch.stack([linalg.cholesky(square(a)), linalg.cholesky(square(a), upper=True)]))),
        ("cholesky_solve", ab(lambda a, b: torch.cholesky_solve(b, a.tril()) + torch.cholesky_inverse(a[0].triu(), upper=True)[:, :2])),
        ("triangular", ab(lambda a, b: linalg.solve_triangular(a, b, upper=True) + linalg.solve_triangular(a[0], b.mT, upper=False, left=False, unitriangular=True).mT)),
        ("eigenvalues", a(lambda a: linalg.eigvalsh(a))),
        ("vecdot", ab(lambda a, b: linalg.vecdot(a[..., :2], b))),
    ]
    inputs = {"a": lambda n: torch.randn(n, 3, 3) + 2 * torch.eye(3), "b": lambda n: torch.randn(n, 3, 2)}
    case("solved", ops, inputs, (3, 2))


if __name__ == "__main__":
    makers = (aliases, floats, ordering, matrices, losses, vision, images, recurrent, fourier, scattered, special, solved)
    for make in makers:
        make()
        shorten(make.__name__)
