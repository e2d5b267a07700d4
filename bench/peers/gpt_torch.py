#!/usr/bin/env python3
"""One training step of the GPT of bench_training_step, in PyTorch eager: the peer measured beside it.

Usage: gpt_torch.py [layers d_model heads vocab batch sequence [steps]]
Needs PyTorch and NumPy (Debian: python3-torch python3-numpy). The same model, batch, AdamW and clipping as
bench/training_step.cpp; prints milliseconds of each step and the median.
"""
import math, os, statistics, sys, time
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.c_attn, self.c_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.c_fc, self.mlp_proj = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.h, d // self.h).transpose(1, 2) for y in self.c_attn(self.ln_1(x)).split(d, 2))
        if hasattr(F, 'scaled_dot_product_attention'):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            w = (q @ k.transpose(-2, -1)) * (d // self.h) ** -0.5
            y = w.masked_fill(mask, -math.inf).softmax(-1) @ v
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(b, t, d))
        y = self.c_fc(self.ln_2(x))
        y = 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y ** 3)))
        return x + self.mlp_proj(y)


class Gpt(nn.Module):
    def __init__(self, layers, d, h, vocab, context):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(context, d)
        self.blocks = nn.ModuleList(Block(d, h) for _ in range(layers))
        self.ln_f = nn.LayerNorm(d)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens):
        ids, targets = tokens[:, :-1], tokens[:, 1:]
        t = ids.shape[1]
        mask = torch.triu(torch.ones(t, t, dtype=torch.bool), 1)
        x = self.wte(ids) + self.wpe.weight[:t]
        for block in self.blocks:
            x = block(x, mask)
        logits = self.ln_f(x) @ self.wte.weight.T
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def main():
    names = ['layers', 'd_model', 'heads', 'vocab', 'batch', 'sequence', 'steps']
    values = dict(zip(names, [6, 384, 6, 65, 4, 256, 10]))
    values.update(zip(names, map(int, sys.argv[1:])))
    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(1)
    model = Gpt(values['layers'], values['d_model'], values['heads'], values['vocab'], values['sequence'])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tokens = (torch.arange(values['batch'] * (values['sequence'] + 1)) * 7 % values['vocab']).view(values['batch'], -1)
    times = []
    for step in range(values['steps'] + 2):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = model(tokens)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        took = time.perf_counter() - start
        print(f'step {step} loss {loss.item():.4f} {1e3 * took:.1f} ms')
        if step >= 2:
            times.append(took)
    print(f'PyTorch {torch.__version__}, {torch.get_num_threads()} threads: median {1e3 * statistics.median(times):.1f} ms')


if __name__ == '__main__':
    main()
