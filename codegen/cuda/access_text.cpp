#include "codegen/cuda/access_text.h"

#include <fmt/core.h>

#include <algorithm>

namespace lathe::cuda {

using kernel::BufferId;
using kernel::Instruction;
using kernel::none;
using kernel::Opcode;
using kernel::ValueId;

/// Returns whether a contiguous access of `lanes` lanes can be vectorized, up to 16 bytes at a time.
bool AccessText::is_aligned(BufferId buffer, ValueId index, int lanes, int promised) const {
  if (kernel_.buffers[buffer].unaligned) return false;
  const auto size = static_cast<std::int64_t>(size_in_bytes(kernel_.buffers[buffer].dtype));
  const std::int64_t wanted = std::min<std::int64_t>(16, lanes * size);
  return promised >= wanted || divisors_.of(index) * size >= wanted;
}

std::string AccessText::load(const Instruction& in, const KernelText& text) const {
  const std::string& buffer = text.buffer(in.buffer);
  const std::string index = text.value(in.args[0]);
  const int lanes = in.type.lanes;
  const std::string mask = in.mask == none ? "" : text.value(in.mask) + ", ";
  const char* masked = in.mask == none ? "" : "_if";
  const bool single = lanes == 1 || in.op != Opcode::gather;
  if (lanes == 1 && mask.empty()) return fmt::format("{}[{}]", buffer, index);
  // A single lane needs no stride.
  if (lanes == 1) return fmt::format("load_if({}{}, {})", mask, buffer, index);
  if (!single) return fmt::format("gather{}({}{}, {})", masked, mask, buffer, index);
  const std::string count = mask.empty() ? fmt::format("<{}>", lanes) : "";
  if (in.op == Opcode::load_strided)
    return fmt::format("load_strided{}{}({}{}, {}, {})", masked, count, mask, buffer, index, text.value(in.args[1]));
  const bool whole = mask.empty() || kernel_.values[in.mask].op == Opcode::broadcast;
  const char* aligned = whole && is_aligned(in.buffer, in.args[0], lanes, in.alignment) ? "_aligned" : "";
  return fmt::format("load{}{}{}({}{}, {})", aligned, masked, count, mask, buffer, index);
}

std::optional<AccessText::Look> AccessText::look(const Instruction& in, const KernelText& text) const {
  const int lanes = in.type.lanes;
  const bool is_branch = in.mask != none && (lanes == 1 || kernel_.values[in.mask].op == Opcode::broadcast);
  if (in.op != Opcode::load || is_branch) return std::nullopt;
  std::string form, element = fmt::format("{}, {}", text.buffer(in.buffer), text.value(in.args[0]));
  if (in.mask != none) {
    form = "_if", element = fmt::format("{}, {}", text.value(in.mask), element);
  } else if (lanes > 1) {
    if (!is_aligned(in.buffer, in.args[0], lanes, in.alignment)) return std::nullopt;
    form = fmt::format("_aligned<{}>", lanes);
  }
  return Look{fmt::format("look{}({})", form, element), fmt::format("settled{}({}, {{}})", form, element)};
}

std::string AccessText::store(const kernel::Store& s, const std::string& stored, const KernelText& text) const {
  const int lanes = kernel_.values[s.value].type.lanes;
  const std::string& buffer = text.buffer(s.buffer);
  const std::string index = text.value(s.index);
  const std::string mask = s.mask == none ? "" : text.value(s.mask) + ", ";
  const char* masked = s.mask == none ? "" : "_if";
  if (lanes == 1) {
    if (mask.empty()) return fmt::format("{}[{}] = {}", buffer, index, stored);
    return fmt::format("store_if({}{}, {}, {})", mask, buffer, index, stored);
  }
  switch (s.kind) {
    case kernel::StoreKind::contiguous: {
      const bool aligned = mask.empty() && is_aligned(s.buffer, s.index, lanes, s.alignment);
      return fmt::format("store{}{}({}{}, {}, {})", masked, aligned ? "_aligned" : "", mask, buffer, index, stored);
    }
    case kernel::StoreKind::strided:
      return fmt::format("store_strided{}({}{}, {}, {}, {})", masked, mask, buffer, index, text.value(s.stride),
                         stored);
    case kernel::StoreKind::scatter:
      return fmt::format("scatter{}({}{}, {}, {})", masked, mask, buffer, index, stored);
  }
  return {};
}

}  // namespace lathe::cuda
