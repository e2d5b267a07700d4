#include "ir/kernel/intrinsics/run.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe::kernel {

std::vector<std::int64_t> IntrinsicRun::integers(std::span<const ValueId> ids, Thread& t) const {
  std::vector<std::int64_t> all;
  for (const ValueId id : ids) all.push_back(integer(id, t));
  return all;
}

void IntrinsicRun::check_same(std::span<const ValueId> values, std::string_view op, int together,
                              std::span<Thread* const> threads) const {
  for (std::size_t i = 1; i < threads.size(); ++i) {
    if (threads[i]->id() / together != threads[i - 1]->id() / together) continue;
    for (const ValueId value : values)
      if (integer(value, *threads[i]) != integer(value, *threads[i - 1]))
        fail(fmt::format("threads {} and {} name different tiles in one {}", threads[i - 1]->id(), threads[i]->id(),
                         op),
             "divergent_mma");
  }
}

void IntrinsicRun::run_inside(RunningRegion& region, const Block& body, std::span<Thread* const> threads) {
  regions_.push_back(&region);
  run_together(body, threads);
  regions_.pop_back();
}

void IntrinsicRun::fail(const std::string& text, const char* label) const {
  throw InternalError(fmt::format("kernel {}: {}  [{}]", kernel_.name, text, label));
}

}  // namespace lathe::kernel
