#include "runtime/trace/role.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <vector>

#include "ir/ops/list.h"
#include "ir/support/visible.h"
#include "ir/tensor/op.h"

namespace lathe {

namespace {

/// "k12_product" -> "product".
std::string_view stem(std::string_view kernel) {
  const auto underscore = kernel.find('_');
  return underscore == std::string_view::npos ? kernel : kernel.substr(underscore + 1);
}

/// "%12 softmax weights" -> "softmax"; "copy wte" -> "copy".
std::string op_of(std::string_view name) {
  if (name.starts_with('%')) name.remove_prefix(std::min(name.size(), name.find(' ') + 1));
  return std::string(name.substr(0, name.find(' ')));
}

std::vector<std::string> distinct_ops(const Launch& launch) {
  std::vector<std::string> ops;
  for (const std::string& name : launch.names) {
    std::string op = op_of(name);
    if (std::find(ops.begin(), ops.end(), op) == ops.end()) ops.push_back(std::move(op));
  }
  return ops;
}

std::string what_of(std::string_view kernel, const std::vector<std::string>& ops) {
  static const std::map<std::string_view, std::string> words{
      {"product", "matrix product"},   {"pack_lhs", "pack left operand"}, {"pack_rhs", "pack right operand"},
      {"columns", "column reduction"}, {"scatter_add", "scatter add"},    {"copy", "copy"}};
  if (const auto known = words.find(kernel); known != words.end()) return known->second;
  if (kernel == "rows") {
    const bool reduces = std::any_of(ops.begin(), ops.end(), [](const std::string& name) {
      const ir::Op* op = ir::find_op(name);
      return op && op->as<ir::Reduce>();
    });
    return reduces ? "row reduction" : "element-wise";
  }
  std::string words_of(kernel);
  std::replace(words_of.begin(), words_of.end(), '_', ' ');
  return words_of;
}

/// The parameter that the launch writes, if it writes one.
std::string updated_parameter(const Program& program, const Launch& launch) {
  const kernel::Kernel& kernel = program.kernels[static_cast<std::size_t>(launch.kernel)];
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    if (kernel.buffers[i].access == kernel::Access::read) continue;
    for (const Program::Slot& slot : program.states)
      if (slot.is_parameter && slot.buffer == launch.buffers[i]) return slot.name;
  }
  return {};
}

}  // namespace

std::string without_layer_numbers(std::string_view path) {
  std::string text;
  while (true) {
    const auto dot = path.find('.');
    const std::string_view part = path.substr(0, dot);
    const bool number =
        !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    text += number ? "*" : part;
    if (dot == std::string_view::npos) return text;
    text += '.';
    path.remove_prefix(dot + 1);
  }
}

Role role_of(const Program& program, const Launch& launch) {
  constexpr std::size_t most = 4;
  Role role;
  const std::vector<std::string> ops = distinct_ops(launch);
  role.what = what_of(stem(program.kernels[static_cast<std::size_t>(launch.kernel)].name), ops);
  for (std::size_t i = 0; i < std::min(ops.size(), most); ++i) role.ops += (i ? ", " : "") + ops[i];
  if (ops.size() > most) role.ops += ", ...";
  const std::string updated = updated_parameter(program, launch);
  role.where = visible(updated.empty() ? without_layer_numbers(launch.loc.scope())
                                       : "update of " + without_layer_numbers(updated));
  if (launch.loc.known()) role.source = launch.loc.to_string();
  return role;
}

}  // namespace lathe
