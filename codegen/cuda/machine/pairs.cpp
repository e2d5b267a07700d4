#include <fmt/core.h>

#include "codegen/cuda/machine/hooks.h"
#include "ir/kernel/machine/split_bf16.h"

namespace lathe::cuda {

namespace {

std::string dot_pairs_text(const kernel::Instruction&, const KernelText& k) {
  return fmt::format("dot_pairs({}, {}, {})", k.arg(0), k.arg(1), k.arg(2));
}

constexpr std::string_view pair_words[] = {"dot_pairs", "dot_pair"};
constexpr MachineHook pair_table[] = {{&kernel::dot_pairs_record, dot_pairs_text}};

}  // namespace

extern const MachineFamily pair_hooks;
constinit const MachineFamily pair_hooks{nullptr, pair_words, pair_table};

}  // namespace lathe::cuda
