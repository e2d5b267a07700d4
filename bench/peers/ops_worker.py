"""One peer's single ops as a process that waits for commands: bench/run_ops.py starts it; the commands are those of
bench/ops.cpp. ops_worker.py eager|compile THREADS"""
import sys

import torch
import torch.nn.functional as F

from serve import serve, wrapper


def attention(batch, heads, length, d, causal, backward):
    torch.manual_seed(1)
    q, k, v, dy = (torch.randn(batch, heads, length, d) for _ in range(4))

    def forward(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal))
    if not backward:
        def run():
            with torch.no_grad():
                forward(q, k, v)
        return run
    for x in (q, k, v):
        x.requires_grad_()

    def both():
        q.grad = k.grad = v.grad = None
        forward(q, k, v).backward(dy)
    return both


def convolution(dims, batch, channels, out, size, kernel, stride, padding, backward):
    torch.manual_seed(1)
    x, w = torch.randn(batch, channels, *[size] * dims), torch.randn(out, channels, *[kernel] * dims)
    apply = F.conv1d if dims == 1 else F.conv2d

    def forward():
        return F.relu(apply(x, w, stride=stride, padding=padding))
    if not backward:
        def run():
            with torch.no_grad():
                forward()
        return run
    x.requires_grad_()
    w.requires_grad_()

    def both():
        x.grad = w.grad = None
        y = forward()
        y.backward(y.detach() * 0.5)
    return both


def memory(rows, columns, name, wrap):
    """The op as PyTorch has it; of backward passes the backward alone, from a graph that is kept."""
    torch.manual_seed(1)
    op, backward = name.removesuffix(' backward'), name.endswith(' backward')
    x, dy = torch.randn(rows, columns), torch.randn(rows, columns)
    weight, bias = torch.ones(columns), torch.zeros(columns)
    ids = torch.arange(rows) * 7919 % 50257
    targets = torch.arange(rows) * 7919 % columns
    if name == 'AdamW':
        parameter = torch.nn.Parameter(x)
        parameter.grad = dy
        return torch.optim.AdamW([parameter], fused=True).step
    if name == 'global norm':
        return lambda: torch.linalg.vector_norm(x)
    if name.startswith('transpose'):
        z, y = torch.randn(columns, rows), torch.empty(columns, rows)
        return (lambda: torch.add(x.t(), z, out=y)) if name.endswith('add') else (lambda: y.copy_(x.t()))
    if name == 'take along':
        indices, y = (torch.arange(rows * columns) * 7919 % columns).view(rows, columns), torch.empty(rows, columns)
        return lambda: torch.gather(x, 1, indices, out=y)
    table = torch.randn(50257, columns) if op == 'embedding' else None
    functions = {
        'softmax': lambda x: F.softmax(x, -1),
        'layer norm': lambda x: F.layer_norm(x, (columns,), weight, bias),
        'rms norm': lambda x: F.rms_norm(x, (columns,), weight, 1e-5),
        'gelu': lambda x: F.gelu(x, approximate='tanh'),
        'cross entropy': lambda x: F.cross_entropy(x, targets),
        'cross entropy + gradient': lambda x: F.cross_entropy(x, targets),
        'embedding': lambda table: F.embedding(ids, table),
    }
    if op not in functions:
        return None
    function = wrap(functions[op])
    argument = table if op == 'embedding' else x
    if not backward and '+ gradient' not in name:
        def run():
            with torch.no_grad():
                function(argument)
        return run
    argument.requires_grad_()
    trained = [argument]
    if 'norm' in op:
        trained += [w.requires_grad_() for w in ((weight, bias) if op == 'layer norm' else (weight,))]
    if '+ gradient' in name:
        return lambda: torch.autograd.grad(function(argument), trained)
    y = function(argument)
    return lambda: torch.autograd.grad(y, trained, dy, retain_graph=True)


def main():
    wrap = wrapper(sys.argv[1])

    def open_case(words):
        if words[0] == 'memory':
            run = memory(int(words[1]), int(words[2]), ' '.join(words[3:]), wrap)
            return run, {'known': run is not None}
        return {'attention': attention, 'convolution': convolution}[words[0]](*map(int, words[1:])), {}
    serve(int(sys.argv[2]), open_case)


if __name__ == '__main__':
    main()
