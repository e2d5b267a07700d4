"""Prints tests/pretrained/experts_reference.h: a mixture of experts with a capacity in PyTorch, in f64.

The capacity, the order of the choices and the two losses are those of ExpertsOptions::capacity_factor,
load_balancing_loss() and router_z_loss(). Weights and inputs are sines, as in the test.
"""
import math

import torch

TOKENS, D, FF, EXPERTS, CHOSEN, FACTOR = 10, 4, 3, 3, 2, 0.9


def sines(seed, *shape):
    count = math.prod(shape)
    return torch.sin(torch.arange(count, dtype=torch.float64) * 1.7 + seed).reshape(shape)


x = sines(0.3, TOKENS, D).requires_grad_()
gate = sines(1.0, EXPERTS, D).requires_grad_()
layers = [[sines(10.0 * e + k, *shape) for k, shape in enumerate([(FF, D), (FF, D), (D, FF)])] for e in range(EXPERTS)]

logits = x @ gate.T
probabilities = logits.softmax(-1)
weights, choices = probabilities.topk(CHOSEN, -1)
weights = weights / weights.sum(-1, keepdim=True)

capacity = math.ceil(FACTOR * TOKENS * CHOSEN / EXPERTS)
kept, load = torch.zeros_like(weights), [0] * EXPERTS
for k in range(CHOSEN):
    for t in range(TOKENS):
        expert = int(choices[t, k])
        kept[t, k] = load[expert] < capacity
        load[expert] += 1

y = torch.zeros_like(x)
for k in range(CHOSEN):
    for t in range(TOKENS):
        gate_proj, up, down = layers[int(choices[t, k])]
        hidden = torch.nn.functional.silu(gate_proj @ x[t]) * (up @ x[t])
        y = y + torch.nn.functional.one_hot(torch.tensor(t), TOKENS)[:, None] * (weights[t, k] * kept[t, k]) * (down @ hidden)

share = torch.nn.functional.one_hot(choices, EXPERTS).double().mean((0, 1))
balance = EXPERTS * (share * probabilities.mean(0)).sum()
z = torch.logsumexp(logits, -1).square().mean()
loss = y.square().sum() + balance + z
gradient_x, gradient_gate = torch.autograd.grad(loss, [x, gate])


def show(name, tensor):
    values = ", ".join(f"{v:.17g}" for v in tensor.detach().reshape(-1).tolist())
    return f"inline const std::vector<double> {name} = {{{values}}};"


print(f"""#pragma once

#include <vector>

/// Made by tests/pretrained/experts_reference.py with PyTorch.
namespace lathe::test::experts_reference {{

{show("kept", kept)}
{show("y", y)}
{show("gradient_of_x", gradient_x)}
{show("gradient_of_gate", gradient_gate)}
inline constexpr double balance = {balance.item():.17g}, z = {z.item():.17g};

}}  // namespace lathe::test::experts_reference""")
