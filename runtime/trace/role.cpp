#include "runtime/trace/role.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "ir/support/visible.h"
#include "passes/program/program_loops.h"

namespace lathe {

namespace {

std::vector<std::string_view> distinct_ops(const Launch& launch) {
  std::vector<std::string_view> ops;
  for (const LaunchOp& op : launch.info.ops)
    if (std::find(ops.begin(), ops.end(), op.op_name()) == ops.end()) ops.push_back(op.op_name());
  return ops;
}

/// Returns the name of the parameter that the launch writes; empty if it writes none.
std::string updated_parameter(const Program& program, const Launch& launch) {
  const kernel::Kernel& kernel = program.kernels[launch.kernel];
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    if (kernel.buffers[i].access == kernel::Access::read) continue;
    for (const Program::Slot& slot : program.states)
      if (slot.is_parameter && slot.buffer == storage_of(program, launch.buffers[i])) return slot.name;
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
  const std::vector<std::string_view> ops = distinct_ops(launch);
  role.what = words(launch.info.role);
  role.ops = fmt::format(
      "{}", fmt::join(ops.begin(), ops.begin() + static_cast<std::ptrdiff_t>(std::min(ops.size(), most)), ", "));
  if (ops.size() > most) role.ops += ", ...";
  const std::string updated = updated_parameter(program, launch);
  role.where = visible(updated.empty() ? without_layer_numbers(launch.loc.scope())
                                       : "update of " + without_layer_numbers(updated));
  if (launch.loc.known()) role.source = launch.loc.to_string();
  return role;
}

}  // namespace lathe
