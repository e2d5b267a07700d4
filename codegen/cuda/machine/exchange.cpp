#include "ir/kernel/machine/exchange.h"

#include <fmt/core.h>

#include "codegen/cuda/machine/pipelines.h"

namespace lathe::cuda {

namespace {

std::string from_lane_text(const kernel::Instruction&, const KernelText& k) {
  return fmt::format("from_lane({}, {})", k.arg(0), k.arg(1));
}

/// Producers do not have the argument.
std::string from_consumers_text(const kernel::Instruction&, const KernelText& k) {
  return pipeline_role(k.role()).produces ? "pipeline.hear()" : fmt::format("pipeline.tell({})", k.arg(0));
}

constexpr std::string_view exchange_words[] = {"from_lane"};
constexpr MachineHook exchange_table[] = {{&kernel::from_lane_record, from_lane_text},
                                          {&kernel::from_consumers_record, from_consumers_text}};

}  // namespace

extern const MachineFamily exchange_hooks;
constinit const MachineFamily exchange_hooks{nullptr, exchange_words, exchange_table};

}  // namespace lathe::cuda
