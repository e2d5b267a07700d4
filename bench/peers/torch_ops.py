"""The ops of models.py in PyTorch: its own fused functions where available."""
import functools

import numpy as np
import torch
import torch.nn.functional as F

import models

embedding = F.embedding
linear = F.linear
relu, silu = F.relu, F.silu


def linear_in_out(x, weight, bias):
    return torch.addmm(bias, x.reshape(-1, x.shape[-1]), weight).view(*x.shape[:-1], -1)


def split(x, parts):
    return x.chunk(parts, -1)


def layer_norm(x, weight, bias, eps):
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def rms_norm(x, weight, eps):
    return F.rms_norm(x, weight.shape, weight, eps)


def gelu_tanh(x):
    return F.gelu(x, approximate='tanh')


def heads(x, h):
    """[B, S, h*d] -> [B, h, S, d]"""
    return x.view(x.shape[0], x.shape[1], h, -1).transpose(1, 2)


def merge(x):
    """[B, h, S, d] -> [B, S, h*d]"""
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


def attention(q, k, v, causal=False, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal,
                                          enable_gqa=k.shape[1] != q.shape[1])


def cached_attention(p, names, q, k, v, position):
    """q, k, v [1, h*d]; caches [h, context, d], into which the rows of k and v go."""
    caches = [p[name] for name in names]
    h, context, d = caches[0].shape
    for cache, row in zip(caches, (k, v)):
        cache.index_copy_(1, position, row.view(h, 1, d))
    y = F.scaled_dot_product_attention(q.view(1, h, 1, d), *(c[None] for c in caches),
                                       attn_mask=torch.arange(context)[None] <= position)
    return y.view(1, h * d)


def cross_entropy(logits, targets, padding=-100):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), ignore_index=padding)


@functools.cache
def lower_triangle(n):
    return torch.ones(n, n, dtype=torch.bool).tril()


@functools.cache
def sinusoids(n, d):
    return torch.from_numpy(models.sinusoid_table(np, n, d))


@functools.cache
def rotary(n, d):
    return tuple(torch.from_numpy(t) for t in models.rotary_tables(np, n, d))


def rotate(x, cos, sin):
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin
