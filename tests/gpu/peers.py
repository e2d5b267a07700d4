#!/usr/bin/env python3
"""PyTorch's times on this machine's GPU for the cases of gpu_measure, one line of JSON each: peers.py products|attention|steps [PART]

PART: only cases whose name has it.

Products are torch.matmul, attention is scaled_dot_product_attention, steps are bench/peers/models.py with AdamW,
eager and by torch.compile, bf16 parameters as in Lathe's cases.
"""
import json
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'bench/peers'))


def wanted(case):
    return len(sys.argv) < 3 or sys.argv[2] in case


def emit(program, case, **fields):
    print(json.dumps({'program': program, 'case': case, **fields}), flush=True)


def measure(program, case, run):
    """The median of as many runs as half a second holds, 3 to 50, after two."""
    if not wanted(case):
        return
    try:
        def once():
            torch.cuda.synchronize()
            start = time.perf_counter()
            run()
            torch.cuda.synchronize()
            return time.perf_counter() - start
        once()
        count = max(3, min(50, int(0.5 / once())))
        emit(program, case, seconds=sorted(once() for _ in range(count))[count // 2])
    except Exception as error:  # report a failing case, and continue with the next one
        emit(program, case, error=str(error).splitlines()[0][:200] if str(error) else type(error).__name__)
    torch.cuda.empty_cache()


def products():
    shapes = [(f'{n}^3', n, n, n, 'forward') for n in (4096, 8192)]
    for name, n, k in (('qkv', 2304, 768), ('proj', 768, 768), ('fc', 3072, 768), ('out', 768, 3072)):
        shapes += [(name, 65536, n, k, 'forward'), (f'{name} dX', 65536, n, k, 'dX'), (f'{name} dW', 65536, n, k, 'dW')]
    for dtype in (torch.bfloat16, torch.float32):
        for name, m, n, k, kind in shapes:
            x, w, dy = (torch.randn(s, dtype=dtype) for s in ((m, k), (n, k), (m, n)))
            runs = {'forward': lambda: x @ w.T, 'dX': lambda: dy @ w, 'dW': lambda: dy.T @ x}
            measure('PyTorch', f"product {name} {'bf16' if dtype == torch.bfloat16 else 'f32'}", runs[kind])


def attention():
    for d in (64, 128):
        length = 512
        while length <= 16384:
            shape = (16384 // length, 2048 // d, length, d)
            q, k, v, dy = (torch.randn(shape, dtype=torch.bfloat16) for _ in range(4))

            def forward():
                with torch.no_grad():
                    F.scaled_dot_product_attention(q, k, v, is_causal=True)

            def both():
                for t in (q, k, v):
                    t.grad = None
                F.scaled_dot_product_attention(q, k, v, is_causal=True).backward(dy)
            measure('PyTorch', f'attention d={d} S={length} forward', forward)
            for t in (q, k, v):
                t.requires_grad_()
            measure('PyTorch', f'attention d={d} S={length} both', both)
            length *= 2


def gpt2_parameters(layers=12, d=768, vocab=50257, context=1024):
    shapes = {'wte': (vocab, d), 'wpe': (context, d), 'ln_f.weight': (d,), 'ln_f.bias': (d,)}
    for i in range(layers):
        for norm in ('ln_1', 'ln_2'):
            shapes |= {f'h.{i}.{norm}.weight': (d,), f'h.{i}.{norm}.bias': (d,)}
        for name, rows, columns in (('attn.c_attn', d, 3 * d), ('attn.c_proj', d, d), ('mlp.c_fc', d, 4 * d),
                                    ('mlp.c_proj', 4 * d, d)):
            shapes |= {f'h.{i}.{name}.weight': (rows, columns), f'h.{i}.{name}.bias': (columns,)}
    return shapes


def llama_parameters(d=1024, heads=16, kv_heads=4, d_ff=2816, vocab=256):
    kv = d // heads * kv_heads
    return {'embed': (vocab, d), 'norm': (d,), 'lm_head': (vocab, d), 'layers.0.input_norm': (d,),
            'layers.0.post_norm': (d,), 'layers.0.q_proj': (d, d), 'layers.0.k_proj': (kv, d),
            'layers.0.v_proj': (kv, d), 'layers.0.o_proj': (d, d), 'layers.0.gate_proj': (d_ff, d),
            'layers.0.up_proj': (d_ff, d), 'layers.0.down_proj': (d, d_ff)}


class CudaOps:
    """torch_ops with its tables on the GPU, in the dtype of the values."""

    def __init__(self, dtype):
        import torch_ops
        self.ops, self.dtype = torch_ops, dtype
        self.tables = {}

    def __getattr__(self, name):
        return getattr(self.ops, name)

    def rotary(self, n, d):
        if (n, d) not in self.tables:
            self.tables[n, d] = tuple(t.cuda().to(self.dtype) for t in self.ops.rotary(n, d))
        return self.tables[n, d]


def step(case, shapes, sizes, model, vocab, batch, length, dtype):
    if not wanted(case):
        return
    for program in ('PyTorch eager', 'torch.compile'):
        try:
            torch.manual_seed(1)
            p = {name: (0.02 * torch.randn(shape)).to(dtype).requires_grad_() for name, shape in shapes.items()}
            tokens = {'tokens': torch.arange(batch * (length + 1)).mul(7919).remainder(vocab - 1).add(1)
                      .view(batch, length + 1)}
            optimizer = torch.optim.AdamW(p.values(), lr=1e-4, fused=True)
            ops = CudaOps(dtype)
            ops.rotary(length, sizes['d_model'] // sizes['heads'])

            def loss_of(p, batch, ops=ops):
                return model(ops, p, batch, sizes)
            if program == 'torch.compile':
                torch._dynamo.reset()
                loss_of = torch.compile(loss_of)

            def run():
                optimizer.zero_grad(set_to_none=True)
                loss_of(p, tokens).backward()
                optimizer.step()
        except Exception as error:
            emit(program, case, error=str(error).splitlines()[0][:200] if str(error) else type(error).__name__)
            continue
        measure(program, case, run)
        del p, optimizer


def steps():
    import models
    for dtype, name in ((torch.bfloat16, 'bf16'), (torch.float32, 'f32')):
        step(f'llama-block {name}', llama_parameters(), {'layers': 1, 'd_model': 1024, 'heads': 16, 'kv_heads': 4},
             models.llama, 256, 1, 512, dtype)
        for batch in (4, 16, 64):
            step(f'gpt2 B={batch} T=1024 {name}', gpt2_parameters(), {'layers': 12, 'd_model': 768, 'heads': 12},
                 models.gpt2, 50257, batch, 1024, dtype)


if __name__ == '__main__':
    torch.set_default_device('cuda')
    {'products': products, 'attention': attention, 'steps': steps}[sys.argv[1]]()
