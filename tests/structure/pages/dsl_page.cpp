#include "tests/structure/pages/dsl_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ir/tensor/op/op.h"
#include "tests/structure/pages/declarations.h"

namespace lathe::test {

namespace {

using Kind = Declaration::Kind;

constexpr std::string_view preamble = R"(# The DSL

All types and functions with which a program builds, differentiates and trains a model. This page is generated from the
headers of `frontend/` (`tests/structure/pages/dsl_page.cpp`); a test keeps it current. `<lathe/lathe.h>` includes all of them.
Names are in namespace `lathe`.

Declarations are shortened. A parameter `Tensor x` is a `const Tensor&`. The last parameter of most functions,
`Where at`, is omitted: it defaults to the caller's line. A `DimIndex` is an integer; a negative one counts from the
end. The meaning is the first sentence of the doc comment. [Ops](ops.md) has the rules, gradients and errors of the
ops, and [errors](errors.md) explains the labels in brackets.
)";

struct Section {
  std::string_view title;
  std::vector<std::string> headers;
};

const std::vector<Section>& sections() {
  static const std::vector<Section> all{
      {"Tensors", {"frontend/tensor.h"}},
      {"Graphs", {"frontend/graph.h", "ir/options/init.h", "frontend/initial_values.h"}},
      {"Functions of one op", {"frontend/ops/plain_ops.h"}},
      {"Other functions", {"frontend/ops/ops.h", "frontend/ops/derived_ops.h", "frontend/ops/factorizations.h"}},
      {"Images and sound", {"frontend/ops/spatial/conv_ops.h", "frontend/ops/spatial/pooling.h"}},
      {"Loops and recurrences", {"frontend/ops/loops/loops.h", "frontend/ops/loops/recurrences.h"}},
      {"Losses", {"frontend/ops/losses.h"}},
      {"Gradients", {"frontend/grad.h"}},
      {"Modules",
       {"frontend/nn/module.h", "frontend/nn/linear.h", "frontend/nn/low_rank.h", "frontend/nn/norm.h",
        "frontend/nn/feed_forward.h", "frontend/nn/experts.h", "frontend/nn/conv_layers.h",
        "frontend/nn/attention/attention.h", "frontend/nn/attention/self_attention.h",
        "frontend/nn/attention/key_value_cache.h", "frontend/nn/attention/positions.h",
        "frontend/nn/attention/rope.h", "frontend/nn/stacked.h", "frontend/nn/substitution.h"}},
      {"Recurrent layers",
       {"frontend/nn/recurrent/recurrent.h", "frontend/nn/recurrent/mamba2.h",
        "frontend/nn/recurrent/gated_delta_net.h", "frontend/nn/recurrent/causal_conv.h",
        "frontend/nn/recurrent/mixer_state.h"}},
      {"Models", {"frontend/models/gpt.h", "frontend/models/llama.h", "frontend/models/encoder_decoder.h"}},
      {"Training steps",
       {"frontend/train/step.h", "frontend/train/training.h", "frontend/train/gradient_hook.h",
        "frontend/train/named_gradient.h", "frontend/train/loss_scaling.h"}},
      {"Optimizers",
       {"frontend/train/optimizers/sgd.h", "frontend/train/optimizers/adam.h", "frontend/train/optimizers/lion.h",
        "frontend/train/optimizers/adafactor.h", "frontend/train/optimizers/muon.h",
        "frontend/train/optimizers/eight_bit/adamw_8bit.h", "frontend/train/optimizers/schedule_free.h",
        "frontend/train/optimizers/soap.h", "frontend/train/optimizer.h", "frontend/train/parameter_filter.h",
        "frontend/train/schedule.h"}},
      {"Custom ops", {"frontend/ops/custom_op.h", "frontend/ops/check_custom_op.h", "frontend/ops/op_library.h"}},
      {"Choice of tokens",
       {"frontend/decode/decoding.h", "frontend/decode/token_rules.h", "frontend/decode/beam_search.h"}}};
  return all;
}

const SourceFile& public_header(const std::string& path) {
  for (const SourceFile* header : public_headers())
    if (header->path == path) return *header;
  throw std::runtime_error(path + " is no public header");
}

std::string replaced(std::string text, const char* pattern, const char* by) {
  return std::regex_replace(text, std::regex(pattern), by);
}

/// Removes `start` and the balanced brackets after it from the beginning of a declaration.
std::string without_clause(const std::string& code, std::string_view start, char open, char close) {
  if (!code.starts_with(start)) return code;
  int depth = 0;
  for (std::size_t i = start.size(); i < code.size(); ++i) {
    if (code[i] == open) ++depth;
    if (code[i] == close && --depth == 0) return code.substr(std::min(i + 2, code.size()));
  }
  return code;
}

/// Returns a member initializer list's start, or npos: " : value(flag)".
std::size_t initializers_of(const std::string& code) {
  int depth = 0;
  for (std::size_t i = 0; i + 2 < code.size(); ++i) {
    if (code[i] == '(') ++depth;
    if (code[i] == ')' && --depth == 0 && code.compare(i + 1, 3, " : ") == 0) return i + 1;
  }
  return std::string::npos;
}

/// Returns the name of a declared function; empty for other declarations.
std::string function_name(const std::string& code) {
  static const std::regex name(R"(([A-Za-z_]\w*|operator[^\w\s(]+|operator\(\))\()");
  std::smatch match;
  const std::string head = code.substr(0, code.find(" = "));
  return code.starts_with("using ") || !std::regex_search(head, match, name) ? "" : match[1].str();
}

bool is_operator(const std::string& code) {
  static const std::regex symbol(R"(\boperator[^\w\s(])");
  return std::regex_search(code, symbol) && function_name(code) != "operator()";
}

/// A conversion, which no program calls by name.
bool is_conversion(const std::string& code) {
  static const std::regex conversion(R"(\boperator [\w:]+\()");
  return std::regex_search(code, conversion);
}

std::string cell(std::string text) { return replaced(std::move(text), R"(\|)", "\\|"); }

/// Escapes text that Markdown would take for markup, outside of code: "h*d", "learning_rate.<name>".
std::string prose(const std::string& text) {
  std::string result;
  bool is_code = false;
  for (const char c : text) {
    if (c == '`') is_code = !is_code;
    if (!is_code && (c == '*' || c == '<')) result += '\\';
    result += c;
  }
  return result;
}

/// Returns a paragraph in lines of up to 150 characters, each with a line break.
std::string wrapped(const std::string& text) {
  std::istringstream words(text);
  std::string result, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > 150) result += std::exchange(line, "") + "\n";
    line += (line.empty() ? "" : " ") + word;
  }
  return result + line + "\n";
}

/// Returns a text as a sentence.
std::string sentence(std::string text) {
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text.ends_with('.') || text.ends_with(']') ? text : text + ".";
}

/// Returns the name of the op that a function without a doc comment adds, such as that of Tensor::permute.
const ir::Op* op_of(const Declaration& declaration) {
  if (!declaration.owner.empty() && declaration.owner != "Tensor") return nullptr;
  const std::string name = function_name(declaration.code);
  return name.empty() ? nullptr : ir::find_op(name);
}

/// Consecutive declarations that share a description.
struct Row {
  std::vector<std::string> code;
  std::string doc;
  std::vector<const ir::Op*> ops;
  bool is_method;
};

/// A field or an enumerator.
bool is_data(const Declaration& declaration) { return function_name(declaration.code).empty(); }

std::vector<Row> rows_of(const std::vector<Declaration>& members) {
  std::vector<Row> rows;
  bool is_data_row = false;  // the last row has fields or enumerators
  for (const Declaration& member : members) {
    if (is_conversion(member.code)) continue;
    const bool is_overload = !rows.empty() && !rows.back().code.empty() && member.doc.empty() &&
                             !function_name(member.code).empty() &&
                             function_name(rows.back().code.back()) == function_name(member.code);
    const bool is_bare =
        !rows.empty() && rows.back().doc.empty() && member.doc.empty() && is_data(member) && is_data_row;
    const bool joins = !rows.empty() && (member.shares_doc || is_overload || is_bare ||
                                         (is_operator(member.code) && is_operator(rows.back().code.back())));
    if (!joins)
      rows.push_back(
          {.code = {}, .doc = prose(summary_of(member.doc)), .ops = {}, .is_method = member.owner == "Tensor"});
    is_data_row = is_data(member);
    rows.back().code.push_back(printed_declaration(member.code));
    if (const ir::Op* op = op_of(member); op && std::ranges::find(rows.back().ops, op) == rows.back().ops.end())
      rows.back().ops.push_back(op);
  }
  return rows;
}

/// Operators by their symbols; there are many overloads of each.
std::string operators_text(const Row& row) {
  std::string text;
  std::set<std::string> seen;
  for (const std::string& code : row.code) {
    const std::string symbol = function_name(code).substr(std::string("operator").size());
    if (seen.insert(symbol).second) text += fmt::format("{}`{}`", text.empty() ? "" : " ", symbol);
  }
  return text;
}

/// Returns the record's line for the op of a method, with what the header adds.
std::string meaning_of(const Row& row) {
  if (row.ops.empty()) return row.doc;
  const std::string line = prose(std::string(row.ops[0]->doc.value));
  if (row.doc.empty()) return line;
  if (!row.is_method) return row.doc;
  return row.doc.find(" -> ") == std::string::npos ? line : line + "; " + row.doc;
}

std::string row_text(const Row& row, bool has_ops) {
  std::string code;
  if (is_operator(row.code[0]) && row.code.size() > 1) {
    code = operators_text(row);
  } else {
    for (const std::string& each : row.code) code += fmt::format("{}`{}`", code.empty() ? "" : "<br>", each);
  }
  std::string links;
  for (const ir::Op* op : row.ops)
    links += fmt::format("{}[{}](ops.md#{})", links.empty() ? "" : ", ", op->name.value, op->name.value);
  return fmt::format("| {} | {} |{}\n", cell(code), cell(meaning_of(row)), has_ops ? " " + links + " |" : "");
}

std::string table_of(const std::vector<Declaration>& members) {
  const std::vector<Row> rows = rows_of(members);
  if (rows.empty()) return "";
  const bool has_ops = std::ranges::any_of(rows, [](const Row& row) { return !row.ops.empty(); });
  std::string text =
      has_ops ? "\n| declaration | meaning | op |\n|---|---|---|\n" : "\n| declaration | meaning |\n|---|---|\n";
  for (const Row& row : rows) text += row_text(row, has_ops);
  return text;
}

/// Returns the members of a type, or the functions of a namespace, with their headings.
std::string members_text(const std::vector<Declaration>& all, const std::string& owner) {
  std::string text;
  std::vector<Declaration> members;
  for (const Declaration& each : all) {
    if (each.owner != owner || each.kind == Kind::type) continue;
    if (each.kind == Kind::heading) {
      text += table_of(members);
      members.clear();
      text += "\n" + wrapped(sentence(prose(each.doc)));
    } else {
      members.push_back(each);
    }
  }
  return text + table_of(members);
}

std::string type_text(const std::vector<Declaration>& all, const Declaration& type) {
  std::string text = fmt::format("\n### `{}`\n", type.name);
  if (!type.doc.empty()) text += "\n" + wrapped(prose(summary_of(type.doc)));
  return text + members_text(all, type.name);
}

std::string header_text(const std::string& path) {
  const HeaderText header = declarations_of(public_header(path));
  std::string text;
  std::vector<std::string> spaces;  // in which the header declares functions
  for (const Declaration& each : header.declarations) {
    const bool is_space = std::ranges::none_of(header.declarations, [&](const Declaration& type) {
      return type.kind == Kind::type && type.name == each.owner;
    });
    if (is_space && std::ranges::find(spaces, each.owner) == spaces.end()) spaces.push_back(each.owner);
  }
  for (const std::string& space : spaces) text += members_text(header.declarations, space);
  for (const Declaration& each : header.declarations)
    if (each.kind == Kind::type) text += type_text(header.declarations, each);
  const std::string doc = prose(summary_of(header.doc));
  return "\n" + wrapped(fmt::format("From `{}`. {}", path, doc)) + text;
}

}  // namespace

std::string summary_of(std::string_view doc) {
  // A sentence ends at a period before a capital, a backquote or a label; not after "al." or in "0, 1, .. n".
  static const std::regex end(R"(([^.])\.( \[[a-z_]+\])*( (?=[A-Z`])|$))");
  std::vector<std::string> sentences;
  std::string rest(doc);
  for (std::smatch match; std::regex_search(rest, match, end);) {
    sentences.push_back(rest.substr(0, static_cast<std::size_t>(match.position()) + 2));
    rest = match.suffix();
  }
  if (!rest.empty()) sentences.push_back(rest);
  std::string text;
  for (const std::string& sentence : sentences)
    if (text.empty() || sentence.starts_with("Returns [") || sentence.find(" -> ") != std::string::npos)
      text += (text.empty() ? "" : " ") + sentence;
  return text;
}

std::string printed_declaration(std::string code) {
  code = without_clause(code, "template ", '<', '>');
  code = without_clause(code, "requires", '(', ')');
  code = code.substr(0, initializers_of(code));
  code = replaced(code, R"(^(\[\[nodiscard\]\]|inline|explicit|constexpr|friend|virtual) )", "");
  code = replaced(code, R"((, )?(const )?Where&? at( = Where::current\(\))?\))", ")");
  code = replaced(code, R"((, )?const std::source_location& at = std::source_location::current\(\)\))", ")");
  code = replaced(code, R"(const ([\w:]+(?:<[^()&]*>)?)& ?(?=\w))", "$1 ");
  code = replaced(code, R"(\) const$)", ")");
  code = replaced(code, R"(\) (const )?\{\}$)", ")");
  return replaced(code, " = \\{\\}$", "");
}

std::string dsl_page() {
  std::string text(preamble);
  for (const Section& section : sections()) {
    text += fmt::format("\n## {}\n", section.title);
    for (const std::string& header : section.headers) text += header_text(header);
  }
  return text;
}

}  // namespace lathe::test
