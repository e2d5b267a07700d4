#include "runtime/run/program_runner.h"

#include <algorithm>

#include "ir/ops/lookups.h"
#include "ir/support/error.h"
#include "passes/program/program_loops.h"

namespace lathe {

std::string checked_op(const Launch& launch) {
  const auto looks_up = [](const LaunchOp& op) { return op.op && ir::is_lookup(*op.op); };
  const auto named = std::ranges::find_if(launch.info.ops, looks_up);
  return named == launch.info.ops.end() ? "an op that looks up elements" : named->to_string();
}

void check_status(const Launch& launch, std::int64_t code) {
  if (code == 0) return;
  const auto at = static_cast<std::size_t>(code - 1);
  const std::string message = at < launch.checks.size() ? launch.checks[at] : "a run-time check failed";
  throw UserError(launch.loc, checked_op(launch), message, "index_range", "look at the integers that are passed in");
}

std::vector<bool> written_buffers(const Program& program) {
  std::vector<bool> written(program.buffers.size());
  for (const Launch& launch : program.launches) {
    const kernel::Kernel& kernel = program.kernels[launch.kernel];
    for (std::size_t i = 0; i < launch.buffers.size(); ++i)
      if (kernel.buffers[i].access != kernel::Access::read) written[storage_of(program, launch.buffers[i])] = true;
  }
  for (const Collective& collective : program.collectives)
    for (const Collective::Part& part : collective.parts) written[part.to] = true;
  return written;
}

std::map<int, HostTensor> constant_tensors(const Program& program) {
  std::map<int, HostTensor> constants;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const ProgramBuffer& buffer = program.buffers[b];
    if (buffer.kind == ProgramBuffer::Kind::constant)
      constants.emplace(static_cast<int>(b), HostTensor::from_numbers({static_cast<std::int64_t>(buffer.data.size())},
                                                                      buffer.data, buffer.dtype));
  }
  return constants;
}

}  // namespace lathe
