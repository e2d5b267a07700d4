#include "ir/kernel/machine/wgmma.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "codegen/cuda/machine/hooks.h"
#include "codegen/cuda/prelude.h"

namespace lathe::cuda {

namespace {

std::string wgmma_text(const kernel::Instruction& in, const KernelText& k) {
  const auto s = kernel::Wgmma::of(in);
  const bool of_value = s.left_value != kernel::none;
  const auto panels = [&](const kernel::SharedOperand& m) {
    return fmt::format("{}({}, {})", m.transposed ? "transposed_panels" : "panels", k.buffer(m.buffer),
                       k.narrow(m.first));
  };
  const std::string depth = of_value || s.depth == kernel::wgmma_depth ? "" : fmt::format("<{}>", s.depth);
  return fmt::format("wgmma{}({}, {}, {})", depth, k.var(s.sums), of_value ? k.value(s.left_value) : panels(s.left),
                     panels(s.right));
}

std::string wait_sums_text(const kernel::Instruction& in, const KernelText& k) {
  std::vector<std::string_view> sums;
  for (const kernel::VarId var : kernel::WaitSums::of(in).sums) sums.push_back(k.var(var));
  return fmt::format("pipeline.{}({})", k.in_consumers() ? "wait_own_sums" : "wait_sums", fmt::join(sums, ", "));
}

constexpr std::string_view wgmma_words[] = {"panels", "transposed_panels", "wgmma", "touch", "fence_wgmma"};
constexpr MachineHook wgmma_table[] = {{&kernel::wgmma_record, wgmma_text},
                                       {&kernel::wait_sums_record, wait_sums_text}};

}  // namespace

extern const MachineFamily wgmma_hooks;
constinit const MachineFamily wgmma_hooks{detail::prelude_wgmma, wgmma_words, wgmma_table};

}  // namespace lathe::cuda
