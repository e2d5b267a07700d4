#!/usr/bin/env python3
"""Writes the .pt2 files of tests/import, with inputs, outputs and gradients for two sizes each.

  pip install torch==2.15.0 safetensors && python3 tests/import/data/pt2/make_programs.py

Each program is a folder: model.pt2, and run_0.safetensors and run_1.safetensors with "input.NAME", "output.NAME" and
"grad.PARAMETER", of the sum of the squares of all outputs. A program with the suffix _core is the same after
run_decompositions().
"""

import math
import os
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

FOLDER = os.path.dirname(os.path.abspath(__file__))
DYNAMIC = torch.export.Dim.DYNAMIC


def leaves(result, path=""):
    """The tensors of a result by the names that Lathe gives them."""
    if isinstance(result, torch.Tensor):
        return {path or "output": result}
    if isinstance(result, dict):
        parts = [(f"{path}.{key}" if path else key, value) for key, value in result.items()]
    elif len(result) == 1 and not path:
        parts = [("", result[0])]
    else:
        parts = [(f"{path}.{i}" if path else f"output_{i}", value) for i, value in enumerate(result)]
    return {name: tensor for key, value in parts for name, tensor in leaves(value, key).items()}


def strip(program):
    """Removes texts about this machine's Python code, which do not change the program."""
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                for key in ("stack_trace", "torch_fn", "from_node", "source_fn_stack", "custom"):
                    node.meta.pop(key, None)
                stack = node.meta.pop("nn_module_stack", {})
                if any(path for path, _ in stack.values()):
                    node.meta["nn_module_stack"] = {key: (path, "Module") for key, (path, _) in stack.items()}


def write(name, model, runs, dynamic=None, core=False, gradients=True):
    """runs: lists of inputs by name; the first one is the example of the export."""
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    shapes = dynamic if dynamic and "inputs" in dynamic else {key: (dynamic or {}).get(key) for key in runs[0]}
    program = torch.export.export(model, (), dict(runs[0]), dynamic_shapes=shapes)
    if core:
        program = program.run_decompositions()
    strip(program)
    torch.export.save(program, os.path.join(folder, "model.pt2"))
    for i, inputs in enumerate(runs):
        model.zero_grad()
        tensors = {f"input.{key}": value for key, value in inputs.items()}
        # The program itself may update buffers.
        outputs = leaves(model(**inputs))
        tensors |= {f"output.{key}": value.detach() for key, value in outputs.items()}
        if gradients:
            sum((value**2).sum() for value in outputs.values()).backward()
            tensors |= {f"grad.{key}": value.grad for key, value in model.named_parameters() if value.grad is not None}
        save_file({key: value.contiguous().clone() for key, value in tensors.items()}, f"{folder}/run_{i}.safetensors")


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 8), nn.Linear(8, 3, bias=False)
        self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("offsets", torch.arange(3), persistent=False)
        self.fc1.bias.requires_grad_(False)

    def forward(self, x):
        return {"logits": self.fc2(F.relu(self.fc1(x))) * self.scale + self.offsets, "twice": x.double() * 2}


class Attention(nn.Module):
    """Causal self-attention in steps, with a mask cut from a buffer."""

    def __init__(self, size, heads, longest):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest, dtype=torch.bool)), persistent=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.heads, d // self.heads).transpose(1, 2) for y in self.qkv(x).split(d, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        scores = scores.masked_fill(~self.mask[:t, :t], float("-inf"))
        return self.out((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, t, d))


class Gpt(nn.Module):
    """A decoder as GPT-2, whose head is tied to the table of tokens."""

    def __init__(self, size=8, heads=2, vocab=13, longest=16, layers=1):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, size), nn.Embedding(longest, size)
        self.h = nn.ModuleList(
            nn.ModuleDict(
                {
                    "ln_1": nn.LayerNorm(size),
                    "attn": Attention(size, heads, longest),
                    "ln_2": nn.LayerNorm(size),
                    "mlp": nn.Sequential(nn.Linear(size, 16), nn.GELU(approximate="tanh"), nn.Linear(16, size)),
                }
            )
            for _ in range(layers)
        )
        self.ln_f, self.head = nn.LayerNorm(size), nn.Linear(size, vocab, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, input_ids):
        x = self.wte(input_ids) + self.wpe(torch.arange(input_ids.shape[1]))
        for layer in self.h:
            x = x + layer["attn"](layer["ln_1"](x))
            x = x + layer["mlp"](layer["ln_2"](x))
        return {"logits": self.head(self.ln_f(x))}


class Llama(nn.Module):
    """A decoder block as Llama: RMS norm, rotary positions without gradients, grouped queries, a gated MLP."""

    def __init__(self, size=16, heads=4, kv=2, vocab=9):
        super().__init__()
        self.heads, self.kv, self.size = heads, kv, size // heads
        self.embed = nn.Embedding(vocab, size)
        self.norm = nn.RMSNorm(size, eps=1e-5)
        self.q, self.k = nn.Linear(size, size, bias=False), nn.Linear(size, kv * self.size, bias=False)
        self.v, self.o = nn.Linear(size, kv * self.size, bias=False), nn.Linear(size, size, bias=False)
        self.gate, self.up = nn.Linear(size, 24, bias=False), nn.Linear(size, 24, bias=False)
        self.down, self.head = nn.Linear(24, size, bias=False), nn.Linear(size, vocab, bias=False)
        self.register_buffer("inv_freq", 10000.0 ** (-torch.arange(0, self.size, 2) / self.size), persistent=False)

    @torch.no_grad()
    def rotary(self, x, position_ids):
        with torch.autocast(device_type="cpu", enabled=False):
            angles = position_ids[:, :, None].to(self.inv_freq.dtype) @ self.inv_freq[None, None, :]
            angles = torch.cat((angles, angles), dim=-1)
        return angles.cos().to(x.dtype)[:, None], angles.sin().to(x.dtype)[:, None]

    def forward(self, input_ids, position_ids):
        x = self.embed(input_ids)
        b, t, d = x.shape
        cos, sin = self.rotary(x, position_ids)

        def heads(y, count):
            return y.view(b, t, count, self.size).transpose(1, 2)

        def rotated(y):
            first, second = y[..., : self.size // 2], y[..., self.size // 2 :]
            return y * cos + torch.cat((-second, first), dim=-1) * sin

        y = self.norm(x)
        q, k, v = rotated(heads(self.q(y), self.heads)), rotated(heads(self.k(y), self.kv)), heads(self.v(y), self.kv)
        k, v = (z[:, :, None].expand(b, self.kv, 2, t, self.size).reshape(b, self.heads, t, self.size) for z in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).contiguous().view(b, t, -1))
        return self.head(x + self.down(F.silu(self.gate(x)) * self.up(x)))


class Encoder(nn.Module):
    """nn.TransformerEncoder with a mask of padding, and a pooled first token."""

    def __init__(self, norm_first, size=8, vocab=11):
        super().__init__()
        layer = nn.TransformerEncoderLayer(size, 2, 12, 0.1, "gelu", batch_first=True, norm_first=norm_first)
        self.words = nn.Embedding(vocab, size, padding_idx=0)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.pooler = nn.Linear(size, size)

    def forward(self, input_ids, attention_mask):
        x = self.encoder(self.words(input_ids), src_key_padding_mask=attention_mask == 0)
        return x, torch.tanh(self.pooler(x[:, 0]))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.conv2, self.norm2 = nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), nn.GroupNorm(2, 6)
        self.pool, self.fc = nn.MaxPool2d(2), nn.Linear(6, 5)
        self.norm1.running_mean.normal_(), self.norm1.running_var.uniform_(0.5, 2)

    def forward(self, image):
        x = self.pool(F.relu(self.norm1(self.conv1(image))))
        x = F.silu(self.norm2(self.conv2(x)))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Counter(nn.Module):
    """Buffers that a run updates: a number, and a moving average."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("average", torch.ones(3))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        self.steps.add_(1)
        self.average.mul_(0.5).add_(x.mean(0) * 0.5)
        return self.fc(x) + self.average * self.steps


class Guards(nn.Module):
    """A condition on two sizes, which the program has as a guard."""

    def forward(self, x, y):
        torch._check(2 * x.shape[0] <= y.shape[0] + 7)
        return x.sum() + y.sum()


class Prefix(nn.Module):
    """A size from the values of an input, and assertions on it, which the program has as nodes."""

    def forward(self, x, n):
        count = n.item()
        torch._check(count >= 0)
        torch._check(count <= x.shape[0])
        return x[:count]


class Control(nn.Module):
    """A branch, loops over the rows of x, and loops whose iterations are counted: 3, and as many as x has rows."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        from torch._higher_order_ops.map import map as each
        from torch._higher_order_ops.scan import scan
        from torch._higher_order_ops.while_loop import while_loop

        def step(h, row):
            h = torch.tanh(self.fc(h) + row)
            return h, h * 2

        chosen = torch.cond(x.sum() > 0, lambda x: torch.tanh(self.fc(x)), lambda x: torch.relu(x) - 1, (x,))
        last, rows = scan(step, x.new_zeros(4), x)
        mapped = each(lambda row, bias: torch.sin(row) * bias, x, self.fc.bias)
        start = (torch.tensor(0), x.detach())
        _, halved = while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * 0.5 + 1), start)
        _, summed = while_loop(lambda i, z: i < x.shape[0], lambda i, z: (i + 1, z + i), start)
        return {"chosen": chosen, "last": last, "rows": rows, "mapped": mapped, "halved": halved, "summed": summed}


class Experts(nn.Module):
    """Two of four experts for each row, as transformers computes them with grouped products."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 4, bias=False)
        self.up = nn.Parameter(torch.randn(4, 8, 12) * 0.3)
        self.down = nn.Parameter(torch.randn(4, 12, 8) * 0.3)

    def forward(self, x):
        weights, experts = torch.topk(torch.softmax(self.gate(x), -1), 2, dim=-1)
        order = torch.argsort(experts.reshape(-1), stable=True)
        rows, scale = x[order // 2], weights.reshape(-1)[order]
        ends = torch.cumsum(torch.histc(experts.reshape(-1).float(), bins=4, min=0, max=3), 0, dtype=torch.int32)
        hidden = F.silu(torch._grouped_mm(rows, self.up, ends))
        y = torch._grouped_mm(hidden, self.down, ends) * scale.unsqueeze(-1)
        back = torch.empty_like(order)
        back[order] = torch.arange(order.shape[0])
        return y[back].view(x.shape[0], 2, 8).sum(1)


def ids(n, t, vocab):
    return torch.randint(1, vocab, (n, t))


def padded_runs(vocab):
    runs = []
    for n, t in ((2, 5), (3, 7)):
        mask = torch.ones(n, t, dtype=torch.int64)
        mask[0, t - 2 :] = 0
        runs.append({"input_ids": ids(n, t, vocab), "attention_mask": mask})
    return runs


def sentence(*names):
    return {name: {0: DYNAMIC, 1: DYNAMIC} for name in names}


def main():
    torch.manual_seed(1)
    write(
        "mlp", Mlp().eval(), [{"x": torch.randn(n, 4)} for n in (2, 3)], {"x": {0: torch.export.Dim("batch", max=64)}}
    )
    runs = [{"input_ids": ids(n, t, 13)} for n, t in ((2, 6), (3, 4))]
    write("gpt", Gpt().eval().double(), runs, sentence("input_ids"))
    runs = [{"input_ids": ids(n, t, 9), "position_ids": torch.arange(t).repeat(n, 1)} for n, t in ((2, 5), (3, 4))]
    write("llama", Llama().eval().double(), runs, sentence("input_ids", "position_ids"))
    for core in (False, True):
        encoder = Encoder(core).eval().double()
        write("encoder" + "_core" * core, encoder, padded_runs(11), sentence("input_ids", "attention_mask"), core)
    runs = [{"image": torch.randn(n, 3, 8, 8, dtype=torch.float64)} for n in (2, 3)]
    write("cnn_core", Cnn().eval().double(), runs, {"image": {0: DYNAMIC}}, True)
    runs = [{"x": torch.randn(n, 2), "y": torch.randn(m, 3)} for n, m in ((2, 4), (5, 3))]
    write("guards", Guards(), runs, {"x": {0: DYNAMIC}, "y": {0: DYNAMIC}}, gradients=False)
    runs = [{"x": torch.randn(n, 3), "n": torch.tensor(2)} for n in (4, 2)]
    write("prefix", Prefix(), runs, {"x": {0: DYNAMIC}}, gradients=False)
    runs = [{"x": sign * torch.rand(n, 4, dtype=torch.float64)} for n, sign in ((3, 1), (5, -1))]
    write("control", Control().double(), runs, {"x": {0: DYNAMIC}})
    write("experts", Experts(), [{"x": torch.randn(n, 8)} for n in (5, 3)], {"x": {0: DYNAMIC}})
    write("counter", Counter(), [{"x": torch.randn(2, 3)}] * 2, {"x": {0: DYNAMIC}}, True, False)


if __name__ == "__main__":
    sys.exit(main())
