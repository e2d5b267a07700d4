"""The models of examples/papers in PyTorch: tests/papers/make_reference.py compares with them, bench/run_papers.py
measures them. Each function takes a Store of parameters and inputs, and sizes, and returns the loss."""
import math

import numpy
import torch
import torch.nn.functional as F


class Store:
    """Creates tensors at their first use: by their names alone, with the same bits as tests/papers/values.h."""

    def __init__(self, dtype):
        self.dtype, self.parameters, self.inputs = dtype, {}, {}

    @staticmethod
    def draw(name, count):
        seed = 2166136261
        for byte in name.encode():
            seed = (seed ^ byte) * 16777619 % 2**32
        u = (numpy.arange(count, dtype=numpy.uint64) * 2654435761 + seed) % 2**32
        u ^= u >> 16
        u = u * 2246822519 % 2**32
        u ^= u >> 13
        u = u * 3266489917 % 2**32
        u ^= u >> 16
        return u.astype(numpy.float64) / 2**32

    def __call__(self, name, *shape):
        if name not in self.parameters:
            values = torch.tensor((self.draw(name, math.prod(shape)) - 0.5) * 0.6, dtype=self.dtype)
            self.parameters[name] = values.reshape(shape).requires_grad_()
        return self.parameters[name]

    def input(self, name, *shape):
        if name not in self.inputs:
            values = (self.draw(name, math.prod(shape)) - 0.5) * 2
            self.inputs[name] = torch.tensor(values, dtype=self.dtype).reshape(shape)
        return self.inputs[name]

    def numbers(self, name, limit, *shape):
        if name not in self.inputs:
            values = numpy.floor(self.draw(name, math.prod(shape)) * limit)
            self.inputs[name] = torch.tensor(values, dtype=torch.int64).reshape(shape)
        return self.inputs[name]


def linear(p, name, x, out, bias=True):
    return F.linear(x, p(name + '.weight', out, x.shape[-1]), p(name + '.bias', out) if bias else None)


def layer_norm(p, name, x):
    d = x.shape[-1]
    return F.layer_norm(x, (d,), p(name + '.weight', d), p(name + '.bias', d))


def rms_norm(p, name, x):
    d = x.shape[-1]
    return F.rms_norm(x, (d,), p(name + '.weight', d) if name else None, 1e-5)


def heads_of(x, h):
    return x.view(*x.shape[:2], h, -1).transpose(1, 2)


def merged(x):
    return x.transpose(1, 2).flatten(2)


def attention(p, name, x, h, causal):
    q, k, v = (heads_of(part, h) for part in linear(p, name + '.qkv', x, 3 * x.shape[-1]).chunk(3, -1))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return linear(p, name + '.out', merged(y), x.shape[-1])


def mlp(p, name, x, width, activation):
    return linear(p, name + '.down', activation(linear(p, name + '.up', x, width)), x.shape[-1])


def blocks(p, name, x, s, causal):
    for i in range(s['layers']):
        at = f'{name}.{i}'
        x = x + attention(p, at + '.attention', layer_norm(p, at + '.norm1', x), s['heads'], causal)
        x = x + mlp(p, at + '.mlp', layer_norm(p, at + '.norm2', x), 4 * s['width'], F.gelu)
    return layer_norm(p, name + '.norm', x)


def clip(p, s):
    b, t, d = s['batch'], s['length'], s['width']
    images, texts = p.input('images', b, 3, t, t), p.numbers('texts', s['vocabulary'], b, t)
    patches = F.conv2d(images, p('patches.weight', d, 3, 4, 4), p('patches.bias', d), stride=4).flatten(2).transpose(1, 2)
    image = linear(p, 'image_projection', blocks(p, 'image_encoder', patches, s, False).mean(1), d // 2, bias=False)
    words = F.embedding(texts, p('tokens', s['vocabulary'], d)) + p('positions', t, d)
    text = linear(p, 'text_projection', blocks(p, 'text_encoder', words, s, True)[:, -1], d // 2, bias=False)
    logits = F.normalize(image, dim=-1) @ F.normalize(text, dim=-1).T * p('scale').exp()
    labels = torch.arange(b)
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def sinusoidal(n, d, dtype):
    angles = torch.arange(n, dtype=torch.float64)[:, None] * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.stack([angles.sin(), angles.cos()], -1).reshape(n, d).to(dtype)


def diffusion_transformer(p, s):
    b, n, d, c = s['batch'], s['length'] // 2, s['width'], 4
    noisy, noise = (p.input(name, b, c, 2 * n, 2 * n) for name in ('noisy', 'noise'))
    t, label = p.input('t', b), p.numbers('label', s['vocabulary'], b)

    def modulate(x, shift, scale):
        return F.layer_norm(x, (d,), eps=1e-6) * (scale + 1) + shift

    pieces = noisy.view(b, c, n, 2, n, 2).permute(0, 2, 4, 1, 3, 5).reshape(b, n * n, c * 4)
    x = linear(p, 'patches', pieces, d) + sinusoidal(n * n, d, p.dtype)
    frequencies = torch.exp(torch.arange(d // 2, dtype=p.dtype) * (-math.log(10000.0) / (d // 2)))
    angles = t[:, None] * frequencies
    time = mlp(p, 'time', torch.cat([angles.cos(), angles.sin()], -1), d, F.silu)
    condition = F.silu(time + F.embedding(label, p('classes', s['vocabulary'], d)))
    for i in range(s['layers']):
        m = linear(p, f'{i}.condition', condition, 6 * d)[:, None].chunk(6, -1)
        x = x + m[2] * attention(p, f'{i}.attention', modulate(x, m[0], m[1]), s['heads'], False)
        x = x + m[5] * mlp(p, f'{i}.mlp', modulate(x, m[3], m[4]), 4 * d, lambda y: F.gelu(y, approximate='tanh'))
    m = linear(p, 'final_condition', condition, 2 * d)[:, None].chunk(2, -1)
    y = linear(p, 'final_layer', modulate(x, m[0], m[1]), c * 4).view(b, n, n, c, 2, 2)
    return F.mse_loss(y.permute(0, 3, 1, 4, 2, 5).reshape(noise.shape), noise)


def direct_preference(p, s):
    b, t, d, v = s['batch'], s['length'], s['width'], s['vocabulary']

    def log_probability(name, texts):
        table = p(name + '.tokens', v, d)
        x = blocks(p, name + '.blocks', F.embedding(texts[:, :-1], table) + p(name + '.positions', t, d), s, True)
        return F.log_softmax(x @ table.T, -1).gather(-1, texts[:, 1:, None]).sum((1, 2))

    chosen, rejected = (p.numbers(name, v, b, t + 1) for name in ('chosen', 'rejected'))
    preferred = log_probability('policy', chosen) - log_probability('policy', rejected)
    with torch.no_grad():
        expected = log_probability('reference', chosen) - log_probability('reference', rejected)
    return -F.logsigmoid(0.1 * (preferred - expected)).mean()


def gan(p, s):
    n, d = s['batch'] * s['length'], s['width']
    real, noise = p.input('real', n, d), p.input('noise', n, d // 2)

    def network(name, x, out, constant=False):
        def layer(which, y, size):
            w, b = p(f'{name}.{which}.weight', size, y.shape[-1]), p(f'{name}.{which}.bias', size)
            return F.linear(y, w.detach(), b.detach()) if constant else F.linear(y, w, b)
        x = F.leaky_relu(layer('one', x, 4 * d), 0.2)
        return layer('three', F.leaky_relu(layer('two', x, 4 * d), 0.2), out)

    made = network('generator', noise, d)
    critic_loss = F.softplus(-network('critic', real, 1)).mean() + F.softplus(network('critic', made.detach(), 1)).mean()
    return critic_loss + F.softplus(-network('critic', made, 1, constant=True)).mean()


def latent_attention(p, s):
    b, t, d, h = s['batch'], s['length'], s['width'], s['heads']
    plain, rotated, latent = d // h, d // h // 2, d // 2
    x = p.input('x', b, t, d)
    angles = torch.arange(t, dtype=torch.float64)[:, None] * 10000.0 ** (
        -torch.arange(0, rotated, 2, dtype=torch.float64) / rotated)
    cos, sin = (torch.cat([f(angles)] * 2, -1).to(p.dtype) for f in (torch.cos, torch.sin))

    def rotate(y):
        one, two = y.chunk(2, -1)
        return y * cos + torch.cat([-two, one], -1) * sin

    for i in range(s['layers']):
        y = rms_norm(p, '', x)
        q = linear(p, f'{i}.q_down', y, d // 2, bias=False)
        q = linear(p, f'{i}.q_up', rms_norm(p, f'{i}.q_norm', q), h * (plain + rotated), bias=False)
        q_plain, q_rotated = heads_of(q, h).split([plain, rotated], -1)
        c, k_rotated = linear(p, f'{i}.kv_down', y, latent + rotated, bias=False).split([latent, rotated], -1)
        kv = linear(p, f'{i}.kv_up', rms_norm(p, f'{i}.kv_norm', c), h * plain * 2, bias=False)
        k, v = heads_of(kv, h).chunk(2, -1)
        q = torch.cat([q_plain, rotate(q_rotated)], -1)
        k = torch.cat([k, rotate(k_rotated[:, None]).expand(b, h, t, rotated)], -1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(p, f'{i}.out', merged(y), d, bias=False)
    return F.mse_loss(x, p.input('target', b, t, d))


def scan_by_steps(u, a, b, c):
    """y[t] = c[t] . h[t], h[t] = exp(a[t]) h[t-1] + u[t] b[t]^T: the definition."""
    h, results = 0, []
    for t in range(u.shape[1]):
        h = a[:, t].exp()[..., None, None] * h + u[:, t][..., None] * b[:, t][:, None, None]
        results.append((h * c[:, t][:, None, None]).sum(-1))
    return torch.stack(results, 1)


def scan_by_chunks(u, a, b, c):
    """The same as listing 1 of the paper computes it."""
    z, t, h, p = u.shape
    size = min(64, t // 2)
    u, a = u.reshape(z, -1, size, h, p), a.reshape(z, -1, size, h)
    b, c = (x.reshape(z, -1, size, x.shape[-1]) for x in (b, c))
    sums = a.cumsum(2)
    gaps = sums[:, :, :, None] - sums[:, :, None]
    later = torch.ones(size, size, dtype=torch.bool).triu(1)[..., None]
    inside = torch.einsum('zkij,zkijh,zkjhp->zkihp', torch.einsum('zkin,zkjn->zkij', c, b),
                          gaps.masked_fill(later, -math.inf).exp(), u)
    states = torch.einsum('zkjn,zkjhp->zkhpn', b, u * (sums[:, :, -1:] - sums).exp()[..., None])
    before = [torch.zeros_like(states[:, 0])]
    for k in range(states.shape[1] - 1):
        before.append(sums[:, k, -1].exp()[..., None, None] * before[-1] + states[:, k])
    across = torch.einsum('zkin,zkhpn->zkihp', c, torch.stack(before, 1)) * sums.exp()[..., None]
    return (inside + across).reshape(z, t, h, p)


def mamba2(p, s, scan=scan_by_chunks):
    b, t, d, h = s['batch'], s['length'], s['width'], s['heads']
    inner, n = 2 * d, d // 2
    x = p.input('x', b, t, d)
    for i in range(s['layers']):
        gate, xbc, dt = linear(p, f'{i}.in', rms_norm(p, '', x), 2 * inner + 2 * n + h,
                               bias=False).split([inner, inner + 2 * n, h], -1)
        mixed = F.conv1d(xbc.transpose(1, 2), p(f'{i}.conv.weight', inner + 2 * n, 1, 4),
                         p(f'{i}.conv.bias', inner + 2 * n), padding=3, groups=inner + 2 * n)[..., :t]
        u, bs, cs = F.silu(mixed.transpose(1, 2)).split([inner, n, n], -1)
        dt, u = F.softplus(dt + p(f'{i}.dt_bias', h)), u.reshape(b, t, h, inner // h)
        y = scan(u * dt[..., None], -dt * p(f'{i}.a_log', h).exp(), bs, cs) + u * p(f'{i}.skip', h)[:, None]
        x = x + linear(p, f'{i}.out', rms_norm(p, f'{i}.norm', y.reshape(b, t, inner) * F.silu(gate)), d, bias=False)
    return F.mse_loss(x, p.input('target', b, t, d))


def mixture_of_experts(p, s, count=8, chosen=2):
    b, t, d, v = s['batch'], s['length'], s['width'], s['vocabulary']
    texts, table = p.numbers('texts', v, b, t + 1), p('tokens', v, d)
    x, extra = F.embedding(texts[:, :-1], table) + p('positions', t, d), 0
    for i in range(s['layers']):
        x = x + attention(p, f'{i}.attention', rms_norm(p, f'{i}.norm1', x), s['heads'], True)
        y, name = rms_norm(p, f'{i}.norm2', x).reshape(-1, d), f'{i}.experts'
        logits = linear(p, name + '.gate', y, count, bias=False)
        probabilities = logits.softmax(-1)
        weights, choices = probabilities.topk(chosen, -1)
        weights, result = weights / weights.sum(-1, keepdim=True), torch.zeros_like(y)
        for e in range(count):
            row, place = torch.where(choices == e)
            at, z = f'{name}.experts.{e}', y[row]
            up = F.silu(linear(p, at + '.gate_proj', z, 2 * d, bias=False)) * linear(p, at + '.up_proj', z, 2 * d, bias=False)
            result = result.index_add(0, row, linear(p, at + '.down_proj', up, d, bias=False) * weights[row, place, None])
        x = x + result.reshape(b, t, d)
        share = F.one_hot(choices, count).to(p.dtype).mean((0, 1))
        extra = extra + 1e-2 * count * (share * probabilities.mean(0)).sum() + 1e-3 * logits.logsumexp(-1).square().mean()
    return F.cross_entropy((rms_norm(p, '', x) @ table.T).reshape(-1, v), texts[:, 1:].reshape(-1)) + extra


def muon(p, s):
    n, d = s['batch'] * s['length'], s['width']
    x = p.input('x', n, d)
    for i in range(s['layers']):
        up = linear(p, f'{i}.up', x, 4 * d, bias=False)
        x = x + linear(p, f'{i}.down', F.relu(up).square(), d, bias=False)
    return F.mse_loss(x, p.input('target', n, d))


def physics_informed(p, s):
    n = s['batch'] * s['length']
    x, t = (p.input(name, n, 1).requires_grad_() for name in ('x', 't'))

    def u_of(x, t):
        y = torch.cat([x, t], 1)
        for i in range(s['layers'] + 1):
            y = torch.tanh(linear(p, str(i), y, s['width']))
        return linear(p, str(s['layers'] + 1), y, 1)

    u = u_of(x, t)
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    u_xx, = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    residual = u_t + u * u_x - 0.01 / math.pi * u_xx
    start = u_of(x, torch.zeros_like(x)) + torch.sin(math.pi * x)
    return residual.square().mean() + start.square().mean()


def resnet(p, s):
    b, n = s['batch'], s['length']
    images, labels = p.input('images', b, 3, n, n), p.numbers('labels', s['vocabulary'], b)

    def normalized(name, x, out, k, stride=1):
        y = F.conv2d(x, p(name + '.conv.weight', out, x.shape[1], k, k), None, stride, k // 2)
        return F.batch_norm(y, None, None, p(name + '.norm.weight', out), p(name + '.norm.bias', out), training=True)

    def bottleneck(name, x, width, stride):
        y = F.relu(normalized(name + '.narrow', x, width, 1))
        y = F.relu(normalized(name + '.middle', y, width, 3, stride))
        y = normalized(name + '.wide', y, 4 * width, 1)
        return F.relu(y + (x if x.shape[1] == 4 * width else normalized(name + '.skip', x, 4 * width, 1, stride)))

    x = F.max_pool2d(F.relu(normalized('first', images, s['width'], 7, 2)), 3, 2, 1)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(min(blocks, s['layers'])):
            x = bottleneck(f'stage{stage}.{block}', x, s['width'] << stage, 2 if stage and not block else 1)
    return F.cross_entropy(linear(p, 'classes', x.mean((2, 3)), s['vocabulary']), labels)


def u_net(p, s):
    b, n, c = s['batch'], s['length'], s['width']
    noisy, noise = (p.input(name, b, 3, n, n) for name in ('noisy', 'noise'))

    def conv(name, x, out, k, **options):
        return F.conv2d(x, p(name + '.weight', out, x.shape[1], k, k), p(name + '.bias', out), **options)

    def norm(name, x):
        return F.group_norm(x, 4, p(name + '.weight', x.shape[1]), p(name + '.bias', x.shape[1]))

    def residual(name, x, out, e):
        y = conv(name + '.conv1', F.silu(norm(name + '.norm1', x)), out, 3, padding=1)
        y = y + linear(p, name + '.time', e, out)[..., None, None]
        return conv(name + '.conv2', F.silu(norm(name + '.norm2', y)), out, 3, padding=1) + conv(name + '.skip', x, out, 1)

    def doubled(x):
        return F.interpolate(x, scale_factor=2, mode='nearest')

    e = F.silu(linear(p, 'time', p.input('t', b, 1), c))
    one = residual('one', conv('first', noisy, c, 3, padding=1), c, e)
    two = residual('two', conv('down1', one, c, 3, stride=2, padding=1), 2 * c, e)
    inner = residual('middle', conv('down2', two, 2 * c, 3, stride=2, padding=1), 2 * c, e)
    up = residual('up2', torch.cat([doubled(inner), two], 1), c, e)
    up = residual('up1', torch.cat([doubled(up), one], 1), c, e)
    return F.mse_loss(conv('last', F.silu(up), 3, 3, padding=1), noise)


def vae(p, s):
    n, d = s['batch'] * s['length'], s['width']
    x, noise = p.input('x', n, 4 * d), p.input('noise', n, d // 4)
    h = torch.tanh(linear(p, 'hidden', x, d))
    mean, log_variance = linear(p, 'mean', h, d // 4), linear(p, 'log_variance', h, d // 4)
    z = mean + noise * (0.5 * log_variance).exp()
    logits = linear(p, 'pixels', torch.tanh(linear(p, 'decoder', z, d)), 4 * d)
    reconstruction = F.binary_cross_entropy_with_logits(logits, torch.sigmoid(x), reduction='sum')
    return (reconstruction + 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum()) / n


def whisper_stem(p, s):
    b, frames, d = s['batch'], s['length'], s['width']
    sound, wanted = p.input('sound', b, 80, frames), p.input('wanted', b, frames // 2, d)

    def conv(name, x, **options):
        return F.conv1d(x, p(name + '.weight', d, x.shape[1], 3), p(name + '.bias', d), padding=1, **options)

    return F.mse_loss(F.gelu(conv('conv2', F.gelu(conv('conv1', sound)), stride=2)).transpose(1, 2), wanted)


PAPERS = [clip, diffusion_transformer, direct_preference, gan, latent_attention, mamba2, mixture_of_experts, muon,
          physics_informed, resnet, u_net, vae, whisper_stem]
