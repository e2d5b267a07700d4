#!/usr/bin/env python3
"""Adapters on models of other kinds and on the output layer, with PEFT as the oracle: tests/hf/adapters/t5_lora,
bert_embed_lora, llama_head_lora.

Usage: tests/pretrained/adapter_cases.py ORACLE [NAME]    ORACLE: the folder of make_hf.py, which wrote tests/hf
Prints the entries that cases.json has of adapters on causal language models. Needs what make_hf.py needs. Expected values are f64, as those of the other cases.
"""
import json
import pathlib
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, sys.argv[1])
import make_hf  # noqa: E402
import peft  # noqa: E402

CASES = [('t5_lora', 't5', 'SEQ_2_SEQ_LM', dict(r=4, lora_alpha=8, target_modules=['q', 'v', 'wo']), r'decoder\.block\.1\.layer\.1'),
         ('bert_embed_lora', 'bert_embed', 'FEATURE_EXTRACTION', dict(r=3, lora_alpha=9, target_modules='all-linear'),
          r'encoder\.layer\.1\.attention'),
         ('llama_head_lora', 'llama', 'CAUSAL_LM', dict(r=4, lora_alpha=8, target_modules=['q_proj', 'lm_head']),
          r'layers\.1\.|lm_head')]


def with_logits(forward):
    """Vectors of sentences stand as their logits."""
    def seen(model, task, inputs):
        out = forward(model, task, inputs)
        return dict(out, logits=out['embedding']) if task == make_hf.EMBED else out
    return seen


def main():
    out = here.parent / 'hf'
    bases = {entry['name']: entry for entry in json.loads((out / 'cases.json').read_text())['models']}
    make_hf.forward = with_logits(make_hf.forward)
    plain = peft.LoraConfig
    for name, base, kind, options, pattern in CASES:
        if name not in (sys.argv[2:] or [name]):
            continue
        # make_hf.py creates all adapters for causal language models.
        peft.LoraConfig = lambda task_type, **rest: plain(task_type=kind, **rest)
        entry = make_hf.write_adapter(out, 0, 'small', name, bases[base], options, pattern)
        print(name, entry['seen_f32'])
        if kind == 'CAUSAL_LM':
            print(json.dumps(entry, indent=1))


main()
