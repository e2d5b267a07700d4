#include <fmt/core.h>
#include <fmt/ranges.h>

#include <vector>

#include "codegen/cuda/machine/hooks.h"
#include "codegen/cuda/prelude/prelude.h"
#include "ir/kernel/machine/async_copy.h"
#include "ir/kernel/machine/copy_box.h"

namespace lathe::cuda {

namespace {

std::string async_copy_text(const kernel::Instruction& in, const KernelText& k) {
  const auto s = kernel::AsyncCopy::of(in);
  const std::string count = s.count == kernel::none ? "" : ", " + k.value(s.count);
  return fmt::format("async_copy({}, {}, {}, {}{})", k.buffer(s.to), k.value(s.to_index), k.buffer(s.from),
                     k.value(s.from_index), count);
}

std::string copy_box_text(const kernel::Instruction& in, const KernelText& k) {
  const auto s = kernel::CopyBox::of(in);
  std::vector<std::string> at;
  for (const kernel::ValueId id : s.at) at.push_back(k.value(id));
  return fmt::format("pipeline.copy_box<{}>({}, {}, {}, {})",
                     k.kernel().maps[static_cast<std::size_t>(s.map)].box_rows(), k.buffer(s.to), k.value(s.to_index),
                     k.map(s.map), fmt::join(at, ", "));
}

std::string commit_text(const kernel::Instruction&, const KernelText&) { return "commit_copies()"; }

std::string wait_copies_text(const kernel::Instruction& in, const KernelText&) {
  return fmt::format("wait_copies<{}>()", kernel::WaitCopies::of(in).pending);
}

constexpr std::string_view copy_words[] = {"async_copy", "commit_copies", "wait_copies"};
constexpr MachineHook copy_table[] = {{&kernel::async_copy_record, async_copy_text},
                                      {&kernel::copy_box_record, copy_box_text},
                                      {&kernel::commit_copies_record, commit_text},
                                      {&kernel::wait_copies_record, wait_copies_text}};

}  // namespace

extern const MachineFamily copy_hooks;
constinit const MachineFamily copy_hooks{detail::prelude_copies, copy_words, copy_table};

}  // namespace lathe::cuda
