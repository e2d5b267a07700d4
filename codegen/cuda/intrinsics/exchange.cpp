#include "ir/kernel/intrinsics/exchange.h"

#include <fmt/core.h>

#include "codegen/cuda/intrinsics/pipelines.h"

namespace lathe::cuda {

namespace {

std::string from_lane_text(const kernel::Instruction&, const KernelText& k) {
  return fmt::format("from_lane({}, {})", k.arg(0), k.arg(1));
}

/// Producers do not compute the argument.
std::string from_consumers_text(const kernel::Instruction&, const KernelText& k) {
  return pipeline_role(k.role()).produces ? "observe_consumers(pipeline)"
                                          : fmt::format("tell_producers(pipeline, {})", k.arg(0));
}

constexpr std::string_view exchange_device_text = R"cuda(
// ---- values that threads have from others ----

/// The value that thread `lane` of the warp has; all 32 threads ask.
template <class T>
LATHE_FUNCTION T from_lane(T x, i64 lane) {
  if constexpr (same_type<T, bool>::value)
    return __shfl_sync(0xffffffffu, static_cast<i32>(x), static_cast<i32>(lane)) != 0;
  else
    return __shfl_sync(0xffffffffu, x, static_cast<i32>(lane));
}
/// By all consumers, who have the same value; one of them tells it.
template <class Pipeline>
LATHE_FUNCTION bool tell_producers(Pipeline& pipeline, bool value) {
  u64* const there = pipeline.told_words();
  if (threadIdx.x == 0) {
    wait_barrier(there + 1, pipeline.told ^ 1);
    there[2] = value;
    arrive(there);
  }
  pipeline.told ^= 1;
  return value;
}
template <class Pipeline>
LATHE_FUNCTION bool observe_consumers(Pipeline& pipeline) {
  u64* const there = pipeline.told_words();
  wait_barrier(there, pipeline.told);
  const bool value = there[2] != 0;
  arrive(there + 1);
  pipeline.told ^= 1;
  return value;
}
)cuda";

constexpr std::string_view exchange_words[] = {"from_lane", "tell_producers", "observe_consumers"};
constexpr MachineHook exchange_table[] = {{&kernel::from_lane_record, from_lane_text},
                                          {&kernel::from_consumers_record, from_consumers_text}};

}  // namespace

extern const MachineFamily exchange_hooks;
constinit const MachineFamily exchange_hooks{exchange_device_text, exchange_words, exchange_table};

}  // namespace lathe::cuda
