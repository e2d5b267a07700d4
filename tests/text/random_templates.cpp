#include "tests/text/random_templates.h"

#include <iterator>

namespace lathe::test {

using jinja::Value;

namespace {

const char* const preludes[] = {
    "{% set list = messages[1:] %}",
    "{% set list = messages[:-1] %}",
    "{% set list = messages[::-1] %}",
    "{% set messages = messages[1:] %}",
    "{% set pair = [messages] %}",
    "{% set ns.all = messages %}",
    "{% set ns.list = messages[1:] %}",
    "{% if messages[0].role == 'system' %}{% set list = messages[1:] %}{% set sys = messages[0].content %}{% endif "
    "%}",
    "{% for m in messages %}{% set ns.n = ns.n + 2 %}{% set ns.seen = m.content %}{% endfor %}",
    "{% for m in messages %}{%- if ns.flag and m.role == 'tool' %}t{% set ns.flag = false %}{% endif %}{%- endfor %}",
    "{% set count = messages | length %}",
    "{% set users = messages | selectattr('role', 'equalto', 'user') | list %}",
    "{% set lazy = messages | selectattr('role', 'equalto', 'user') %}",
    "{% set spaces = [ns] %}",
    "{% set alias = ns %}",
    "{% if messages | length > 3 %}{% set alias = ns %}{% endif %}",
    "{% if messages | length > 3 %}{% set list = messages[1:] %}{% endif %}",
    "{% set ns.child = namespace(n=0) %}",
    "{% if messages | length > 3 %}{% set ns.more = 1 %}{% endif %}",
    "{% set join = joiner(', ') %}",
    "{% set cycle = cycler('a', 'b', 'c') %}",
    "{% set add = 1 if add_generation_prompt else 0 %}",
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}",
};

/// These set ns.last, which depends on the end of the list.
const char* const last_users[] = {
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}",
    "{% for m in messages[::-1] %}{%- set at = (messages|length - 1) - loop.index0 %}"
    "{%- if ns.flag and m.role == 'user' %}{% set ns.flag = false %}{% set ns.last = at %}{% endif %}{%- endfor %}",
    "{% set ns.last = messages | length - 2 %}",
    "{% set ns.last = 8 - messages | length %}",
};

/// These compare ns.last.
const char* const comparisons[] = {
    "{% if loop.index0 > ns.last %}<after>{% endif %}",
    "{% if ns.last < loop.index0 %}<after>{% endif %}",
    "{% if ns.last >= loop.index %}<before>{% endif %}",
    "{% if ns.last == loop.index0 %}<at>{% endif %}",
    "{% if loop.index0 != ns.last %}<else>{% endif %}",
    "{% if loop.index0 <= ns.last <= 5 %}<5>{% endif %}",
    "{% if ns.last > ns.n %}<n>{% endif %}",
    "{% if ns.last in [1, 2] %}<12>{% endif %}",
    "{% if ns['last'] > 2 %}<2>{% endif %}",
    "{% if ns.last < 3 %}<3>{% endif %}",
    "{% if 3 < ns.last %}<3>{% endif %}",
    "{% if ns.last <= loop.index0 %}<3>{% endif %}",
    "{% if loop.index0 >= ns.last %}<3>{% endif %}",
    "{% if 2 == ns.last %}<2>{% endif %}",
    "{% if ns.last != 3 %}<3>{% endif %}",
};

const char* const body_parts[] = {
    "{{ message.role }}:{{ message.content }};",
    "<{{ message.role }}>{{ message.content | trim }}</>",
    "{% if message.role == 'user' %}u{% else %}{{ message.content }}{% endif %}",
    "{% if loop.last %}<last>{% endif %}",
    "{% if message.role == 'assistant' and not loop.last %}<more>{% endif %}",
    "{% if loop.last and add_generation_prompt %}<add>{% endif %}",
    "{{ add_generation_prompt }}",
    "{{ loop.index }}",
    "{% if loop.first %}<first>{% endif %}",
    "{% if message.role == 'tool' %}{{ loop.revindex }}{% endif %}",
    "{{ loop.length }}",
    "{% if loop.nextitem is defined and loop.nextitem.role == 'tool' %}<next>{% endif %}",
    "{% if message.role == 'assistant' %}{{ loop.nextitem.content }}{% endif %}",
    "{{ loop.previtem.content if loop.previtem is defined }}",
    "{{ loop.previtem is defined and loop.previtem.role == 'user' }}",
    "{% if message.role == 'tool' and (loop.last or messages[loop.index0 + 1].role != 'tool') %}<t>{% endif %}",
    "{% if loop.index0 > 0 and messages[loop.index0 - 1].content == 'b' %}<b>{% endif %}",
    "{{ messages[loop.index0 + 2] is defined }}",
    "{{ messages[7] is defined }}{{ messages[2].role }}",
    "{{ messages[1].content }}",
    "{{ messages[-1].content }}",
    "{% if message.role == 'tool' %}{{ messages[-4:] | map(attribute='content') | join(',') }}{% endif %}",
    "{{ list[loop.index0].content if list[loop.index0] is defined }}",
    "{{ messages[loop.index].role if not loop.last }}",
    "{% if message.role == 'tool' %}{{ messages | length }}{% endif %}",
    "{% if ns.n > (bump() | int) %}<bump>{% endif %}",
    "{% if (bump() | int) > ns.n %}<bump>{% endif %}",
    "{% if message.role == 'user' %}{% set ns.n = ns.n + 1 %}{% endif %}",
    "{{ ns.n }}",
    "{% set ns.seen = message.content %}",
    "{{ ns.seen }}",
    "{% set ns.flag = not ns.flag %}",
    "{% if ns.flag %}f{% endif %}",
    "{% if message.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}",
    "{% if message.role == 'tool' %}{% set ns.fresh = 1 %}{% endif %}",
    "{% set ns.other = 1 %}",
    "{{ ns.fresh }}",
    "{% if message.role == 'tool' %}{{ ns }}{% endif %}",
    "{% if message.role == 'system' %}{% set ns.child = namespace(n=9) %}{% endif %}",
    "{% if ns.child %}{% set child = ns.child %}{% set child.n = child.n + 1 %}{{ child.n }}{% endif %}",
    "{% if spaces %}{% set s = spaces[0] %}{% set s.n = s.n + 1 %}{% endif %}",
    "{% set ns.message = message %}",
    "{{ ns.message.content if ns.message }}",
    "{% set ns.list = messages %}",
    "{{ ns.list | length if ns.list }}",
    "{% for m in messages %}{{ loop.index }}{% if loop.last %}!{% endif %}{% endfor %}",
    "{% if message.role == 'tool' %}{% for m in messages[loop.index:] %}{{ m.role }}{% endfor %}{% endif %}",
    "{% for c in [1, 2] %}{% if loop.last %}!{% endif %}{{ loop.changed(1) }}{% endfor %}",
    "{% if message.content == 'b' %}{% break %}{% endif %}",
    "{% if message.content == 'b' %}{% continue %}{% endif %}",
    "{{ loop.changed(message.role) }}",
    "{{ loop.cycle('x', 'y', 'z') }}",
    "{% if message.role == 'tool' %}{{ loop }}{% endif %}",
    "{{ show(message) }}",
    "{{ at_end(loop) }}",
    "{{ bump() }}",
    "{% if alias %}{{ alias.n }}{% set alias.n = alias.n + 1 %}{% endif %}",
    "{% if join %}{{ join() }}{% endif %}",
    "{% if cycle %}{{ cycle.next() }}{% endif %}",
    "{% if lazy %}{{ lazy | list | length }}{% endif %}",
    "{% if users and message in users %}U{% endif %}",
    "{% if message == messages[-1] %}E{% endif %}",
    "{% if message.role == 'tool' and loop.first %}{{ raise_exception('no') }}{% endif %}",
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}",
    "{% if ns.n > 3 %}{{ raise_exception('many') }}{% endif %}",
    "{% if message.role == 'tool' %}{{ count }}{% endif %}",
    "{% if count and loop.index0 == count - 1 %}<end>{% endif %}",
    "{{ add }}{{ sys }}",
    "{% filter upper %}{{ message.content }}{% if loop.last %}z{% endif %}{% endfilter %}",
    "{% set text %}{{ loop.nextitem }}{% endset %}{{ text | length }}",
    "{% with q = loop %}{% if message.role == 'tool' %}{{ q.last }}{% endif %}{% endwith %}",
    "{% set other = loop %}{{ other.revindex0 }}",
    "{{ messages is sameas list }}{{ 'y' if list }}",
    "{% if message.role == 'tool' %}{{ (messages | last).content }}{% endif %}",
    "{% if loop.first %}{{ messages | map(attribute='role') | join(',') }}{% endif %}",
    "{% if message.role == 'tool' %}{{ dict(a=messages).a | length }}{% endif %}",
    "{% set messages = [message] %}{{ messages | length }}",
    "{{ pair[0] | length if pair }}",
    "{% set ns.seen = ns.seen ~ message.role[0] %}",
    "{{ message.tool_calls | length if message.tool_calls }}",
    "{% if message.role == 'user' %}{% set ns.flag = false %}{% else %}{% set ns.flag = true %}{% endif %}",
    "{% if ns.flag and message.role == 'assistant' %}{% set ns.n = 0 %}{% endif %}",
    " \n ",
};

const char* const lists[] = {
    "messages",        "messages",          "messages",      "list",     "list",     "list",
    "messages[1:]",    "messages[::-1]",    "messages[:-1]", "list[1:]", "messages", "messages + []",
    "(messages)[2:4]", "ns.all or messages"};

const char* const epilogues[] = {
    "{% if add_generation_prompt %}<assistant>{% endif %}",
    "{% if add_generation_prompt %}assistant:{% endif %}",
    "{% if add_generation_prompt and messages[-1].role != 'assistant' %}<assistant>{% endif %}",
    "{{ ns.n }}",
    "{{ ns.seen }}",
    "{{ messages[-1].role }}",
    "{{ messages | length }}",
    "{{ ns }}",
    "{% if ns.flag %}end{% endif %}",
};

/// "b" ends loops in some templates.
const char* const contents[] = {"", "a", "b", "hello", " spaces ", "A\n", "the <end>", "bb", "A...A"};
const char* const roles[] = {"user", "assistant", "tool", "assistant", "user", "system"};

}  // namespace

std::string RandomTemplates::loop() {
  const std::string list = lists[below(std::size(lists))];
  std::string body = below(3) == 0 ? "" : body_parts[below(2)];
  if (below(4) == 0) body += comparisons[below(std::size(comparisons))];
  // Parts that work together are adjacent.
  const std::size_t window = below(2) == 0 ? std::size(body_parts) : 8,
                    from = below(std::size(body_parts) - window + 1);
  for (std::size_t count = below(5); count > 0; --count) body += body_parts[from + below(window)];
  const std::string condition = below(15) == 0 ? " if message.role != 'tool'" : "",
                    otherwise = below(15) == 0 ? "{% else %}none" : "";
  const std::string text = "{% for message in " + list + condition + " %}" + body + otherwise + "{% endfor %}";
  return below(6) == 0 ? "{% if messages %}" + text + "{% endif %}" : text;
}

std::string RandomTemplates::text() {
  std::string text =
      "{% set ns = namespace(last=-1, n=0, seen='', flag=true, message=none, list=none, child=none, all=none) %}"
      "{% set list = messages %}"
      "{% macro bump() %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% endmacro %}"
      "{% macro show(m) %}[{{ m.content }}{{ sys }}{{ ns.last }}]{% endmacro %}"
      "{% macro at_end(given) %}{{ 'end' if given.last }}{% endmacro %}";
  for (std::size_t count = below(3); count > 0; --count) text += preludes[below(std::size(preludes))];
  if (below(3) == 0) text += last_users[below(std::size(last_users))];
  text += loop();
  if (below(4) == 0) text += loop();
  for (std::size_t count = below(3); count > 0; --count) text += epilogues[below(std::size(epilogues))];
  return text;
}

Value RandomTemplates::message(bool first) {
  const std::string role = first && below(3) == 0 ? "system" : roles[below(std::size(roles) - 1)];
  std::vector<std::pair<Value, Value>> items = {{"role", role}, {"content", contents[below(std::size(contents))]}};
  if (role == "assistant" && below(4) == 0) {
    const Value call = Value::dict({{"name", "f"}, {"arguments", Value::dict({{"x", below(9)}})}});
    items.emplace_back("tool_calls", Value::list({Value::dict({{"type", "function"}, {"function", call}})}));
    if (below(2) == 0) items[1].second = Value();
  }
  if (role == "assistant" && below(6) == 0) items.emplace_back("reasoning_content", "because");
  return Value::dict(items);
}

std::vector<Value> RandomTemplates::messages(std::size_t most) {
  std::vector<Value> all;
  const bool alternate = below(2) == 0;
  for (std::size_t size = 1 + below(most); all.size() < size;) {
    Value next = message(all.empty());
    if (alternate) {
      jinja::DictBuilder builder(next.dict());
      builder.set("role", all.size() % 2 == 0 ? "user" : "assistant");
      next = std::move(builder).finish();
    }
    all.push_back(std::move(next));
  }
  return all;
}

}  // namespace lathe::test
