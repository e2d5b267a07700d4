#include "ir/kernel/intrinsics/gpu/exchange.h"

#include <fmt/core.h>

#include "codegen/cuda/intrinsics/pipelines.h"

namespace lathe::cuda {

namespace {

std::string from_lane_text(const kernel::Instruction&, const KernelText& k) {
  return fmt::format("from_lane({}, {})", k.arg(0), k.arg(1));
}

/// Producers do not compute the argument.
std::string from_consumers_text(const kernel::Instruction&, const KernelText& k) {
  return pipeline_role(k.role()).produces() ? "observe_consumers(pipeline)"
                                            : fmt::format("broadcast_to_producers(pipeline, {})", k.arg(0));
}

constexpr std::string_view exchange_device_text = R"cuda(
// ---- values exchanged between threads ----

/// Returns the `x` of thread `lane` of the warp. Called by all 32 threads.
template <class T>
LATHE_FUNCTION T from_lane(T x, i64 lane) {
  if constexpr (same_type<T, bool>::value)
    return __shfl_sync(0xffffffffu, static_cast<i32>(x), static_cast<i32>(lane)) != 0;
  else
    return __shfl_sync(0xffffffffu, x, static_cast<i32>(lane));
}
/// Called by all consumers with a uniform value; thread 0 publishes it to the producers.
template <class Pipeline>
LATHE_FUNCTION bool broadcast_to_producers(Pipeline& pipeline, bool value) {
  u64* const words = pipeline.broadcast_words();
  if (threadIdx.x == 0) {
    wait_barrier(words + 1, pipeline.broadcast_parity ^ 1);
    words[2] = value;
    arrive(words);
  }
  pipeline.broadcast_parity ^= 1;
  return value;
}
/// Called by the producers; returns the uniform value that the consumers published.
template <class Pipeline>
LATHE_FUNCTION bool observe_consumers(Pipeline& pipeline) {
  u64* const words = pipeline.broadcast_words();
  wait_barrier(words, pipeline.broadcast_parity);
  const bool value = words[2] != 0;
  arrive(words + 1);
  pipeline.broadcast_parity ^= 1;
  return value;
}
)cuda";

constexpr std::string_view exchange_words[] = {"from_lane", "broadcast_to_producers", "observe_consumers"};
constexpr IntrinsicHook exchange_table[] = {{&kernel::from_lane_record, from_lane_text},
                                            {&kernel::from_consumers_record, from_consumers_text}};

}  // namespace

extern const HookFamily exchange_hooks;
constinit const HookFamily exchange_hooks{exchange_device_text, exchange_words, exchange_table};

}  // namespace lathe::cuda
