#!/usr/bin/env python3
"""Reference cases of model families, with transformers and PEFT as the oracle: a small model with random weights in
tests/hf/models, an adapter in tests/hf/adapters, their entries in tests/hf/cases.json, and the keys of the family's
configuration in tests/hf/config_keys.json.

Usage: tests/pretrained/model_cases.py [FAMILY ...]    Needs torch, transformers 5, peft. All values are f64.
"""
import contextlib
import json
import os
import pathlib
import re
import sys

os.environ['HF_HUB_OFFLINE'] = '1'
import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

HF = pathlib.Path(__file__).resolve().parent.parent / 'hf'
STEPS, NEW_TOKENS = 20, 24
SIZES = dict(vocab_size=48, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
MODELS = {
    'granite': dict(cls='GraniteForCausalLM', store=torch.bfloat16,
                    config=dict(SIZES, embedding_multiplier=3.0, attention_multiplier=0.25, residual_multiplier=0.6,
                                logits_scaling=1.5, tie_word_embeddings=True),
                    gradients=['model.embed_tokens.weight', 'model.layers.0.self_attn.k_proj.weight',
                               'model.layers.1.post_attention_layernorm.weight']),
}
ADAPTERS = {'granite_lora': ('granite', dict(r=3, lora_alpha=6, target_modules=['q_proj', 'down_proj']))}
# Families with the keys of another family and a few of their own, which have values other than the defaults here.
KEYS = {'granite': ('llama', dict(embedding_multiplier=2.0, attention_multiplier=2.0, residual_multiplier=2.0,
                                  logits_scaling=2.0))}


@contextlib.contextmanager
def doubled():
    """Code that asks for float32 gets float64: norms, softmax and rotary angles."""
    kept = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = kept
        torch.set_default_dtype(torch.float32)


def load64(name):
    """The model with the weights of its file, everything in float64."""
    path, cls = HF / 'models' / name / 'model', getattr(transformers, MODELS[name]['cls'])
    stored = cls.from_pretrained(path, dtype=torch.float64)
    stored.config._attn_implementation = 'eager'
    with doubled():
        model = cls(stored.config)
    model.load_state_dict(stored.state_dict())
    return model.eval()


def fill(model, random):
    """Weights that make every part matter: attention far from uniform, norms that differ from 1."""
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=random)
        if parameter.ndim == 1:
            values = 1 + values * 0.2 if name.endswith('weight') else values * 0.2
        else:
            gain = 2.5 if re.search(r'o_proj|down_proj', name) else 1.5 if re.search(r'[qk]_proj', name) else 1.2
            values = values * gain / parameter.shape[-1] ** 0.5
        parameter.data.copy_(values)


def draw_inputs(random, vocabulary):
    """Rows of 12, 9 and 7 tokens, padded on the right; the first 3 tokens of the first row are not learned."""
    ids = torch.randint(5, vocabulary, (3, 12), generator=random)
    mask = (torch.arange(12) < torch.tensor([[12], [9], [7]])).long()
    labels = torch.where(mask == 1, ids, -100)
    labels[0, :3] = -100
    return dict(input_ids=ids * mask, attention_mask=mask, labels=labels)


def forward(model, inputs):
    """Hidden states, logits and loss; rows of padding are 0."""
    with doubled():
        out = model(**inputs, output_hidden_states=True)
    rows = inputs['attention_mask'][..., None]
    states = {f'hidden.{i}': x * rows for i, x in enumerate(out.hidden_states)}
    return dict(states, logits=out.logits * rows, loss=out.loss)


def train(model, inputs):
    """The losses before the first and after each of STEPS updates of AdamW."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01, foreach=False)
    losses = []
    for _ in range(STEPS + 1):
        loss = forward(model, inputs)['loss']
        losses.append(loss.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.stack(losses)


@torch.no_grad()
def continued(model, random, size, vocabulary):
    """A prompt whose greedy continuation has no ties: the prompt, new ids, and logits of each step with the cache."""
    while True:
        prompt = torch.randint(5, vocabulary, (size,), generator=random)
        past, feed, rows = None, prompt[None], []
        for _ in range(NEW_TOKENS):
            with doubled():
                out = model(input_ids=feed, past_key_values=past, use_cache=True)
            past, row = out.past_key_values, out.logits[0, -1]
            rows.append(row)
            feed = row.argmax()[None, None]
        logits = torch.stack(rows)
        best = logits.topk(2).values
        ids = logits.argmax(-1)
        if (best[:, 0] - best[:, 1]).min() > 0.01 and len(set(ids.tolist())) > 4:
            return prompt, ids, logits


def save(path, tensors):
    save_file({name: x.detach().contiguous().clone() for name, x in tensors.items()}, path)
    path.chmod(0o644)


def write_model(name):
    row, random = MODELS[name], torch.Generator().manual_seed(1)
    folder, cls = HF / 'models' / name, getattr(transformers, row['cls'])
    model = cls(cls.config_class(**row['config']))
    fill(model, random)
    model.to(row['store']).save_pretrained(folder / 'model')
    (folder / 'model' / 'model.safetensors').chmod(0o644)
    model, vocabulary = load64(name), row['config']['vocab_size']
    inputs = draw_inputs(random, vocabulary)
    expected = forward(model, inputs)
    expected['loss'].backward()
    gradients = {key: p.grad.clone() for key, p in model.named_parameters()}
    expected.update({'grad.' + key: gradients[key] for key in row['gradients']})
    prompts = {}
    for i, size in enumerate((5, 9)):
        prompts[f'prompt{i}'], expected[f'new_ids{i}'], expected[f'new_logits{i}'] = continued(model, random, size, vocabulary)
    expected['train_loss'] = train(load64(name), inputs)
    save(folder / 'inputs.safetensors', {**inputs, **prompts})
    save(folder / 'expected.safetensors', expected)
    return dict(name=name, task='causal-lm', prefix=None,
                grad_norms={key: float(f'{x.norm().item():.12g}') for key, x in sorted(gradients.items())}, **{'class': row['cls']})


def write_adapter(name):
    base, options = ADAPTERS[name]
    random, folder = torch.Generator().manual_seed(2), HF / 'adapters' / name
    model = peft.get_peft_model(load64(base), peft.LoraConfig(task_type='CAUSAL_LM', **options))
    for key, p in model.named_parameters():
        if 'lora_' in key:
            p.data = torch.randn(p.shape, generator=random) * (0.1 if 'lora_B' in key else p.shape[1] ** -0.5)
    model.peft_config['default'].base_model_name_or_path = f'../../../models/{base}/model'
    model.save_pretrained(folder / 'adapter')
    (folder / 'adapter' / 'README.md').unlink(missing_ok=True)
    path = folder / 'adapter' / 'adapter_config.json'
    config = {key: sorted(x) if isinstance(x, list) else x for key, x in json.loads(path.read_text()).items()}
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + '\n')

    def load():
        adapted = peft.PeftModel.from_pretrained(load64(base), folder / 'adapter', is_trainable=True, autocast_adapter_dtype=False)
        return adapted.to(torch.float64).eval()
    inputs = {key: x for key, x in load_file(HF / 'models' / base / 'inputs.safetensors').items() if 'prompt' not in key}
    model = load()
    expected = {key: x for key, x in forward(model, inputs).items() if key in ('logits', 'loss')}
    expected['loss'].backward()
    last = [(key.replace('.default', ''), p) for key, p in model.named_parameters() if 'lora_' in key][-4:]
    expected.update({'grad.' + key: p.grad.clone() for key, p in last})
    merged, layer = load().merge_and_unload(), last[-1][0].removeprefix('base_model.model.').split('.lora_')[0]
    expected['merged_logits'] = forward(merged, inputs)['logits']
    expected[f'merged.{layer}.weight'] = merged.get_parameter(layer + '.weight')
    expected['train_loss'] = train(load(), inputs)
    save(folder / 'expected.safetensors', expected)
    return dict(name=name, base=base, task='causal-lm')


def replaced(entries, entry):
    return [each for each in entries if each['name'] != entry['name']] + [entry]


def write_keys(families):
    """JSON with one key a line."""
    path = HF / 'config_keys.json'
    keys = json.loads(path.read_text())
    for family in families:
        like, own = KEYS[family]
        defaults, known = (transformers.AutoConfig.for_model(name).to_dict() for name in (family, like))
        # head_dim is an attribute that the model reads if the file has it.
        rows = [row for row in keys['families'][like]['keys']
                if row['key'] in defaults or row['key'] not in known or row['key'] == 'head_dim']
        rows += [dict(key=key, default=defaults[key], value=value) for key, value in own.items()]
        missing = set(defaults) - {row['key'] for row in rows} - {'_name_or_path'}
        assert not missing, f'give values to the keys {missing} of {family}'
        keys['families'][family] = dict(case=family, keys=rows)
    rows_of = lambda entry: ',\n'.join('   ' + json.dumps(row) for row in entry['keys'])
    text = ',\n'.join(f'  {json.dumps(name)}: {{"case": {json.dumps(entry["case"])}, "keys": [\n{rows_of(entry)}\n  ]}}'
                      for name, entry in keys['families'].items())
    path.write_text(f'{{\n "library": {json.dumps(keys["library"])},\n "families": {{\n{text}\n }}\n}}\n')


def main():
    families = sys.argv[1:] or list(MODELS)
    path = HF / 'cases.json'
    cases = json.loads(path.read_text())
    for name in families:
        cases['models'] = replaced(cases['models'], write_model(name))
    for name, (base, _) in ADAPTERS.items():
        if base in families:
            cases['adapters'] = replaced(cases['adapters'], write_adapter(name))
    flat = lambda match: '[' + ' '.join(match.group(1).split()) + ']'
    path.write_text(re.sub(r'\[\n\s+([^\[\]{}]*?)\n\s*\]', flat, json.dumps(cases, indent=1)) + '\n')
    write_keys([name for name in families if name in KEYS])


main()
