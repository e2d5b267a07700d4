#!/usr/bin/env python3
"""Writes programs of tests/import that write to buffers and at indices, and decoders with a static cache.

pip install torch==2.15.0 safetensors && python3 tests/import/data/pt2/make_written_programs.py
"""

import json
import os

import torch
from torch import nn
from torch.nn import functional as F

from make_op_programs import case
from make_programs import DYNAMIC, FOLDER, strip, write


def indices():
    """Values at indices of any dims, which are different."""
    put = torch.ops.aten.index_put
    ops = [
        ("first", lambda s, x: put(x, [torch.tensor([1, 0])], x[:2] * 2)),
        ("middle", lambda s, x: put(x, [None, torch.tensor([5, 0, 2])], x[:, :3] * 2)),
        ("last", lambda s, x: put(x, [None, None, torch.tensor([-1, 0])], torch.tensor([7.0, 8.0]))),
        ("middle_add", lambda s, x: put(x, [None, torch.tensor([1, 1, 4])], x[:, :3], True)),
        ("neighbours", lambda s, x: put(x, [None, torch.tensor([5, 0, 2]), torch.tensor([[0], [3]])], x[:, :3, 0][:, None] + 1)),
        ("apart", lambda s, x: put(x, [torch.tensor([0, 1]), None, torch.tensor([2, 3])], torch.arange(6.0))),
        ("apart_values", lambda s, x: put(x, [torch.tensor([0, 1]), None, torch.tensor([2, 3])], x[:2, :, 0] * 3)),
        ("square", lambda s, x: put(x, [None, torch.tensor([[5, 0], [2, 3]])], x[:, :4].reshape(-1, 2, 2, 4) * 2)),
        ("copy", lambda s, x: x.index_copy(1, torch.tensor([5, 0, 2]), x[:, 3:] - 1)),
        ("copy_last", lambda s, x: x.index_copy(-1, torch.tensor([3]), x[:, :, :1] * 5)),
    ]
    case("indices", ops, {"x": lambda n: torch.randn(n, 6, 4)})


class Written(nn.Module):
    """Writes to buffers, also by other names and after views of the old values were read."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.ones(3))
        self.register_buffer("rows", torch.zeros(4, 3))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x):
        before = self.rows[1:].sum(0) + self.total
        self.total.add_(x.sum(0))
        self.total.to(torch.float32).mul_(0.5)
        self.rows.index_copy_(0, torch.arange(1) + self.steps, x[:1])
        self.steps.add_(1).detach().clamp_(max=3)
        return before, self.total * 2, self.rows.sum(1) + self.steps


class Strided(nn.Module):
    """Windows over images of any height and width, resized to the size of the image, and writes to views in place."""

    def __init__(self):
        super().__init__()
        self.stem, self.patch = nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 3)
        self.drop = nn.Dropout(0.5, inplace=True)

    def forward(self, x):
        y = self.patch(F.max_pool2d(self.stem(x), 3, (2, 1), 1))
        linear = F.interpolate(y, size=x.shape[-2:], mode="bilinear")
        near = F.interpolate(y, scale_factor=2)
        mean = F.interpolate(F.adaptive_avg_pool2d(y, 1), size=x.shape[-2:], mode="bilinear")
        flat = self.drop(torch.flatten(y, 1)).relu_()
        ceil = F.max_pool2d(x, 3, 2, ceil_mode=True), F.max_pool2d(x, (3, 2), 2, 1, ceil_mode=True)
        return flat, linear, near, mean, x[:, :, x.shape[2] // 4 :], *ceil


class Sliced(nn.Module):
    """Writes to slices of new values, to slices of slices, to every second column, and to rows of a buffer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(2, 8, 4))

    def forward(self, x):
        turned, pairs, picked = torch.empty_like(x), x.new_zeros(2, x.shape[1], 6), x * 1
        turned[..., :2], turned[..., 2:] = x[..., 2:], x[..., :2] * 2
        pairs[:, :, 0::2], pairs[:, :, 1::2] = x[..., :3], x[..., 1:]
        picked[:, 0] += 1
        picked[:, 0, 1:3].mul_(3)
        later = picked[:, 1:]
        later[:, -1] = 5
        picked[0, : x.shape[1] // 2] = 0
        ranked = x.gather(2, x.argsort(2))
        ranked /= x.sum(2, keepdim=True)
        self.rows[:, : x.shape[1]] = x
        return turned, pairs, picked, ranked, self.rows.sum(2)


class Quotients(nn.Module):
    """Sizes that are quotients of the sizes of the input, or their remainders."""

    def forward(self, x):
        n, s, w = x.shape
        first, second = x.chunk(2, 1)
        padded = F.pad(x, (0, 0, 0, (4 - s % 4) % 4)).reshape(n, s // 4, 4, w).sum(2)
        image = x[:, None]
        near, linear = F.interpolate(image, scale_factor=0.5), F.interpolate(image, size=(s // 3, w // 2), mode="bilinear")
        return x[:, : s // 2] - first, second.unflatten(1, (-1, 3)), padded, near, linear


class Decoder(nn.Module):
    """A decoder whose buffers hold the keys and values of 24 positions."""

    def __init__(self, size=16, heads=2, vocab=23, rows=24, window=8):
        super().__init__()
        self.heads, self.window = heads, window
        self.wte, self.wpe = nn.Embedding(vocab, size), nn.Embedding(rows, size)
        self.qkv, self.out, self.head = nn.Linear(size, 3 * size), nn.Linear(size, size), nn.Linear(size, vocab)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, heads, rows, size // heads), persistent=False)

    def forward(self, input_ids, cache_position):
        x = self.wte(input_ids) + self.wpe(cache_position)
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(d, dim=2))
        self.keys.index_copy_(2, cache_position, k)
        self.values.index_copy_(2, cache_position, v)
        rows = torch.arange(self.keys.shape[2])
        age = cache_position[:, None] - rows
        y = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=(age >= 0) & (age < self.window))
        return self.head(x + self.out(y.transpose(1, 2).reshape(b, t, d)))


def decoder(name, core):
    torch.manual_seed(5)
    model = Decoder().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.6)
    t = 1 if core else 3
    inputs = {"input_ids": torch.zeros((1, t), dtype=torch.int64), "cache_position": torch.arange(t)}
    shapes = {key: None for key in inputs} if core else {"input_ids": {1: DYNAMIC}, "cache_position": {0: DYNAMIC}}
    with torch.no_grad():
        program = torch.export.export(model, (), inputs, dynamic_shapes=shapes)
    if core:
        program = program.run_decompositions()
    strip(program)
    os.makedirs(os.path.join(FOLDER, name), exist_ok=True)
    torch.export.save(program, os.path.join(FOLDER, name, "model.pt2"))
    prompts, texts = [[3, 5, 7], [4, 9, 11, 12, 2, 6, 8, 1, 3, 3, 14], [5]], []
    for prompt in prompts:
        ids = list(prompt)
        for _ in range(12):
            with torch.no_grad():
                logits = model(torch.tensor([ids]), torch.arange(len(ids)))
            ids.append(int(logits[0, -1].argmax()))
        texts.append(ids[len(prompt) :])
    with open(os.path.join(FOLDER, name, "prompts.json"), "w") as file:
        json.dump({"prompts": prompts, "texts": texts}, file)


if __name__ == "__main__":
    indices()
    torch.manual_seed(4)
    write("written", Written(), [{"x": torch.randn(n, 3)} for n in (2, 3)], {"x": {0: DYNAMIC}}, gradients=False)
    runs = [{"x": torch.randn(n, 3, h, w)} for n, h, w in ((2, 24, 18), (1, 12, 30))]
    write("strided", Strided().eval(), runs, {"x": {0: DYNAMIC, 2: DYNAMIC, 3: DYNAMIC}}, gradients=False)
    runs = [{"x": torch.randn(n, s, w)} for n, s, w in ((2, 12, 4), (1, 24, 6))]
    write("quotients", Quotients(), runs, {"x": {0: DYNAMIC, 1: DYNAMIC, 2: DYNAMIC}}, gradients=False)
    runs = [{"x": torch.rand(2, n, 4)} for n in (4, 6)]
    write("sliced", Sliced(), runs, {"x": {1: DYNAMIC}}, gradients=False)
    decoder("static_decoder", False)
    decoder("static_decoder_core", True)
