"""One peer's step, of training or of decoding, as a process that waits for commands: bench/run_steps.py starts it.

step_worker.py eager|compile|jax CASE WEIGHTS SIZES THREADS CLIP f32|bf16
Commands are lines: "run N" runs N steps and answers {"seconds": [...], "losses": [...], "memory": bytes}, "forget"
starts counting the peak of resident memory anew. WEIGHTS is what `bench_training_step CASE --export` wrote, SIZES its
sizes as JSON.
"""
import json
import os
import sys
import time

import numpy as np

import models

RATE, BETA1, BETA2, EPS, DECAY = 1e-3, 0.9, 0.999, 1e-8, 1e-2


def read_safetensors(path):
    data = np.memmap(path, np.uint8, 'r')
    length = int(data[:8].view(np.uint64)[0])
    header = json.loads(bytes(data[8:8 + length]))
    header.pop('__metadata__', None)
    types = {'F32': np.float32, 'I64': np.int64}
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry['data_offsets'])
        tensors[name] = np.array(data[begin:end]).view(types[entry['dtype']]).reshape(entry['shape'])
    return tensors


def resident(field):
    for line in open('/proc/self/status'):
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    return 0


def adamw(parameters):
    import torch
    return torch.optim.AdamW(parameters, lr=RATE, betas=(BETA1, BETA2), eps=EPS, weight_decay=DECAY, fused=True)


def torch_step(kind, case, parameters, batch, sizes, threads, clip, precision):
    import torch
    import torch_ops
    torch.set_num_threads(threads)
    trains = not models.decodes(case)
    p = {name: torch.from_numpy(value).requires_grad_(trains) for name, value in parameters.items()}
    batch = {name: torch.from_numpy(value) for name, value in batch.items()}
    model = models.model_of(case)

    def loss_of(p, batch):
        with torch.autocast('cpu', torch.bfloat16, enabled=precision == 'bf16'):
            return model(torch_ops, p, batch, sizes)
    if kind == 'compile':
        loss_of = torch.compile(loss_of)

    def decode():
        with torch.inference_mode():
            return loss_of(p, batch).item()
    version = f'PyTorch {torch.__version__}'
    if not trains:
        return decode, version
    optimizer = adamw(p.values())

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(p, batch)
        loss.backward()
        if clip > 0:
            torch.nn.utils.clip_grad_norm_(p.values(), clip)
        optimizer.step()
        return loss.item()
    return step, version


def jax_decode(case, parameters, batch, sizes):
    import jax
    import jax.numpy as jnp
    import jax_ops

    def decode(caches, weights, batch):
        p = {**weights, **caches}
        loss = models.model_of(case)(jax_ops, p, batch, sizes)
        return {name: p[name] for name in caches}, loss

    compiled = jax.jit(decode, donate_argnums=0)
    arrays = {name: jnp.asarray(value) for name, value in parameters.items()}
    held = {'caches': {name: arrays.pop(name) for name in list(arrays) if '.cache.' in name}}
    batch = {name: jnp.asarray(ids.astype(np.int32)) for name, ids in batch.items()}

    def step():
        held['caches'], loss = compiled(held['caches'], arrays, batch)
        jax.block_until_ready(held['caches'])
        return float(loss)
    return step, f'JAX {jax.__version__}'


def jax_step(case, parameters, batch, sizes, clip):
    import jax
    import jax.numpy as jnp
    import jax_ops
    model = models.model_of(case)
    tree = jax.tree_util.tree_map

    def update(state, batch):
        p, m, v, count = state
        loss, g = jax.value_and_grad(lambda p: model(jax_ops, p, batch, sizes))(p)
        if clip > 0:
            norm = jnp.sqrt(sum(jnp.sum(x * x) for x in jax.tree_util.tree_leaves(g)))
            g = tree(lambda x: x * jnp.minimum(1.0, clip / (norm + 1e-6)), g)
        count = count + 1
        m = tree(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, g)
        v = tree(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, g)
        size, root = RATE / (1 - BETA1 ** count), jnp.sqrt(1 - BETA2 ** count)
        p = tree(lambda p, m, v: p * (1 - RATE * DECAY) - size * m / (jnp.sqrt(v) / root + EPS), p, m, v)
        return (p, m, v, count), loss

    compiled = jax.jit(update, donate_argnums=0)
    state = [tree(jnp.asarray, parameters), tree(jnp.zeros_like, parameters), tree(jnp.zeros_like, parameters),
             jnp.zeros((), jnp.float32)]
    held = {'state': tuple(state)}
    state.clear()
    batch = tree(lambda ids: jnp.asarray(ids.astype(np.int32)), batch)

    def step():
        held['state'], loss = compiled(held['state'], batch)
        jax.block_until_ready(held['state'])
        return float(loss)
    return step, f'JAX {jax.__version__}'


def parameters_and_batch(weights):
    tensors = read_safetensors(weights)
    return ({name: value for name, value in tensors.items() if not name.startswith('input.')},
            {name[len('input.'):]: value for name, value in tensors.items() if name.startswith('input.')})


def own_answers():
    """The output for answers alone: what libraries print goes to the error output."""
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    return answers


def answer(command, step):
    """What a command's line asks for, done."""
    words = command.split()
    if words[0] == 'run':
        seconds, losses = [], []
        for _ in range(int(words[1])):
            start = time.perf_counter()
            losses.append(step())
            seconds.append(time.perf_counter() - start)
        return {'seconds': seconds, 'losses': losses, 'memory': resident('VmHWM')}
    if words[0] == 'forget':
        open('/proc/self/clear_refs', 'w').write('5')
    return {}


def main():
    kind, case, weights, sizes, threads, clip, precision = sys.argv[1:8]
    parameters, batch = parameters_and_batch(weights)
    sizes, threads, clip = json.loads(sizes), int(threads), float(clip)
    answers = own_answers()
    started = time.perf_counter()
    if kind == 'jax' and models.decodes(case):
        step, version = jax_decode(case, parameters, batch, sizes)
    elif kind == 'jax':
        step, version = jax_step(case, parameters, batch, sizes, clip)
    else:
        step, version = torch_step(kind, case, parameters, batch, sizes, threads, clip, precision)
    del parameters
    loss = step()
    ready = {'version': version, 'loss': loss, 'first': time.perf_counter() - started}
    print(json.dumps(ready), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(line, step)), file=answers, flush=True)


if __name__ == '__main__':
    main()
