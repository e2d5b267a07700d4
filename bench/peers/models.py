"""The models of bench/cases/step_cases.cpp as functions of a dictionary of parameters, written once for both peers.

`ops` is torch_ops or jax_ops; `p` maps Lathe's parameter names to arrays; each function gives the mean loss.
"""
import math


def gpt2_layers(ops, p, x, sizes, attend):
    """The logits; attend(layer, q, k, v) joins the heads of [.., d]."""
    for i in range(sizes['layers']):
        def w(name, i=i):
            return p[f'h.{i}.{name}']
        y = ops.layer_norm(x, w('ln_1.weight'), w('ln_1.bias'), 1e-5)
        y = attend(i, *ops.split(ops.linear_in_out(y, w('attn.c_attn.weight'), w('attn.c_attn.bias')), 3))
        x = x + ops.linear_in_out(y, w('attn.c_proj.weight'), w('attn.c_proj.bias'))
        y = ops.layer_norm(x, w('ln_2.weight'), w('ln_2.bias'), 1e-5)
        y = ops.gelu_tanh(ops.linear_in_out(y, w('mlp.c_fc.weight'), w('mlp.c_fc.bias')))
        x = x + ops.linear_in_out(y, w('mlp.c_proj.weight'), w('mlp.c_proj.bias'))
    return ops.linear(ops.layer_norm(x, p['ln_f.weight'], p['ln_f.bias'], 1e-5), p['wte'])


def gpt2(ops, p, batch, sizes):
    ids, targets = batch['tokens'][:, :-1], batch['tokens'][:, 1:]

    def attend(_, *qkv):
        return ops.merge(ops.attention(*(ops.heads(t, sizes['heads']) for t in qkv), causal=True))
    x = ops.embedding(ids, p['wte']) + p['wpe'][:ids.shape[1]]
    return ops.cross_entropy(gpt2_layers(ops, p, x, sizes, attend), targets)


def gpt2_decode(ops, p, batch, sizes):
    """One token, which joins the caches of keys and values among `p`: they are changed in place or replaced."""
    def attend(i, q, k, v):
        return ops.cached_attention(p, (f'h.{i}.cache.k', f'h.{i}.cache.v'), q, k, v, batch['position'])
    x = ops.embedding(batch['token'], p['wte']) + ops.embedding(batch['position'], p['wpe'])  # [1, d]
    return ops.cross_entropy(gpt2_layers(ops, p, x, sizes, attend), batch['next'])


def encoder_decoder(ops, p, batch, sizes):
    heads, d = sizes['heads'], sizes['d_model']
    src, tgt, targets = batch['src'], batch['tgt'][:, :-1], batch['tgt'][:, 1:]

    def embed(name, ids):
        return ops.embedding(ids, p[name]) * math.sqrt(d) + ops.sinusoids(ids.shape[1], d)

    def attention(name, x, source, mask):
        q, k, v = (ops.heads(ops.linear(y, p[f'{name}.{part}.weight'], p[f'{name}.{part}.bias']), heads)
                   for part, y in (('q', x), ('k', source), ('v', source)))
        return ops.linear(ops.merge(ops.attention(q, k, v, mask=mask)), p[f'{name}.o.weight'], p[f'{name}.o.bias'])

    def feed_forward(name, x):
        y = ops.relu(ops.linear(x, p[f'{name}.up.weight'], p[f'{name}.up.bias']))
        return ops.linear(y, p[f'{name}.down.weight'], p[f'{name}.down.bias'])

    def norm(name, x):
        return ops.layer_norm(x, p[f'{name}.weight'], p[f'{name}.bias'], 1e-6)

    source_words = (src != 0)[:, None, None, :]
    allowed = (tgt != 0)[:, None, None, :] & ops.lower_triangle(tgt.shape[1])
    x = embed('src_embedding', src)
    for i in range(sizes['layers']):
        x = norm(f'encoder.{i}.norm1', x + attention(f'encoder.{i}.self', x, x, source_words))
        x = norm(f'encoder.{i}.norm2', x + feed_forward(f'encoder.{i}.ffn', x))
    y = embed('tgt_embedding', tgt)
    for i in range(sizes['layers']):
        y = norm(f'decoder.{i}.norm1', y + attention(f'decoder.{i}.self', y, y, allowed))
        y = norm(f'decoder.{i}.norm2', y + attention(f'decoder.{i}.cross', y, x, source_words))
        y = norm(f'decoder.{i}.norm3', y + feed_forward(f'decoder.{i}.ffn', y))
    logits = ops.linear(y, p['generator.weight'], p['generator.bias'])
    return ops.cross_entropy(logits, targets, padding=0)


def llama(ops, p, batch, sizes):
    ids, targets = batch['tokens'][:, :-1], batch['tokens'][:, 1:]
    x = ops.embedding(ids, p['embed'])
    cos, sin = ops.rotary(ids.shape[1], sizes['d_model'] // sizes['heads'])
    for i in range(sizes['layers']):
        def w(name, i=i):
            return p[f'layers.{i}.{name}']
        y = ops.rms_norm(x, w('input_norm'), 1e-5)
        q = ops.rotate(ops.heads(ops.linear(y, w('q_proj')), sizes['heads']), cos, sin)
        k = ops.rotate(ops.heads(ops.linear(y, w('k_proj')), sizes['kv_heads']), cos, sin)
        v = ops.heads(ops.linear(y, w('v_proj')), sizes['kv_heads'])
        x = x + ops.linear(ops.merge(ops.attention(q, k, v, causal=True)), w('o_proj'))
        y = ops.rms_norm(x, w('post_norm'), 1e-5)
        x = x + ops.linear(ops.silu(ops.linear(y, w('gate_proj'))) * ops.linear(y, w('up_proj')), w('down_proj'))
    return ops.cross_entropy(ops.linear(ops.rms_norm(x, p['norm'], 1e-5), p['lm_head']), targets)


MODELS = {'gpt2': gpt2, 'gpt2-1024': gpt2, 'encoder-decoder': encoder_decoder, 'llama-block': llama}


def model_of(case):
    """Of a case's name; a GPT may also be named by its sizes."""
    return gpt2_decode if decodes(case) else MODELS.get(case, gpt2)


def decodes(case):
    return case.startswith('decode-')


def sinusoid_table(np, n, d):
    """[n, d]: sine at 2i, cosine at 2i+1 (Vaswani et al. 2017, 3.5)."""
    angle = np.arange(n)[:, None] * np.exp(np.arange(d // 2) * (-2 * math.log(10000) / d))
    return np.stack([np.sin(angle), np.cos(angle)], -1).reshape(n, d).astype(np.float32)


def rotary_tables(np, n, d):
    """cos and sin [n, d] of the half-split layout."""
    angle = np.arange(n)[:, None] * np.exp(np.arange(d // 2) * (-2 * math.log(10000) / d))
    both = np.concatenate([angle, angle], -1)
    return np.cos(both).astype(np.float32), np.sin(both).astype(np.float32)
