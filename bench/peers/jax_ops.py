"""The ops of models.py in JAX, for jax.jit."""
import jax
import jax.numpy as jnp
import numpy as np

import models

relu, silu = jax.nn.relu, jax.nn.silu


def embedding(ids, table):
    return table[ids]


def linear(x, weight, bias=None):
    y = jnp.einsum('...i,oi->...o', x, weight)
    return y if bias is None else y + bias


def linear_in_out(x, weight, bias):
    return x @ weight + bias


def split(x, parts):
    return jnp.split(x, parts, -1)


def layer_norm(x, weight, bias, eps):
    mean = x.mean(-1, keepdims=True)
    centred = x - mean
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + eps) * weight + bias


def rms_norm(x, weight, eps):
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def gelu_tanh(x):
    return jax.nn.gelu(x, approximate=True)


def heads(x, h):
    """[B, S, h*d] -> [B, S, h, d], the layout of jax.nn.dot_product_attention."""
    return x.reshape(x.shape[0], x.shape[1], h, -1)


def merge(x):
    """[B, S, h, d] -> [B, S, h*d]"""
    return x.reshape(x.shape[0], x.shape[1], -1)


def attention(q, k, v, causal=False, mask=None):
    return jax.nn.dot_product_attention(q, k, v, mask=mask, is_causal=causal)


def cached_attention(p, names, q, k, v, position):
    """q, k, v [1, h*d]; caches [h, context, d], into which the rows of k and v go."""
    h, context, d = p[names[0]].shape
    for name, row in zip(names, (k, v)):
        p[name] = jax.lax.dynamic_update_slice_in_dim(p[name], row.reshape(h, 1, d), position[0], 1)
    keys, values = (p[name] for name in names)
    scores = jnp.einsum('hd,hcd->hc', q.reshape(h, d), keys) / np.sqrt(d)
    weights = jax.nn.softmax(jnp.where(jnp.arange(context) <= position, scores, -jnp.inf))
    return jnp.einsum('hc,hcd->hd', weights, values).reshape(1, h * d)


def cross_entropy(logits, targets, padding=None):
    of_target = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
    losses = jax.nn.logsumexp(logits, -1) - of_target
    if padding is None:
        return losses.mean()
    kept = targets != padding
    return jnp.where(kept, losses, 0).sum() / kept.sum()


def lower_triangle(n):
    return jnp.tril(jnp.ones((n, n), bool))


def sinusoids(n, d):
    return models.sinusoid_table(np, n, d)


def rotary(n, d):
    """[n, 1, d]: heads stand after positions."""
    return tuple(t[:, None, :] for t in models.rotary_tables(np, n, d))


def rotate(x, cos, sin):
    low, high = jnp.split(x, 2, -1)
    return x * cos + jnp.concatenate((-high, low), -1) * sin
