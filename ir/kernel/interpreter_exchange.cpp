#include "ir/kernel/interpreter_exchange.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe::kernel {

void ThreadValues::fail(const std::string& text, const char* label) const {
  throw InternalError(fmt::format("kernel {}: {}  [{}]", kernel_.name, text, label));
}

void exchange_lanes(const ThreadValues& values, ValueId value, std::span<Thread* const> threads) {
  const Instruction& in = values.info(value);
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const std::int64_t lane = values.integer(in.args[1], *threads[i]);
    if (lane < 0 || lane >= warp_threads) values.fail(fmt::format("a from_lane of lane {}", lane), "warp_lane");
    const std::size_t other =
        i - static_cast<std::size_t>(threads[i]->id() % warp_threads) + static_cast<std::size_t>(lane);
    LATHE_ASSERT(other < threads.size() && threads[other]->id() / warp_threads == threads[i]->id() / warp_threads);
    *values.lanes(value, *threads[i]) = *values.lanes(in.args[0], *threads[other]);
  }
}

void tell_all(const ThreadValues& values, ValueId value, int consumers, std::span<Thread* const> threads) {
  const ValueId from = values.info(value).args[0];
  for (std::size_t i = 0; i < threads.size(); ++i) {
    if (i < static_cast<std::size_t>(consumers) &&
        values.integer(from, *threads[i]) != values.integer(from, *threads[0]))
      values.fail(fmt::format("threads 0 and {} tell different values", i), "divergent_consumers");
    *values.lanes(value, *threads[i]) = *values.lanes(from, *threads[0]);
  }
}

void check_same(const ThreadValues& values, std::span<const ValueId> places, std::string_view op, int together,
                std::span<Thread* const> threads) {
  for (std::size_t i = 1; i < threads.size(); ++i) {
    if (threads[i]->id() / together != threads[i - 1]->id() / together) continue;
    for (const ValueId place : places)
      if (values.integer(place, *threads[i]) != values.integer(place, *threads[i - 1]))
        values.fail(fmt::format("threads {} and {} name different tiles in one {}", threads[i - 1]->id(),
                                threads[i]->id(), op),
                    "divergent_mma");
  }
}

}  // namespace lathe::kernel
