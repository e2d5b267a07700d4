"""Writes optimizer_cases.safetensors: parameters after 20 f64 steps of the reference optimizers.

pip install torch safetensors lion-pytorch schedulefree
"""
import pathlib

import numpy
import torch
from lion_pytorch import Lion
from safetensors.torch import save_file
from schedulefree import AdamWScheduleFree

SHAPES = {"a": (6, 4), "b": (4, 6), "c": (6, 4), "v": (5,)}
BIG = {"a": (30, 40), "v": (300,)}
# SOAP's bases are determined where the first gradient has full rank: these have dims of at most 4, or of more than 5.
SQUARE = {"a": (6, 4), "b": (4, 6), "c": (4, 4), "v": (5,), "t": (3, 4, 4)}
STEPS = 20


def values(shape, phase):
    count = int(numpy.prod(shape))
    return torch.tensor(0.5 * numpy.sin(1.0 + phase + numpy.arange(count)), dtype=torch.float64).reshape(shape)


def coefficients(shape, phase, step):
    count = int(numpy.prod(shape))
    return torch.tensor(numpy.cos(0.3 * numpy.arange(count) + 0.7 * step + phase), dtype=torch.float64).reshape(shape)


def train(make, shapes=SHAPES, names=None, after=None):
    """The gradient of a parameter p at a step is its coefficients + 0.1 p."""
    names = names or list(shapes)
    parameters = {name: torch.nn.Parameter(values(shapes[name], k)) for k, name in enumerate(names)}
    optimizer = make(list(parameters.values()))
    for step in range(1, STEPS + 1):
        for k, name in enumerate(names):
            p = parameters[name]
            p.grad = coefficients(shapes[name], k, step) + 0.1 * p.detach()
        optimizer.step()
    results = {name: p.detach().clone() for name, p in parameters.items()}
    if after:
        after(optimizer)
        results |= {name + ".average": p.detach().clone() for name, p in parameters.items()}
    return results


def schedule_free(parameters):
    optimizer = AdamWScheduleFree(parameters, lr=0.02, weight_decay=0.1, warmup_steps=5, foreach=False)
    optimizer.train()
    return optimizer


def muon(**options):
    # torch computes the iterations in bf16; the reference is the same code in f64.
    torch.bfloat16 = torch.float64
    return lambda parameters: torch.optim.Muon(parameters, lr=0.02, weight_decay=0.1, **options)


def dynamic_map(signed):
    """The values of the 8-bit map, by the definition in Dettmers 2015."""
    found = [0.0, 1.0]
    for exponent in range(7):
        cells = 2**exponent if signed else 2 ** (exponent + 1)
        edges = numpy.linspace(0.1, 1, cells + 1)
        middles = (edges[:-1] + edges[1:]) / 2 * 10.0 ** (exponent - 6)
        found += list(middles) + ([-m for m in middles] if signed else [])
    return numpy.sort(numpy.array(found))


class AdamW8bit:
    """AdamW in torch's order, with moments rounded blockwise to the nearest value of the map after each step."""

    def __init__(self, parameters, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.1):
        self.parameters, self.step_count = parameters, 0
        self.options = lr, beta1, beta2, eps, weight_decay
        self.moments = [[self.empty(p), self.empty(p)] for p in parameters]

    @staticmethod
    def empty(p):
        blocks = -(-p.numel() // 256)
        return numpy.zeros((blocks, 256))

    @staticmethod
    def rounded(x, table):
        scale = numpy.abs(x).max(axis=1, keepdims=True)
        relative = x / numpy.where(scale > 0, scale, 1)
        nearest = numpy.abs(relative[..., None] - table).argmin(axis=-1)
        return table[nearest] * scale.astype(numpy.float32).astype(numpy.float64)

    def step(self):
        lr, beta1, beta2, eps, decay = self.options
        self.step_count += 1
        t = self.step_count
        for p, moments in zip(self.parameters, self.moments):
            g = numpy.zeros(moments[0].size)
            g[: p.numel()] = p.grad.numpy().reshape(-1)
            g = g.reshape(moments[0].shape)
            m = beta1 * moments[0] + (1 - beta1) * g
            v = beta2 * moments[1] + (1 - beta2) * g * g
            moments[0], moments[1] = self.rounded(m, dynamic_map(True)), self.rounded(v, dynamic_map(False))
            move = lr / (1 - beta1**t) * m / (numpy.sqrt(v) / numpy.sqrt(1 - beta2**t) + eps)
            move = torch.tensor(move.reshape(-1)[: p.numel()].reshape(p.shape))
            with torch.no_grad():
                p.copy_(p * (1 - lr * decay) - move)


class SOAP:
    """Vyas et al. 2024, algorithm 3, in the order of the authors' soap.py."""

    def __init__(self, parameters, lr=0.02, beta1=0.95, beta2=0.9, eps=1e-8, weight_decay=0.1, frequency=3, largest_dim=5,
                 normalize=False):
        self.parameters, self.step_count = parameters, -1
        self.options = lr, beta1, beta2, eps, weight_decay, frequency, normalize
        self.states = []
        for p in parameters:
            sides = [d for d, n in enumerate(p.shape) if p.dim() > 1 and n <= largest_dim]
            self.states.append({"m": numpy.zeros(p.shape), "v": numpy.zeros(p.shape),
                                "gram": {d: numpy.zeros((p.shape[d],) * 2) for d in sides}})

    @staticmethod
    def project(x, bases, back=False):
        for d, q in bases.items():
            x = numpy.moveaxis(numpy.tensordot(x, q, (d, 1 if back else 0)), -1, d)
        return x

    def move_bases(self, state, g):
        beta2, frequency = self.options[2], self.options[5]
        for d, gram in state["gram"].items():
            others = [a for a in range(g.ndim) if a != d]
            state["gram"][d] = beta2 * gram + (1 - beta2) * numpy.tensordot(g, g, (others, others))
        if self.step_count == 0:
            state["basis"] = {d: numpy.linalg.eigh(gram)[1][:, ::-1] for d, gram in state["gram"].items()}
        elif self.step_count % frequency == 0:
            m = self.project(state["m"], state["basis"], back=True)
            for d, q in state["basis"].items():
                gram = state["gram"][d]
                order = numpy.argsort(-numpy.diag(q.T @ gram @ q))
                state["v"] = numpy.take(state["v"], order, d)
                state["basis"][d] = numpy.linalg.qr(gram @ q[:, order])[0]
            state["m"] = self.project(m, state["basis"])

    def step(self):
        lr, beta1, beta2, eps, decay, _, normalize = self.options
        self.step_count += 1
        t = self.step_count
        for p, state in zip(self.parameters, self.states):
            g = p.grad.numpy()
            if t > 0:
                projected = self.project(g, state["basis"])
                state["m"] = beta1 * state["m"] + (1 - beta1) * projected
                state["v"] = beta2 * state["v"] + (1 - beta2) * projected**2
                move = self.project(state["m"] / (numpy.sqrt(state["v"]) + eps), state["basis"], back=True)
                if normalize:
                    move = move / (1e-30 + numpy.sqrt((move**2).mean()))
                rate = lr * numpy.sqrt(1 - beta2**t) / (1 - beta1**t)
                with torch.no_grad():
                    p.copy_((p - rate * torch.tensor(move)) * (1 - lr * decay))
            self.move_bases(state, g)


def one_cycle():
    p = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([p], lr=1.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=STEPS, cycle_momentum=False)
    rates = []
    for _ in range(STEPS):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return {"rates": torch.tensor(rates, dtype=torch.float64)}


NETWORK = {"up": (4, 6), "down": (6, 3)}


def network_losses(p, step):
    """Two losses of a network with one hidden layer: against the targets y, and against -y."""
    x, y = coefficients((5, 4), 0, step), coefficients((5, 3), 1, step)
    result = torch.tanh(x @ p["up"]) @ p["down"]
    return ((result - y) ** 2).mean(), ((result + y) ** 2).mean()


def network():
    return {name: torch.nn.Parameter(values(shape, k)) for k, (name, shape) in enumerate(NETWORK.items())}


def sam(rho=0.05):
    """Foret et al. 2021, algorithm 1: the gradient at p + rho g / |g| moves p, here by AdamW."""
    p = network()
    optimizer = torch.optim.AdamW(p.values(), lr=0.02, weight_decay=0.1)
    for step in range(1, STEPS + 1):
        gradients = torch.autograd.grad(network_losses(p, step)[0], list(p.values()))
        norm = torch.sqrt(sum((g * g).sum() for g in gradients))
        at = {name: (v + rho * g / (norm + 1e-12)).detach().requires_grad_()
              for (name, v), g in zip(p.items(), gradients)}
        for v, g in zip(p.values(), torch.autograd.grad(network_losses(at, step)[0], list(at.values()))):
            v.grad = g
        optimizer.step()
    return {name: v.detach().clone() for name, v in p.items()}


def two_losses():
    """The first loss moves `up` by AdamW, the second one `down` by SGD, both from the same parameters."""
    p = network()
    up = torch.optim.AdamW([p["up"]], lr=0.02, weight_decay=0.1)
    down = torch.optim.SGD([p["down"]], lr=0.05, momentum=0.9)
    for step in range(1, STEPS + 1):
        first, second = network_losses(p, step)
        p["up"].grad = torch.autograd.grad(first, p["up"], retain_graph=True)[0]
        p["down"].grad = torch.autograd.grad(second, p["down"])[0]
        up.step()
        down.step()
    return {name: v.detach().clone() for name, v in p.items()}


matrices = ["a", "b", "c"]
cases = {
    "sgd": train(lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "adam": train(lambda p: torch.optim.Adam(p, lr=0.02, weight_decay=0.1)),
    "adamw": train(lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.1)),
    "lion": train(lambda p: Lion(p, lr=0.01, weight_decay=0.1)),
    "adafactor": train(lambda p: torch.optim.Adafactor(p, lr=0.05, weight_decay=0.1)),
    "schedule_free": train(schedule_free, after=lambda optimizer: optimizer.eval()),
    "adamw_8bit": train(AdamW8bit, shapes=BIG),
    "one_cycle": one_cycle(),
    "sam": sam(),
    "two_losses": two_losses(),
    "soap": train(SOAP, shapes=SQUARE),
    "soap_normalized": train(lambda p: SOAP(p, largest_dim=100, frequency=1, normalize=True), shapes={"c": (4, 4)}),
    "muon": train(muon(), names=matrices),
    "muon_like_adamw": train(muon(adjust_lr_fn="match_rms_adamw", nesterov=False), names=matrices),
}
here = pathlib.Path(__file__).parent
save_file({f"{case}.{name}": t for case, tensors in cases.items() for name, t in tensors.items()},
          here / "optimizer_cases.safetensors")
