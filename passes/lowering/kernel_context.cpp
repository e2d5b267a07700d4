#include "passes/lowering/kernel_context.h"

#include <fmt/core.h>

#include <algorithm>

namespace lathe {

void KernelContext::declare(int buffer, DType dtype, bool reads, bool writes) {
  using kernel::Access;
  const Access access = reads && writes ? Access::read_write : writes ? Access::write : Access::read;
  parameters_[buffer] = builder.buffer(fmt::format("b{}", order_.size()), dtype, access);
  order_.push_back(buffer);
}

kernel::Value KernelContext::dim(const Dim& size) {
  if (const auto number = size.value()) return builder.index(*number);
  return run_time(size);
}

kernel::Value KernelContext::run_time(const Dim& value) {
  auto at = std::find(dims_.begin(), dims_.end(), value);
  if (at == dims_.end()) at = dims_.insert(dims_.end(), value.unnamed());
  return builder.dim(fmt::format("d{}", at - dims_.begin()));
}

std::int64_t KernelContext::check_code(std::string message) {
  const auto at = std::find(checks_.begin(), checks_.end(), message);
  if (at != checks_.end()) return at - checks_.begin() + 1;
  checks_.push_back(std::move(message));
  return static_cast<std::int64_t>(checks_.size());
}

KernelContext::Built KernelContext::finish() {
  Launch launch;
  launch.buffers = order_;
  launch.dims = dims_;
  launch.checks = checks_;
  launch.info.role = role_;
  launch.info.multiplier = multiplier_;
  launch.info.missed = missed_;
  for (std::size_t p = 0; p < order_.size(); ++p) {
    if (in_part_.contains(order_[p])) launch.partial.push_back(static_cast<int>(p));
    const auto rows = rows_read_.find(order_[p]);
    if (rows == rows_read_.end()) continue;
    launch.rows_read.push_back(rows->second);
    launch.rows_read.back().parameter = static_cast<int>(p);
  }
  return {builder.finish(), std::move(launch), touched_};
}

}  // namespace lathe
