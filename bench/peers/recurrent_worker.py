"""PyTorch's recurrent layers and recurrences as a process that waits for commands: bench/run_recurrent.py starts it;
the commands are those of bench/workers/recurrent.cpp. recurrent_worker.py eager|compile THREADS"""
import sys

import torch
import torch.nn.functional as F

from serve import serve, wrapper


def layer(kind, batch, length, inner, hidden, train):
    torch.manual_seed(1)
    x = torch.randn(batch, length, inner)
    module = {'lstm': torch.nn.LSTM, 'gru': torch.nn.GRU}[kind](inner, hidden, batch_first=True)
    parameters = list(module.parameters())
    if not train:
        def run():
            with torch.no_grad():
                module(x)
        return run

    def step():
        loss = module(x)[0].square().mean()
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            torch._foreach_add_(parameters, gradients, alpha=-1e-3)
    return step


def gated_delta_rule(q, k, v, g, beta, chunk=64):
    """torch_chunk_gated_delta_rule of transformers (Apache 2.0), for lengths that are a multiple of the chunk."""
    q, k = (x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6) for x in (q, k))
    q, k, v, beta, g = (x.transpose(1, 2).contiguous() for x in (q, k, v, beta, g))
    q = q / q.shape[-1]**0.5
    v_beta, k_beta = v * beta.unsqueeze(-1), k * beta.unsqueeze(-1)
    q, k, v, k_beta, v_beta = (x.reshape(*x.shape[:2], -1, chunk, x.shape[-1]) for x in (q, k, v, k_beta, v_beta))
    g = g.reshape(*g.shape[:2], -1, chunk).cumsum(-1)
    mask = torch.triu(torch.ones(chunk, chunk, dtype=torch.bool))
    decay = (g.unsqueeze(-1) - g.unsqueeze(-2)).tril().exp().tril()
    attn = -((k_beta @ k.transpose(-1, -2)) * decay).masked_fill(mask, 0)
    for i in range(1, chunk):
        row, sub = attn[..., i, :i].clone(), attn[..., :i, :i].clone()
        attn[..., i, :i] = row + (row.unsqueeze(-1) * sub).sum(-2)
    attn = attn + torch.eye(chunk)
    value, k_decayed = attn @ v_beta, attn @ (k_beta * g.exp().unsqueeze(-1))
    S = torch.zeros(*k.shape[:2], k.shape[-1], v.shape[-1])
    outputs = []
    mask = torch.triu(mask, 1)
    for i in range(k.shape[2]):
        q_i, k_i = q[:, :, i], k[:, :, i]
        attn_i = (q_i @ k_i.transpose(-1, -2) * decay[:, :, i]).masked_fill(mask, 0)
        v_new = value[:, :, i] - k_decayed[:, :, i] @ S
        outputs.append((q_i * g[:, :, i, :, None].exp()) @ S + attn_i @ v_new)
        S = S * g[:, :, i, -1, None, None].exp() + (
            k_i * (g[:, :, i, -1, None] - g[:, :, i]).exp()[..., None]).transpose(-1, -2) @ v_new
    return torch.stack(outputs, 2).flatten(2, 3).transpose(1, 2)


def segsum(x):
    total = x.cumsum(-1)
    difference = total[..., :, None] - total[..., None, :]
    return difference.masked_fill(~torch.tril(torch.ones(x.shape[-1], x.shape[-1], dtype=torch.bool)), -torch.inf)


def state_space(X, dt, a, B, C, chunk=64):
    """ssd_minimal_discrete of the paper (listing 1), with einsums of two operands."""
    H = X.shape[2]
    A = (dt * a).unflatten(1, (-1, chunk)).permute(0, 3, 1, 2)
    X = (X * dt.unsqueeze(-1)).unflatten(1, (-1, chunk))
    B, C = (x.expand(-1, -1, H, -1).unflatten(1, (-1, chunk)) for x in (B, C))
    total = A.cumsum(-1)
    weights = torch.einsum('bclhn,bcshn->bhcls', C, B) * segsum(A).exp()
    within = torch.einsum('bhcls,bcshp->bclhp', weights, X)
    decayed = B * (total[..., -1:] - total).exp().permute(0, 2, 3, 1).unsqueeze(-1)
    states = torch.einsum('bclhn,bclhp->bchpn', decayed, X)
    states = torch.cat([torch.zeros_like(states[:, :1]), states], 1)
    between = segsum(F.pad(total[..., -1], (1, 0))).exp()
    states = torch.einsum('bhzc,bchpn->bzhpn', between, states)[:, :-1]
    before = torch.einsum('bclhn,bchpn->bclhp', C, states) * total.exp().permute(0, 2, 3, 1).unsqueeze(-1)
    return (within + before).flatten(1, 2)


def rule(kind, batch, length, heads, size, train, wrap):
    torch.manual_seed(1)
    def wide(h):
        return torch.randn(batch, length, h, size)
    steps = (batch, length, heads)
    if kind == 'delta':
        operands = [wide(heads), wide(heads), wide(heads), torch.randn(steps), torch.randn(steps)]
        def function(q, k, v, g, beta):
            return gated_delta_rule(q, k, v, -F.softplus(g), beta.sigmoid())
    else:
        operands = [wide(heads), torch.randn(steps), torch.randn(heads), wide(1), wide(1)]
        def function(x, dt, a, b, c):
            return state_space(x, F.softplus(dt), -a.exp(), b, c)
    function = wrap(function)
    if not train:
        def run():
            with torch.no_grad():
                function(*operands)
        return run
    for operand in operands:
        operand.requires_grad_()

    def both():
        y = function(*operands)
        torch.autograd.grad(y, operands, y.detach() * 0.5)
    return both


def main():
    wrap = wrapper(sys.argv[1])

    def open_case(words):
        kind, sizes = words[0], map(int, words[1:])
        return (layer(kind, *sizes) if kind in ('lstm', 'gru') else rule(kind, *sizes, wrap)), {}
    serve(int(sys.argv[2]), open_case)


if __name__ == '__main__':
    main()
