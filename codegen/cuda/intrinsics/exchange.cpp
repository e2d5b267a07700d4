#include "ir/kernel/intrinsics/gpu/exchange.h"

#include <fmt/core.h>

#include <optional>

#include "codegen/cuda/intrinsics/pipelines.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::cuda {

namespace {

/// Returns c if the lane is that of the thread, of thread.x rem 32, xor c.
std::optional<std::int64_t> distance_to_partner(const kernel::Kernel& kernel, kernel::ValueId lane) {
  const auto at = [&](kernel::ValueId id) -> const kernel::Instruction& { return kernel.values[id]; };
  const auto is = [](const kernel::Instruction& in, ScalarOp op) {
    return in.op == kernel::Opcode::scalar && in.scalar_op == op;
  };
  const auto is_constant = [&](kernel::ValueId id) { return at(id).op == kernel::Opcode::constant; };
  const kernel::Instruction& partner = at(lane);
  if (!is(partner, ScalarOp::bit_xor) || !is_constant(partner.args[1])) return std::nullopt;
  const kernel::Instruction& own = at(partner.args[0]);
  if (!is(own, ScalarOp::rem) || !is_constant(own.args[1]) || at(own.args[1]).integer != kernel::warp_threads)
    return std::nullopt;
  bool is_thread = false;
  kernel::for_each_statement(kernel.body, [&](const kernel::Statement& s) {
    const auto* loop = std::get_if<kernel::Loop>(&s.node);
    is_thread = is_thread || (loop && loop->kind == kernel::LoopKind::thread_x && loop->index == own.args[0]);
  });
  const std::int64_t distance = at(partner.args[1]).integer;
  return is_thread && distance > 0 && distance < kernel::warp_threads ? std::optional(distance) : std::nullopt;
}

std::string from_lane_text(const kernel::Instruction& in, const KernelText& k) {
  if (const auto distance = distance_to_partner(k.kernel(), in.args[1]))
    return fmt::format("from_partner<{}>({})", *distance, k.arg(0));
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
/// Returns the `x` of the thread whose lane differs in these bits. It needs no register for the lane.
template <int bits, class T>
LATHE_FUNCTION T from_partner(T x) {
  if constexpr (same_type<T, bool>::value)
    return __shfl_xor_sync(0xffffffffu, static_cast<i32>(x), bits) != 0;
  else
    return __shfl_xor_sync(0xffffffffu, x, bits);
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

constexpr std::string_view exchange_words[] = {"from_lane", "from_partner", "broadcast_to_producers",
                                               "observe_consumers"};
constexpr IntrinsicHook exchange_table[] = {{&kernel::from_lane_record, from_lane_text},
                                            {&kernel::from_consumers_record, from_consumers_text}};

}  // namespace

extern const HookFamily exchange_hooks;
constinit const HookFamily exchange_hooks{exchange_device_text, exchange_words, exchange_table};

}  // namespace lathe::cuda
