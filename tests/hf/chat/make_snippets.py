#!/usr/bin/env python3
"""Small templates, written and random, rendered by jinja2 with the settings of transformers.

  make_snippets.py [--count N] [--seed N] [--out FILE]     writes snippets.json beside this file

Each line is [template, result]: {"text": ..}, or {"error": message, "type": exception}, with "line" for syntax errors and
"loose" where no other implementation would say the same.
Left out is what no other implementation can give: addresses of objects, integers beyond 64 bits.
"""
import argparse
import copy
import datetime
import json
import pathlib
import re

import jinja2
import snippet_grammar
from snippet_list import WRITTEN
from transformers.utils import chat_template_utils

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2025, 1, 31, 9, 5, 7)
VARIABLES = {
    's': 'Hello World', 'p': '  pad\t\n', 'w': 'ab,cd,,ef', 'u8': 'Äpfel & ß – 中文 😀 ǅ Σας', 'e': '', 'lines': 'one\n  two\n\nthree\r\nfour',
    'q': 'it\'s "q" \\ \x7f\u00a0\u2028', 'html': '<b a="1">&amp;</b>', 'num': ' 42 ', 'fnum': '-3.75e2',
    'i': 7, 'z': 0, 'neg': -3, 'big': 123456789, 'f': 2.5, 'g': -0.1, 'h': 1e22, 't': True, 'no': False, 'nil': None,
    'l': [3, 1, 2], 'ls': ['b', 'A', 'a', 'C'], 'lm': [1, 'a', None, 2.0, True], 'nested': [[1, 2], [3, [4, 5]], []], 'el': [],
    'd': {'a': 1, 'b': {'c': [1, {'x': 'y'}]}, 'items': 'shadow', 'Z': None, 'é': 'ü'}, 'ed': {},
    'm': [{'role': 'system', 'content': ' Be. '}, {'role': 'user', 'content': 'Hi <x>', 'n': 2},
          {'role': 'assistant', 'content': None, 'tool_calls': [{'function': {'name': 'f', 'arguments': {'k': [1, 2.5, 'v']}}}]},
          {'role': 'user', 'content': [{'type': 'text', 'text': 'a'}, {'type': 'image'}], 'n': 1}],
}


# Messages that name the functions that Jinja is built from, or depend on the order of comparisons in sorting.
LOOSE = re.compile(r'\w+\(\) (takes|got|missing|argument)|positional argument|expected at least|argument [1-9*]|SandboxedEnvironment|'
                   r"^Unexpected keyword|not supported between instances|complex|maximum recursion|strip arg|must be str or None|<template>|"
                   r'not all arguments converted')


class FrozenDatetime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def outcome(template):
    try:
        return dict(text=chat_template_utils._compile_jinja_template.__wrapped__(template).render(**copy.deepcopy(VARIABLES)))
    except Exception as error:
        row = dict(error=str(error), type=type(error).__name__)
        if isinstance(error, jinja2.TemplateSyntaxError):
            row['line'] = error.lineno
        if LOOSE.search(row['error']):
            row['loose'] = True
        return row


def comparable(template, row):
    if 'undefined_name.__class__' in template:
        return False
    shown = row.get('text', row.get('error', ''))
    return not re.search(r' at 0x|\d{19}|Exceeds the limit|TemplateNamespace|chat_template_utils|<locals>|MemoryError', shown) and \
        row.get('type') not in ('MemoryError', 'AssertionError', 'RuntimeError')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--count', type=int, default=3000)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--out', default=HERE / 'snippets.json')
    parser.add_argument('--random-only', action='store_true')
    options = parser.parse_args()
    chat_template_utils.datetime = FrozenDatetime
    templates = [] if options.random_only else list(WRITTEN)
    templates += snippet_grammar.generate(options.count, options.seed)
    rows = [(template, outcome(template)) for template in dict.fromkeys(templates)]
    rows = [row for row in rows if comparable(*row)]
    text = ',\n'.join(json.dumps(row, ensure_ascii=False) for row in rows)
    head = json.dumps(dict(now=NOW.strftime('%Y-%m-%d %H:%M:%S'), variables=VARIABLES), ensure_ascii=False)
    pathlib.Path(options.out).write_text(head[:-1] + ', "rows": [\n' + text + '\n]}\n')


if __name__ == '__main__':
    main()
