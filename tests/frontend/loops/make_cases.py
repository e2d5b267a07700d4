"""Writes recurrent_cases.safetensors: results and gradients of recurrent layers and recurrences in f64.

The layers are those of torch.nn and of transformers, which compute in f64 here where they would in f32; the
recurrences are written step by step. Names and operands are those of tests/support/graphs/recurrent_cases.h.

pip install torch safetensors transformers==5.2.0
"""
import pathlib

import numpy
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers.models.mamba2.configuration_mamba2 import Mamba2Config
from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer
from transformers.models.qwen3_next.configuration_qwen3_next import Qwen3NextConfig
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextGatedDeltaNet

torch.set_default_dtype(torch.float64)
# The layers of transformers cast to f32.
plain_to = torch.Tensor.to
torch.Tensor.float = torch.Tensor.double
torch.Tensor.to = lambda self, *a, **k: plain_to(
    self, *(torch.float64 if x is torch.float32 else x for x in a),
    **{n: torch.float64 if x is torch.float32 else x for n, x in k.items()})


def filled(shape, phase):
    count = int(numpy.prod(shape))
    return torch.tensor(0.7 * numpy.sin(1.0 + phase + 1.7 * numpy.arange(count))).reshape(shape)


def coefficients(shape):
    count = int(numpy.prod(shape))
    return torch.tensor(numpy.cos(0.3 * numpy.arange(count))).reshape(shape)


def layer_case(make, inputs, run):
    """The operands are the inputs and then the parameters in the order of their declaration."""
    layer = make()
    parameters = dict(layer.named_parameters())
    shapes = inputs + [tuple(p.shape) for p in parameters.values()]

    def function(*operands):
        own = dict(zip(parameters, operands[len(inputs):]))
        return torch.func.functional_call(Runner(layer, run), {"layer." + n: p for n, p in own.items()}, operands[:len(inputs)])

    return function, shapes


class Runner(torch.nn.Module):
    def __init__(self, layer, run):
        super().__init__()
        self.layer, self.run = layer, run

    def forward(self, *inputs):
        return self.run(self.layer, *inputs)


def lstm(states=0, **options):
    """x [2, 3, 3], 2 hidden units; `states` is their number, 0 for none given."""
    def run(layer, x, *first):
        output, (h, c) = layer(x, first) if first else layer(x)
        return output, h, c

    return layer_case(lambda: torch.nn.LSTM(3, 2, batch_first=True, **options), [(2, 3, 3)] + [(states, 2, 2)] * (2 if states else 0), run)


def gru(states=0, **options):
    return layer_case(lambda: torch.nn.GRU(3, 2, batch_first=True, **options), [(2, 3, 3)] + [(states, 2, 2)] * (1 if states else 0),
                      lambda layer, x, *first: layer(x, *first))


def delta_rule(q, k, v, g, beta, initial=None):
    g, beta = -F.softplus(g), torch.sigmoid(beta)
    B, T, H, d = k.shape
    S = torch.zeros(B, H, d, v.shape[-1]) if initial is None else initial
    outputs = []
    for t in range(T):
        S = S * g[:, t].exp()[..., None, None]
        delta = beta[:, t, :, None] * (v[:, t] - torch.einsum("bhk,bhkv->bhv", k[:, t], S))
        S = S + torch.einsum("bhk,bhv->bhkv", k[:, t], delta)
        outputs.append(torch.einsum("bhk,bhkv->bhv", q[:, t], S) / d**0.5)
    return torch.stack(outputs, 1), S


def state_space(x, dt, a, b, c, skip, initial=None):
    dt, a = F.softplus(dt), -a.exp()
    B, T, H, p = x.shape
    b, c = (y.repeat_interleave(H // y.shape[2], 2) for y in (b, c))
    h = torch.zeros(B, H, b.shape[-1], p) if initial is None else initial
    outputs = []
    for t in range(T):
        h = h * (dt[:, t] * a).exp()[..., None, None] + torch.einsum("bhn,bhp->bhnp", b[:, t], dt[:, t, :, None] * x[:, t])
        outputs.append(torch.einsum("bhnp,bhn->bhp", h, c[:, t]) + skip[:, None] * x[:, t])
    return torch.stack(outputs, 1), h


def mamba2():
    config = Mamba2Config(num_heads=4, head_dim=2, hidden_size=4, state_size=3, expand=2, conv_kernel=3, n_groups=2,
                          chunk_size=4, use_bias=True, use_conv_bias=True)
    return layer_case(lambda: Mamba2Mixer(config, 0).double(), [(2, 6, 4)], lambda layer, x: (layer(x),))


def delta_net():
    config = Qwen3NextConfig(hidden_size=4, linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=3,
                             linear_value_head_dim=2, linear_conv_kernel_dim=3)
    return layer_case(lambda: Qwen3NextGatedDeltaNet(config, 0).double(), [(2, 6, 4)], lambda layer, x: (layer(x),))


delta_shapes = [(2, 7, 2, 3), (2, 7, 2, 3), (2, 7, 2, 2), (2, 7, 2), (2, 7, 2)]
space_shapes = [(2, 7, 4, 2), (2, 7, 4), (4,), (2, 7, 2, 3), (2, 7, 2, 3), (4,)]
CASES = {
    "lstm": lstm(),
    "lstm of given states": lstm(1),
    "lstm without biases": lstm(bias=False),
    "lstm of two layers": lstm(2, num_layers=2),
    "bidirectional lstm": lstm(2, bidirectional=True),
    "bidirectional lstm of two layers": lstm(4, num_layers=2, bidirectional=True),
    "gru": gru(),
    "gru of given states": gru(1),
    "gru without biases": gru(bias=False),
    "gru of two layers": gru(2, num_layers=2),
    "bidirectional gru of two layers": gru(4, num_layers=2, bidirectional=True),
    "gated delta rule": (delta_rule, delta_shapes),
    "gated delta rule from a state": (delta_rule, delta_shapes + [(2, 2, 3, 2)]),
    "state space": (state_space, space_shapes),
    "state space from a state": (state_space, space_shapes + [(2, 4, 3, 2)]),
    "mamba2": mamba2(),
    "gated delta net": delta_net(),
}

results = {}
for name, (function, shapes) in CASES.items():
    operands = [filled(shape, k).requires_grad_() for k, shape in enumerate(shapes)]
    found = function(*operands)
    sum((y * coefficients(y.shape)).sum() for y in found).backward()
    for r, y in enumerate(found):
        results[f"{name}.y{r}"] = y.detach().contiguous()
    for k, operand in enumerate(operands):
        results[f"{name}.{k}"] = operand.grad.contiguous()
    assert all(r.dtype == torch.float64 for r in results.values()), name
    print(name, shapes)
save_file(results, pathlib.Path(__file__).parent / "recurrent_cases.safetensors")
