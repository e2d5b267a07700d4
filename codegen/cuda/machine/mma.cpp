#include "ir/kernel/machine/mma.h"

#include <fmt/core.h>

#include "codegen/cuda/machine/hooks.h"
#include "codegen/cuda/prelude/prelude.h"

namespace lathe::cuda {

namespace {

std::string mma_text(const kernel::Instruction& in, const KernelText& k) {
  const auto s = kernel::Mma::of(in);
  const auto matrix = [&](const kernel::SharedOperand& m) {
    return fmt::format("{}({}, {}, {})", m.transposed ? "transposed" : "matrix", k.buffer(m.buffer), k.int32(m.first),
                       k.int32(m.stride));
  };
  return fmt::format("mma<{}, {}>({}, {}, {})", s.left.rows, s.right.rows, matrix(s.left), matrix(s.right),
                     k.value(s.sums));
}

constexpr std::string_view mma_words[] = {"mma", "matrix", "transposed", "fragment"};
constexpr MachineHook mma_table[] = {{&kernel::mma_record, mma_text, true}};

}  // namespace

extern const MachineFamily mma_hooks;
constinit const MachineFamily mma_hooks{detail::prelude_matrices, mma_words, mma_table};

}  // namespace lathe::cuda
