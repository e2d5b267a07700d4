#!/usr/bin/env python3
"""Writes tests/text/learned_bpe.json, what the library tokenizers (PyPI) learns from the texts of a case.

Usage: tests/text/learned_bpe.py
"""
import json
import pathlib

import tokenizers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

here = pathlib.Path(__file__).resolve().parent
cases = json.loads((here.parent / 'hf/tokenizers/gpt2/encodings.json').read_text())
text = '\n'.join(one['text'] for one in cases['strings'])

tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train_from_iterator([text], trainers.BpeTrainer(vocab_size=600, min_frequency=2, special_tokens=['<|endoftext|>', '<pad>'],
                                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
model = json.loads(tokenizer.to_str())['model']
found = {'library': f'tokenizers {tokenizers.__version__}', 'tokens': sorted(model['vocab'], key=model['vocab'].get),
         'merges': model['merges'], 'ids': tokenizer.encode('To be, or not to be: café 中文 😀').ids}
(here / 'learned_bpe.json').write_text(json.dumps(found, ensure_ascii=False, indent=0) + '\n')
