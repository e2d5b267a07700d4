#!/usr/bin/env python3
"""Continuations under the options of generation_config.json, with transformers as the oracle: tests/hf/generation.json,
and the keys of settings files that the original libraries know: tests/hf/library_keys.json.

Usage: tests/pretrained/generation_cases.py     Needs torch, transformers and peft. Models compute in f64, scores in f32.
"""
import dataclasses
import inspect
import json
import pathlib
import re

import peft
import torch
import transformers

HF = pathlib.Path(__file__).resolve().parent.parent / 'hf'
PROMPT = [5, 9, 17, 5, 9, 30, 11]


def load(name):
    folder = HF / 'models' / name / 'model'
    kind = transformers.AutoModelForSeq2SeqLM if name == 't5' else transformers.AutoModelForCausalLM
    model = kind.from_pretrained(folder, dtype=torch.float64).eval()
    model.generation_config = transformers.GenerationConfig()
    return model


class Stop(transformers.StoppingCriteria):
    """Ends a text at the token that completes one of some strings; token i is the word ti."""

    def __init__(self, opening, strings):
        self.opening, self.strings = opening, strings

    def __call__(self, ids, scores, **more):
        texts = [' '.join(f't{token}' for token in row) for row in ids[:, self.opening:].tolist()]
        return torch.tensor([any(string in text for string in self.strings) for text in texts])


def generate(model, prompt, keys):
    """The new tokens of each result, without padding, and the scores of beams."""
    config = dict(keys)
    opening = 1 if model.config.is_encoder_decoder else len(prompt)
    stops = config.pop('stop_strings', [])
    config.setdefault('pad_token_id', 0)
    if model.config.is_encoder_decoder:
        config.setdefault('decoder_start_token_id', 0)
    with torch.no_grad():
        out = model.generate(torch.tensor([prompt]), generation_config=transformers.GenerationConfig(**config),
                             stopping_criteria=transformers.StoppingCriteriaList([Stop(opening, stops)] if stops else []),
                             return_dict_in_generate=True, output_scores=True)
    ends = keys.get('eos_token_id', [])
    ends = ends if isinstance(ends, list) else [ends]
    results = []
    for row in out.sequences[:, opening:].tolist():
        texts = [' '.join(f't{token}' for token in row[:i + 1]) for i in range(len(row))]
        end = next((i for i, token in enumerate(row) if token in ends or any(s in texts[i] for s in stops)), len(row))
        results.append(row[:end + 1])
    return results, out.sequences_scores.tolist() if keys.get('num_beams', 1) > 1 else []


def text_configs(model, prompt):
    plain = generate(model, prompt, dict(max_new_tokens=12))[0][0]
    first, second, third = plain[:3]
    opening = 1 if model.config.is_encoder_decoder else len(prompt)
    yield {}
    yield dict(no_repeat_ngram_size=1)
    yield dict(no_repeat_ngram_size=2, max_new_tokens=30)
    yield dict(no_repeat_ngram_size=3, max_new_tokens=30)
    yield dict(repetition_penalty=1.3)
    yield dict(repetition_penalty=1.3, no_repeat_ngram_size=2)
    yield dict(suppress_tokens=[first, second])
    yield dict(begin_suppress_tokens=[first])
    yield dict(bad_words_ids=[[first]])
    yield dict(bad_words_ids=[[first, second], [third]])
    yield dict(bad_words_ids=[[first]], eos_token_id=[first])
    yield dict(eos_token_id=first)
    yield dict(eos_token_id=[second, third])
    yield dict(eos_token_id=first, min_new_tokens=5)
    yield dict(stop_strings=[f't{second} t{third}', 'x'])
    yield dict(eos_token_id=first, min_length=opening + 4)
    yield dict(eos_token_id=first, min_length=opening + 4, min_new_tokens=2)
    yield dict(forced_eos_token_id=41)
    yield dict(forced_eos_token_id=[43, 41], eos_token_id=43)
    yield dict(max_new_tokens=None, max_length=opening + 3)
    yield dict(max_new_tokens=4, max_length=opening + 1)
    yield dict(max_new_tokens=None, max_length=opening + 5, forced_eos_token_id=41)


def beam_configs(model, prompt):
    plain = generate(model, prompt, dict(max_new_tokens=12, num_beams=3))[0][0]
    first, second, third = plain[:3]
    yield dict(num_beams=3)
    yield dict(num_beams=6)
    yield dict(num_beams=3, num_return_sequences=3)
    yield dict(num_beams=3, num_return_sequences=2, eos_token_id=third)
    yield dict(num_beams=3, num_return_sequences=3, eos_token_id=[second, third], length_penalty=2.5)
    yield dict(num_beams=3, eos_token_id=[second, third], length_penalty=-1.0, early_stopping=True)
    yield dict(num_beams=3, eos_token_id=[second, third], length_penalty=2.0, early_stopping='never')
    yield dict(num_beams=3, no_repeat_ngram_size=2, max_new_tokens=30)
    yield dict(num_beams=3, repetition_penalty=1.5, num_return_sequences=3)
    yield dict(num_beams=3, suppress_tokens=[first], begin_suppress_tokens=[second])
    yield dict(num_beams=3, bad_words_ids=[[first, second], [third]])
    yield dict(num_beams=3, eos_token_id=second, min_new_tokens=6, num_return_sequences=2)
    yield dict(num_beams=3, forced_eos_token_id=41, eos_token_id=41, num_return_sequences=3)
    yield dict(num_beams=2, max_new_tokens=30)
    yield dict(num_beams=3, stop_strings=[f't{second}'], num_return_sequences=2)


def typical():
    torch.manual_seed(5)
    for mass in (0.2, 0.5, 0.9):
        for keys in (dict(), dict(temperature=1.7), dict(top_k=5), dict(top_p=0.8), dict(min_p=0.05, top_k=9)):
            logits = torch.randn(1, 16, dtype=torch.float64) * 3
            scores = logits
            if 'temperature' in keys:
                scores = transformers.TemperatureLogitsWarper(keys['temperature'])(None, scores)
            if 'top_k' in keys:
                scores = transformers.TopKLogitsWarper(keys['top_k'])(None, scores)
            if 'top_p' in keys:
                scores = transformers.TopPLogitsWarper(keys['top_p'])(None, scores)
            if 'min_p' in keys:
                scores = transformers.MinPLogitsWarper(keys['min_p'])(None, scores)
            scores = transformers.TypicalLogitsWarper(mass)(None, scores)
            yield dict(keys, typical_p=mass, logits=logits[0].tolist(), probabilities=scores[0].softmax(0).tolist())


def tokenizer_keys():
    """The keys of tokenizer_config.json that the tokenizers of Lathe's families read."""
    base = transformers.PreTrainedTokenizerBase
    backend = transformers.PreTrainedTokenizerFast
    keys = set(base.SPECIAL_TOKENS_ATTRIBUTES)
    for method in (base.__init__, base._from_pretrained.__func__, backend.__init__):
        source = inspect.getsource(method)
        keys |= set(re.findall(r'kwargs\.(?:pop|get|setdefault)\(\s*"(\w+)"', source))
        keys |= set(re.findall(r'"(\w+)" (?:not )?in (?:init_)?kwargs', source))
    for name in ('Llama', 'Qwen2', 'Gemma', 'GPT2', 'GPTNeoX', 'Bert', 'Roberta', 'T5'):
        parameters = inspect.signature(getattr(transformers, name + 'Tokenizer').__init__).parameters.values()
        keys |= {parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD}
    given = {'self', 'vocab', 'merges', 'tokenizer', 'tokenizer_object', 'tokenizer_padding', 'tokenizer_truncation',
             'post_processor'}  # passed by the library's own code
    return sorted(key for key in keys - given if not key.startswith('_'))


def keys_of_libraries():
    """The keys that the original libraries know of their files."""
    config = transformers.GenerationConfig()
    generation = [key for key in vars(config) if key not in ('_original_object_hash', '_mask_length')]
    return dict(GenerationConfig=sorted({*generation, '_commit_hash'}),
                LoraConfig=sorted(field.name for field in dataclasses.fields(peft.LoraConfig)),
                TokenizerConfig=tokenizer_keys())


def main():
    (HF / 'library_keys.json').write_text(json.dumps(keys_of_libraries(), indent=1) + '\n')
    texts = []
    for name in ('qwen3', 'gpt2', 'gemma3', 't5'):
        model = load(name)
        for configs in (text_configs, beam_configs):
            for keys in configs(model, PROMPT):
                keys = {key: value for key, value in (dict(max_new_tokens=12) | keys).items() if value is not None}
                results, scores = generate(model, PROMPT, keys)
                texts.append(dict(model=name, prompt=PROMPT, config=keys, results=results, scores=scores))
        # The first token, after a single one.
        for prompt in ([7],) if name != 't5' else (PROMPT,):
            for keys in (dict(forced_bos_token_id=23), dict(forced_bos_token_id=23, begin_suppress_tokens=[23, 40]),
                         dict(forced_bos_token_id=23, num_beams=3)):
                keys = dict(max_new_tokens=6) | keys
                results, scores = generate(model, prompt, keys)
                texts.append(dict(model=name, prompt=prompt, config=keys, results=results, scores=scores))
    out = dict(versions=dict(torch=torch.__version__, transformers=transformers.__version__), texts=texts,
               typical=list(typical()))
    rows = lambda items: '[\n' + ',\n'.join('  ' + json.dumps(item) for item in items) + '\n ]'
    (HF / 'generation.json').write_text(
        '{"versions": %s,\n "texts": %s,\n "typical": %s}\n' % (json.dumps(out['versions']), rows(texts), rows(out['typical'])))


main()
