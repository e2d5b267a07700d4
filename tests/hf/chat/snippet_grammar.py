"""Random small templates: expressions over the variables of make_snippets.py, and statements that set and read names."""
import random

NAMES = ['s', 'p', 'w', 'u8', 'e', 'lines', 'q', 'html', 'num', 'fnum', 'i', 'z', 'neg', 'big', 'f', 'g', 'h', 't', 'no', 'nil', 'l', 'ls',
         'lm', 'nested', 'el', 'd', 'ed', 'm', 'undefined_name']
STRINGS = ["'a'", "'l'", "' '", "','", "''", "'\\n'", '"World"', "'é'", "'%s'", "'x y'", "'ß'", "'role'", "'content'", "'items'"]
NUMBERS = ['0', '1', '2', '3', '-1', '-2', '7', '0.5', '2.0', '-1.5', '1e3', '10']
ATTRIBUTES = ['a', 'b', 'c', 'items', 'keys', 'role', 'content', 'missing', 'upper', 'append', 'real_name', '__class__', 'Z', 'tool_calls']
FILTERS = ['upper', 'lower', 'title', 'capitalize', 'trim', 'length', 'first', 'last', 'list', 'string', 'int', 'float', 'abs', 'round', 'sort',
           'unique | list', 'reverse | list', 'join', "join(', ')", 'tojson', 'tojson(indent=2)', 'tojson(sort_keys=true)', 'default("d")',
           'default("d", true)', 'd', 'min', 'max', 'sum', 'items | list', 'dictsort', 'count', 'e', 'escape', 'safe', 'indent', 'indent(2, true)',
           'replace("l", "L")', 'replace("", "-")', 'replace("a", "b", 1)', 'wordcount', 'center(12)', 'batch(2) | list', "batch(2, 'x') | list",
           'slice(2) | list', "map('upper') | list", "map(attribute='role') | list", "map(attribute='n', default=0) | list", "select | list",
           "select('string') | list", "reject('none') | list", "selectattr('n') | list", "selectattr('role', 'equalto', 'user') | list",
           "rejectattr('n', 'defined') | list", "select('in', [1, 2]) | list", "sort(reverse=true)", "sort(attribute='role')", 'sort(case_sensitive=true)',
           "map('trim') | join('|')", 'round(1)', "round(0, 'floor')", "round(method='ceil')", "int(5)", 'truncate(8)', "truncate(8, true, '..', 0)",
           'tojson(ensure_ascii=true)', "tojson(separators=(',', ':'))", 'map("tojson") | list', 'attr("upper")', 'trim("H d")',
           "sum(start=1)", "sum(attribute='n')", 'forceescape', 'max(attribute="n")', 'min(case_sensitive=true)', "join('-', attribute='role')"]
TESTS = ['defined', 'undefined', 'none', 'string', 'mapping', 'iterable', 'sequence', 'number', 'integer', 'float', 'boolean', 'true', 'false', 'odd',
         'even', 'divisibleby 3', 'divisibleby(2)', "equalto 'a'", 'eq 1', '== 7', 'ne none', 'in [1, 2, 3]', "in 'Hello'", 'sameas none', 'sameas true',
         'callable', 'upper', 'lower', 'gt 2', 'lt 2', 'ge 2', 'le 2', 'escaped', 'filter', 'test']
METHODS = ['strip()', "strip('H d')", 'lstrip()', 'rstrip()', "rstrip('\\n')", 'split()', "split(',')", "split('l', 1)", 'rsplit(None, 1)',
           "rsplit(',', 1)", 'splitlines()', 'splitlines(true)', "startswith('He')", "endswith(('d', 'f'))", "startswith('l', 2)", "replace('l', 'LL')",
           "replace('l', '', 1)", 'upper()', 'lower()', 'title()', 'capitalize()', "join(['x', 'y'])", 'join(ls)', "find('l')", "rfind('l')",
           "index('o')", "count('l')", "count('')", "find('l', 3)", "find('', 20)", 'isdigit()', 'isalpha()', 'isalnum()', 'isspace()', 'isupper()',
           'islower()', 'istitle()', 'isidentifier()', 'isprintable()', 'isascii()', 'isdecimal()', 'zfill(8)', 'ljust(13)', 'rjust(13, "*")', 'center(14)',
           "partition('o')", "rpartition('o')", "removeprefix('He')", "removesuffix('ld')", 'items() | list', 'keys() | list', 'values() | list',
           "get('a')", "get('zz')", "get('zz', 5)", 'count(1)', 'index(1)', 'copy()', 'append(1)', "pop('a')", 'items()', 'keys()']
OPERATORS = ['+', '-', '*', '/', '//', '%', '~', '==', '!=', '<', '<=', '>', '>=', 'in', 'not in', 'and', 'or', '**']
PIECES = ['text', ' ', '\n', '  ', '\n\n', ' x ', '\t', '{', '}', '%', '#', '\n  ', 'ü\n', "'"]


class Grammar:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, items):
        return self.random.choice(items)

    def chance(self, share):
        return self.random.random() < share

    def atom(self):
        kind = self.random.random()
        if kind < 0.55:
            return self.pick(NAMES)
        if kind < 0.75:
            return self.pick(STRINGS)
        return self.pick(NUMBERS) if kind < 0.93 else self.pick(['true', 'False', 'none', 'None', '[]', '{}', '()', 'range(3)', 'range(5, 0, -2)'])

    def expression(self, depth):
        if depth <= 0:
            return self.atom()
        below = lambda: self.expression(depth - 1)
        kind = self.random.randrange(17)
        if kind < 3:
            return f'({below()}) {self.pick(OPERATORS)} ({below()})' if self.chance(0.6) else f'{below()} {self.pick(OPERATORS)} {below()}'
        if kind < 7:
            return f'({below()}) | {self.pick(FILTERS)}' if self.chance(0.5) else f'{self.atom()} | {self.pick(FILTERS)}'
        if kind == 7:
            return f'({below()}) is {self.pick(["", "not "])}{self.pick(TESTS)}'
        if kind < 10:
            return f'({below()}).{self.pick(METHODS)}' if self.chance(0.4) else f'{self.pick(NAMES)}.{self.pick(METHODS)}'
        if kind == 10:
            return f'{self.pick(NAMES)}.{self.pick(ATTRIBUTES)}'
        if kind == 11:
            return f'{self.pick(NAMES)}[{self.pick([self.pick(NUMBERS), self.pick(STRINGS), below()])}]'
        if kind == 12:
            bound = lambda: self.pick(['', '', '1', '2', '-1', '-2', '0', '100', '-100', 'none'])
            step = self.pick(['', ':', ':2', ':-1', ':-2', ':0'])
            return f'{self.pick(NAMES)}[{bound()}:{bound()}{step}]'
        if kind == 13:
            return self.pick([f'{below()} if {below()} else {below()}', f'({below()} if {below()})'])
        if kind == 14:
            return self.pick([f'[{below()}, {below()}]', f'({below()},)', f'{{{self.pick(STRINGS)}: {below()}, 1: {below()}}}', f'({below()}, {below()})'])
        if kind == 15:
            return self.pick([f'not {below()}', f'-{below()}', f'+({below()})', f'not ({below()})'])
        return f'{below()} {self.pick(["<", "==", "in", "!="])} {below()} {self.pick(["<", "<=", "not in"])} {below()}'

    def tag(self, inside):
        return '{%' + self.pick(['', '', '-', '-', '+']) + f' {inside} ' + self.pick(['', '', '-', '-', '+']) + '%}'

    def show(self, inside):
        return '{{' + self.pick(['', '', '-']) + f' {inside} ' + self.pick(['', '', '-']) + '}}'

    def name(self):
        return self.pick(['a', 'b', 'c', 'i', 's'])

    def value(self):
        return self.pick(['1', "'v'", self.name(), f'{self.name()} ~ "+"', 'loop.index', 'ns.x', 'l', 'loop', f'{self.name()} is defined', 'f1(2)', 'none'])

    def block(self, depth):
        return ''.join(self.statement(depth) if self.chance(0.75) else self.pick(PIECES) for _ in range(self.random.randrange(1, 5)))

    def statement(self, depth):
        kind = self.random.randrange(20 if depth > 0 else 7)
        body = lambda: self.block(depth - 1)
        if kind < 3:
            return self.show(self.pick([f'[{self.name()}, {self.name()}]', self.name(), self.value()]))
        if kind < 6:
            return self.tag(self.pick([f'set {self.name()} = {self.value()}', f'set ns.x = {self.value()}', f'set {self.name()}, {self.name()} = {self.value()}, 2',
                                       'set ns = namespace(x=1)', f'set ns = namespace(x={self.value()})']))
        if kind == 6:
            return self.pick(['{# c #}', '{#- c -#}', '{% raw %}{{ x }} {% endraw %}', '{%- raw -%} {% if %} {%- endraw -%}', '\n{# c #}\n', ' {%+ if t %}x{% endif %}\n'])
        if kind < 10:
            return self.tag(f'if {self.pick([self.value(), "t", "no", "loop.first"])}') + body() + \
                (self.tag(f'elif {self.value()}') + body() if self.chance(0.3) else '') + (self.tag('else') + body() if self.chance(0.4) else '') + self.tag('endif')
        if kind < 14:
            target = self.pick([self.name(), self.name(), f'{self.name()}, {self.name()}'])
            what = self.pick(['l', 'ls', 'el', 'range(2)', "'xy'", 'd', '[[1, 2], [3, 4]]', 'd.items()', self.name(), "l | map('string')", 'undefined_name'])
            test = self.pick(['', '', '', f' if {self.pick([self.name(), self.value()])}', ' if loop is defined'])
            stop = self.pick(['', '', '', self.tag('break'), self.tag('continue'), self.tag('if loop.index == 2') + self.tag('break') + self.tag('endif')])
            return self.tag(f'for {target} in {what}{test}') + body() + stop + (self.tag('else') + body() if self.chance(0.3) else '') + self.tag('endfor')
        if kind == 14:
            return self.tag(f'set {self.name()}{self.pick(["", " | upper", " | trim | length"])}') + body() + self.tag('endset')
        if kind == 15:
            signature = self.pick(['', 'x', 'a, b', 'a, b=2', 'a=c', 'x, y=x'])
            reads = self.pick(['', '{{ varargs }}', '{{ kwargs }}', '{{ caller is defined }}', "{{ caller() if caller }}"])
            return self.tag(f'macro f1({signature})') + body() + reads + self.tag('endmacro')
        if kind == 16:
            return self.show(f'f1({self.pick(["", "1", "a, b", "a=1", "1, 2, 3", "x=a", "*l", "**{}", "b=5, a=6", "zz=1"])})')
        if kind == 17:
            return self.tag(self.pick(['filter upper', "filter replace('x', 'y') | trim"])) + body() + self.tag('endfilter')
        if kind == 18:
            return self.tag(self.pick([f'with {self.name()} = {self.value()}', f'with {self.name()} = 1, {self.name()} = {self.value()}', 'with'])) + body() + self.tag('endwith')
        return self.pick([self.tag('call f1(1)') + body() + self.tag('endcall'), self.tag('call(x) f1()') + body() + self.tag('endcall'),
                          self.tag('generation') + body() + self.tag('endgeneration')])

    def template(self):
        if self.chance(0.55):
            return '{{ ' + self.expression(self.random.randrange(1, 4)) + ' }}'
        return self.block(3)

    def broken(self):
        """A template with a piece cut out or put in."""
        text = self.template()
        at = self.random.randrange(len(text) + 1)
        return text[:at] + (self.pick(['{%', '%}', '}}', '(', ')', '|', '.', 'is', 'endif', "'"]) if self.chance(0.5) else '') + text[at + self.random.randrange(3):]


def generate(count, seed):
    grammar = Grammar(seed)
    return [grammar.broken() if grammar.chance(0.08) else grammar.template() for _ in range(count)]
