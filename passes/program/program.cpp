#include "passes/program/program.h"

#include <algorithm>

namespace lathe {

bool Launch::runs(ir::ValueId id) const {
  return std::any_of(info.ops.begin(), info.ops.end(), [&](const LaunchOp& op) { return op.value == id; });
}

std::vector<std::string> Launch::names() const {
  std::vector<std::string> found;
  for (const LaunchOp& op : info.ops) found.push_back(op.to_string());
  return found;
}

bool Launch::leaves_remainder(int parameter) const {
  return std::find(partial.begin(), partial.end(), parameter) != partial.end();
}

bool is_skipped(const Program& program, const Launch& launch, const DimBindings& dims) {
  if (launch.condition && !launch.condition->holds(launch.condition->size.evaluate(dims))) return true;
  const kernel::Kernel& kernel = program.kernels[launch.kernel];
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const ProgramBuffer& buffer = program.buffers[launch.buffers[i]];
    if (kernel.buffers[i].access == kernel::Access::read || buffer.kind == ProgramBuffer::Kind::scratch) continue;
    if (buffer.elements.evaluate(dims) > 0) return false;
  }
  return true;
}

CollectiveSpan span_of(const Collective& collective, const Program& program) {
  const int end = std::max(1, static_cast<int>(program.launches.size()));
  const int first = std::min(collective.start, end - 1);
  return {first, std::max(first, std::min(collective.done, end) - 1)};
}

}  // namespace lathe
