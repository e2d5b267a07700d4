#!/usr/bin/env python3
"""Chat templates of many families over many conversations, rendered by transformers.

  make_more.py [--check]     writes more.json beside this file, or says whether it would change

Needs transformers and jinja2: tools of the author of the test, which reads the files alone. The time that strftime_now
tells is NOW.
"""
import argparse
import datetime
import json
import pathlib
import sys

import tokenizers
import transformers
from transformers.utils import chat_template_utils

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2025, 1, 31, 9, 5, 7)
TOKENS = dict(bos_token='<s>', eos_token='</s>', unk_token='<unk>', pad_token='<pad>')


class FrozenDatetime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


def function(name, description, properties, **more):
    return dict(type='function', function=dict(name=name, description=description, parameters=dict(
        type='object', properties=properties, **more)))


WEATHER = function('get_weather', 'Wetter für einen Ort, "now" & <then>', {
    'city': {'type': 'string', 'description': ' The city, e.g. Zürich'},
    'unit': {'type': 'string', 'enum': ['celsius', 'fahrenheit'], 'description': 'Unit', 'default': 'celsius'},
    'days': {'type': 'integer', 'description': 'How many days', 'default': 3}}, required=['city'])
SEARCH = function('search', "Looks for a text; it's \\ slow", {
    'query': {'type': 'string', 'description': 'What to find'},
    'filters': {'type': 'object', 'description': 'More', 'properties': {
        'tags': {'type': 'array', 'items': {'type': 'string'}, 'description': 'Tags'},
        'range': {'type': 'array', 'items': {'type': 'number'}, 'description': 'Range'}}, 'required': ['tags']},
    'limit': {'type': ['integer', 'null'], 'description': 'At most'},
    'exact': {'type': 'boolean', 'description': 'No stems', 'nullable': True}}, required=['query', 'filters'])
NOTHING = function('now', 'The time', {})


def call(name, arguments, id='abcdefghi'):
    return dict(id=id, type='function', function=dict(name=name, arguments=arguments))


def say(role, content, **more):
    return dict(role=role, content=content, **more)


CONVERSATIONS = {
    'hello': [say('user', 'Hello, who are you?')],
    'spaces': [say('user', '  two  \n'), say('assistant', ' \tok \n\n'), say('user', '\n')],
    'system': [say('system', ' You are a pirate.\n'), say('user', 'Hi!'), say('assistant', 'Arr, matey! '), say('user', '2 + 2?')],
    'two_systems': [say('system', 'One.'), say('system', 'Two.'), say('user', 'Hi!')],
    'late_system': [say('user', 'Hi!'), say('system', 'Be brief.'), say('assistant', 'Ok.')],
    'system_alone': [say('system', 'You are alone.')],
    'empty_texts': [say('system', ''), say('user', ''), say('assistant', ''), say('user', 'x')],
    'braces': [say('user', '{{ braces }} {% raw %} <|im_end|> </s> {# no #} & <b> "q" \'s\' \\n')],
    'unicode': [say('user', 'é中😀 \u00a0\u2003 ﬁ ß İ'), say('assistant', '\u2028ΑΣ Σ.\u3000')],
    'wrong_order': [say('assistant', 'Me first.'), say('user', 'No.')],
    'twice': [say('user', 'a'), say('user', 'b')],
    'unknown_role': [say('user', 'a'), say('narrator', 'Meanwhile')],
    'no_content': [say('user', 'a'), dict(role='assistant')],
    'none_content': [say('user', 'a'), say('assistant', None), say('user', 'b')],
    'number_content': [say('user', 3), say('assistant', 2.5)],
    'dict_content': [say('user', {'text': 'hidden', 'n': [1, None, True]})],
    'ends_assistant': [say('user', 'Write.'), say('assistant', 'Once upon'), say('user', 'More.'), say('assistant', 'a time')],
    'thinking': [say('user', 'Why?'), say('assistant', '<think>\nHmm, \nyes.\n</think>\n\nBecause.'), say('user', 'And?'),
                 say('assistant', 'So.', reasoning_content='\nDeep\nthought\n')],
    'thinking_alias': [say('user', 'Why?'), say('assistant', 'So.', thinking='I wonder')],
    'no_think': [say('system', 'Be quick. /no_think'), say('user', 'Go /think'), say('assistant', '<think></think>x')],
    'blocks': [say('system', [{'type': 'text', 'text': 'See.'}]),
               say('user', [{'type': 'image', 'url': 'a.png'}, {'type': 'text', 'text': ' What is it? '}, {'type': 'video'}]),
               say('assistant', [{'type': 'text', 'text': 'A cat.'}])],
    'odd_blocks': [say('user', [{'type': 'audio'}, {'text': 'x'}])],
    'call': [say('user', 'Weather in Zürich?'), dict(role='assistant', tool_calls=[call('get_weather', {'city': 'Zürich', 'days': 2})]),
             say('tool', '{"temp": 21.5}', name='get_weather', tool_call_id='abcdefghi'), say('assistant', '21.5 °C'), say('user', 'Thanks')],
    'call_with_text': [say('system', 'Tools!'), say('user', 'Find'), say('assistant', 'Let me see.', tool_calls=[
        call('search', {'query': 'a "b"\n', 'filters': {'tags': ['x', 'y'], 'range': [0.5, 1e20]}, 'limit': None, 'exact': False})]),
        say('tool', ['r1', {'r': 2}], tool_call_id='abcdefghi')],
    'parallel': [say('user', 'Both'), say('assistant', '', tool_calls=[call('now', {}), call('get_weather', {'city': 'Å'}, 'jklmnopqr')]),
                 say('tool', 'noon', tool_call_id='abcdefghi'), say('tool', 'rain', tool_call_id='jklmnopqr'), say('assistant', 'Wet noon.')],
    'short_id': [say('user', 'x'), dict(role='assistant', tool_calls=[call('now', {}, '1')]), say('tool', 'y', tool_call_id='1')],
    'string_arguments': [say('user', 'x'), say('assistant', None, tool_calls=[call('now', '{"a": 1}')]), say('tool', 'y')],
    'bare_call': [say('user', 'x'), dict(role='assistant', tool_calls=[{'name': 'now', 'arguments': {'k': 'v'}}]), say('tool', 'ok')],
    'tool_first': [say('tool', 'orphan')],
    'empty_calls': [say('user', 'x'), say('assistant', 'y', tool_calls=[]), say('user', 'z')],
    'thoughtful_call': [say('user', 'x'), dict(role='assistant', thinking='Use it', tool_calls=[call('now', {})]), say('tool', 'noon'),
                        say('assistant', 'Noon.', thinking='Easy')],
    'developer': [say('developer', 'Obey.'), say('user', 'Hi')],
    'prefix': [say('user', 'Poem'), say('assistant', 'Roses', prefix=True)],
    'tools_in_message': [say('system', 'S', tools='[{"name": "f"}]'), say('user', 'u')],
}
TOOLS = {'none': None, 'one': [WEATHER], 'three': [WEATHER, SEARCH, NOTHING], 'bare': [WEATHER['function']], 'empty': []}
EXTRAS = {
    'none': {},
    'thinking_off': dict(enable_thinking=False),
    'thinking_on': dict(enable_thinking=True, thinking=True, add_vision_id=True, reasoning_effort='high'),
    'date': dict(date_string='1 May 2020', tools_in_user_message=False, model_identity='You are X.'),
    'builtin': dict(builtin_tools=['code_interpreter', 'now', 'brave_search'], developer_instructions='Shout.'),
    'documents': dict(documents=[{'title': 'T', 'text': 'Text one.'}, {'title': 'U', 'text': 'Two & three'}], controls={'citations': True, 'length': 'long'}),
    'no_bos': dict(bos_token='', eos_token='<|end|>'),
}


def plans():
    """(conversation, tools, extra, add_generation_prompt, continue_final_message)"""
    for name in CONVERSATIONS:
        for ask in (False, True):
            yield name, 'none', 'none', ask, False
    for name in ('hello', 'system', 'call', 'call_with_text', 'parallel', 'system_alone'):
        for tools in ('one', 'three', 'bare', 'empty'):
            yield name, tools, 'none', True, False
    for extra in EXTRAS:
        for name in ('hello', 'thinking', 'parallel', 'blocks'):
            yield name, 'one' if extra in ('date', 'builtin') else 'none', extra, True, False
    yield 'hello', 'three', 'documents', True, False
    for name in ('ends_assistant', 'spaces', 'blocks', 'prefix', 'none_content'):
        yield name, 'none', 'none', False, True


def render(tokenizer, plan):
    conversation, tools, extra, ask, going_on = plan
    try:
        return dict(text=tokenizer.apply_chat_template(
            CONVERSATIONS[conversation], tools=TOOLS[tools], add_generation_prompt=ask, continue_final_message=going_on,
            tokenize=False, **EXTRAS[extra]))
    except Exception as error:
        return dict(error=str(error), type=type(error).__name__)


def spans(template, plan):
    """Code points that the assistant wrote, as transformers finds them."""
    conversation, tools, extra, ask, _ = plan
    messages = [{k: v for k, v in m.items() if v is not None} for m in CONVERSATIONS[conversation]]
    _, found = chat_template_utils.render_jinja_template(
        [messages], tools=TOOLS[tools], chat_template=template, return_assistant_tokens_mask=True, add_generation_prompt=ask,
        **{**TOKENS, **EXTRAS[extra]})
    return [list(s) for s in found[0]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true')
    options = parser.parse_args()
    chat_template_utils.datetime = FrozenDatetime
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(tokenizers.models.BPE()), **TOKENS)
    out = dict(transformers=transformers.__version__, now=NOW.strftime('%Y-%m-%d %H:%M:%S'), tokens=TOKENS,
               conversations=CONVERSATIONS, tools=TOOLS, extras=EXTRAS, cases=[])
    for path in sorted((HERE / 'templates').glob('*.jinja')):
        template = path.read_text()
        tokenizer.chat_template = template
        for plan in plans():
            row = dict(template=path.stem, conversation=plan[0], tools=plan[1], extra=plan[2], ask=plan[3], continued=plan[4],
                       **render(tokenizer, plan))
            if 'text' in row and not plan[4] and '{% generation %}' in template.replace('{%- ', '{% '):
                row['spans'] = spans(template, plan)
            out['cases'].append(row)
    # One line per case, so that diffs are readable.
    cases = ',\n'.join(json.dumps(row, ensure_ascii=False) for row in out.pop('cases'))
    text = json.dumps(out, ensure_ascii=False, indent=1)[:-2] + ',\n "cases": [\n' + cases + '\n]}\n'
    target = HERE / 'more.json'
    if options.check:
        sys.exit(0 if target.read_text() == text else 'more.json would change')
    target.write_text(text)


if __name__ == '__main__':
    main()
