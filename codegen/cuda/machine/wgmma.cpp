#include "ir/kernel/machine/wgmma.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "codegen/cuda/machine/pipelines.h"
#include "codegen/cuda/prelude/prelude.h"

namespace lathe::cuda {

namespace {

std::string wgmma_text(const kernel::Instruction& in, const KernelText& k) {
  const auto s = kernel::Wgmma::of(in);
  const bool of_value = s.left_value != kernel::none;
  const auto tiles = [&](const kernel::SharedOperand& m) {
    return fmt::format("{}({}, {})", m.transposed ? "transposed_tiles" : "tiles", k.buffer(m.buffer),
                       k.int32(m.first));
  };
  const std::string depth = of_value || s.depth == kernel::wgmma_depth ? "" : fmt::format("<{}>", s.depth);
  return fmt::format("wgmma{}({}, {}, {})", depth, k.var(s.sums), of_value ? k.value(s.left_value) : tiles(s.left),
                     tiles(s.right));
}

std::string wait_sums_text(const kernel::Instruction& in, const KernelText& k) {
  std::vector<std::string_view> sums;
  for (const kernel::VarId var : kernel::WaitSums::of(in).sums) sums.push_back(k.var(var));
  return fmt::format("pipeline.{}({})", pipeline_role(k.role()).in_stage ? "wait_own_sums" : "wait_sums",
                     fmt::join(sums, ", "));
}

constexpr std::string_view wgmma_words[] = {"tiles", "transposed_tiles", "wgmma", "touch", "fence_wgmma"};
constexpr MachineHook wgmma_table[] = {{&kernel::wgmma_record, wgmma_text},
                                       {&kernel::wait_sums_record, wait_sums_text}};

}  // namespace

extern const MachineFamily wgmma_hooks;
constinit const MachineFamily wgmma_hooks{detail::prelude_wgmma, wgmma_words, wgmma_table};

}  // namespace lathe::cuda
