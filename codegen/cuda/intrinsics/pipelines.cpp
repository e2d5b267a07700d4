#include "codegen/cuda/intrinsics/pipelines.h"

#include <algorithm>

#include <fmt/core.h>

#include "ir/kernel/verify/structure_rules.h"
#include "ir/support/error.h"

namespace lathe::cuda {

PipelineRole::PipelineRole(const kernel::Kernel& kernel, const kernel::StagePipeline& pipeline)
    : copied_by_all(kernel::copies_by_all(kernel, pipeline)),
      kernel_(kernel),
      needs_(kernel::needs_of_producer(kernel, pipeline)),
      consumers_(pipeline.consumers) {}

bool PipelineRole::takes_part(const kernel::Statement& s) const {
  if (!produces || in_stage) return true;
  if (const auto* set = std::get_if<kernel::SetVar>(&s.node)) return needs_.vars[set->var];
  const auto* compute = std::get_if<kernel::Compute>(&s.node);
  if (!compute) return kernel::leads_to_stage(s);
  return needs_.values[compute->value] || kernel::is_broadcast_to_producers(kernel::value(kernel_, compute->value));
}

std::string PipelineRole::barrier() const { return fmt::format("consumer_barrier<{}>();", consumers_); }

const PipelineRole& pipeline_role(const RegionRole* role) {
  const auto* of_pipeline = dynamic_cast<const PipelineRole*>(role);
  LATHE_ASSERT(of_pipeline);
  return *of_pipeline;
}

namespace {

/// Returns whether the consumers broadcast a value to the producers.
bool broadcasts_to_producers(const kernel::Kernel& kernel) {
  return std::any_of(kernel.values.begin(), kernel.values.end(),
                     [](const kernel::Instruction& in) { return kernel::is_broadcast_to_producers(in); });
}

/// Returns the words for two barriers per stage, plus two barriers and a word if consumers broadcast a value.
std::int64_t pipeline_words(const kernel::Kernel& kernel, const kernel::IntrinsicRegion& region) {
  return 2 * kernel::StagePipeline::of(region).stages + (broadcasts_to_producers(kernel) ? 3 : 0);
}

int pipeline_blocks(const kernel::IntrinsicRegion& region) { return kernel::StagePipeline::of(region).blocks; }

/// Emits the body for each role, producers and consumers. If a whole warpgroup produces for several consumer
/// warpgroups, registers move from the producer to the consumers (setmaxnreg of sm_90a).
void write_pipeline(const kernel::IntrinsicRegion& region, RegionText& text) {
  const WarpgroupRegisters& registers = text.gpu().warpgroup_registers;
  const auto pipeline = kernel::StagePipeline::of(region);
  PipelineRole role(text.kernel(), pipeline);
  const int threads = text.block_threads(), consumers = pipeline.consumers,
            warpgroups = consumers / kernel::warpgroup_threads;
  const bool shares = !role.copied_by_all && warpgroups > 1 && threads == consumers + kernel::warpgroup_threads;
  const bool all_produce = role.copied_by_all || shares;
  text.shared_words("pipeline_barriers", pipeline_words(text.kernel(), region));
  text.write(fmt::format("StagePipeline<{0}> pipeline = start_pipeline<{0}{1}>(pipeline_barriers, {2}, {3});",
                         pipeline.stages, broadcasts_to_producers(text.kernel()) ? ", true" : "",
                         role.copied_by_all ? threads - consumers : 1, consumers));
  text.write(fmt::format("if (threadIdx.x {} {}) {{", all_produce ? ">=" : "==", consumers));
  if (shares) text.write(fmt::format("  give_registers<{}>();", registers.producer));
  if (shares) text.write(fmt::format("  if (threadIdx.x != {}) return;", consumers));
  role.produces = true;
  text.body(pipeline.body, role);
  if (role.copied_by_all) text.write("  wait_all_copies();");
  text.write(fmt::format("}} else {}{{", all_produce ? "" : fmt::format("if (threadIdx.x < {}) ", consumers)));
  const int taken =
      std::min(registers.most, (registers.all - registers.producer) / warpgroups / registers.step * registers.step);
  if (shares) text.write(fmt::format("  take_registers<{}>();", taken));
  role.produces = false;
  text.body(pipeline.body, role);
  text.write("}");
}

void write_stage(const kernel::IntrinsicRegion& region, RegionText& text) {
  const auto stage = kernel::Stage::of(region);
  PipelineRole inside = pipeline_role(text.role());
  inside.in_stage = true;
  const std::string index = text.index(stage.slot);
  text.write(fmt::format("pipeline.{}();", inside.produces        ? "wait_empty"
                                           : inside.copied_by_all ? "wait_copied"
                                                                  : "wait_full"));
  text.write("{");
  text.write(fmt::format("  const {} = pipeline.slot();", index));
  text.body(inside.produces ? stage.produce : stage.consume, inside);
  text.write("}");
  const bool multiplies = kernel::multiplies(text.kernel(), stage.consume);
  const char* done = multiplies ? "multiplied" : "used";
  if (inside.produces) done = inside.copied_by_all ? "filled" : "sent";
  text.write(fmt::format("pipeline.{}();", done));
}

constexpr std::string_view pipeline_device_text = R"cuda(
// ---- pipelines of stages in shared memory: producer threads fill stages, consumer threads read them ----

LATHE_FUNCTION void init_barrier(u64* barrier, u32 arrivals) {
#ifdef __CUDA_ARCH__
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
#else
  shim_init_barrier(barrier, arrivals);
#endif
}
LATHE_FUNCTION void arrive(u64* barrier) {
#ifdef __CUDA_ARCH__
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
#else
  shim_arrive(barrier);
#endif
}
/// Makes this thread arrive when all copies that it has started are complete.
LATHE_FUNCTION void arrive_with_copies(u64* barrier) {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
#else
  shim_arrive_with_copies(barrier);
#endif
}
/// Adds `bytes` to the transaction count of the barrier's current phase.
LATHE_FUNCTION void expect_bytes(u64* barrier, u32 bytes) {
#ifdef __CUDA_ARCH__
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
#else
  shim_expect_bytes(barrier, bytes);
#endif
}
/// Waits until the phase of this parity is complete.
LATHE_FUNCTION void wait_barrier(u64* barrier, u32 parity) {
#ifdef __CUDA_ARCH__
  u32 over;
  do {
    asm volatile(
        "{\n.reg .pred over;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
        "selp.u32 %0, 1, 0, over;\n}"
        : "=r"(over)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (!over);
#else
  shim_wait_barrier(barrier, parity);
#endif
}
/// Waits for all copies of this thread, which must not exit before they are complete.
LATHE_FUNCTION void wait_all_copies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
/// Makes writes of threads and their copies visible to wgmma and TMA, which use the async proxy.
LATHE_FUNCTION void show_to_other_proxy() {
#ifdef __CUDA_ARCH__
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
/// Lowers or raises the number of registers per thread of this warpgroup (setmaxnreg).
template <int registers>
LATHE_FUNCTION void give_registers() {
#ifdef __CUDA_ARCH__
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}
template <int registers>
LATHE_FUNCTION void take_registers() {
#ifdef __CUDA_ARCH__
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}
/// Synchronizes the first `threads` threads of the block.
template <int threads>
LATHE_FUNCTION void consumer_barrier() {
#ifdef __CUDA_ARCH__
  asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory");
#else
  shim_user_barrier(threads);
#endif
}

/// A thread's state in a pipeline: the slot of the current iteration (`at`), the parity of its round (`round`), and the
/// slot that matmuls in flight still read (`held`, or -1). `barriers` has a "full" barrier per slot, then an "empty"
/// barrier per slot. If consumers broadcast a value, three words follow: a barrier for "published", one for "observed",
/// and the value. `broadcast_parity` is the parity of both barriers.
template <int stages>
struct StagePipeline {
  u64* barriers;
  int at;
  u32 round;
  int held;
  u32 first_producer;
  u32 broadcast_parity;

  LATHE_FUNCTION i32 slot() const { return at; }
  LATHE_FUNCTION void wait_empty() const { wait_barrier(barriers + stages + at, round ^ 1); }
  LATHE_FUNCTION void wait_full() const { wait_barrier(barriers + at, round); }
  LATHE_FUNCTION void wait_copied() const {
    wait_full();
    show_to_other_proxy();
  }
  LATHE_FUNCTION void sent() {
    arrive(barriers + at);
    advance();
  }
  LATHE_FUNCTION void filled() {
    arrive_with_copies(barriers + at);
    advance();
  }
  LATHE_FUNCTION void used() {
    empty(at);
    advance();
  }
  /// Commits the matmuls of this iteration and waits for the previous iteration's, whose slot becomes free.
  LATHE_FUNCTION void multiplied() {
    commit_wgmma();
    wait_wgmma<1>();
    empty(held);
    held = at;
    advance();
  }
  /// Returns the two barriers and the value that consumers broadcast.
  LATHE_FUNCTION u64* broadcast_words() const { return barriers + 2 * stages; }
  /// Frees the slot of the matmuls that were in flight.
  LATHE_FUNCTION void release_held() {
    empty(held);
    held = -1;
  }
  /// Marks a slot empty: one thread per warp arrives for the whole warp.
  LATHE_FUNCTION void empty(int slot) const {
    if (slot < 0) return;
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(barriers + stages + slot);
  }
  LATHE_FUNCTION void advance() {
    if (++at == stages) at = 0, round ^= 1;
  }
};

/// Initializes the barriers for `producers` and `consumers` threads. Called by all threads of a block. Makes earlier
/// stores to shared memory visible to the whole block and to wgmma.
template <int stages, bool broadcasts = false>
LATHE_FUNCTION StagePipeline<stages> start_pipeline(u64* barriers, u32 producers, u32 consumers) {
  if (threadIdx.x == 0)
    for (int i = 0; i < stages; ++i) {
      init_barrier(barriers + i, producers);
      init_barrier(barriers + stages + i, consumers / 32);
    }
  if (broadcasts && threadIdx.x == 0) {
    init_barrier(barriers + 2 * stages, 1);
    init_barrier(barriers + 2 * stages + 1, producers);
  }
  show_to_other_proxy();
  __syncthreads();
  return {barriers, 0, 0, -1, consumers, 0};
}
)cuda";

constexpr std::string_view pipeline_names[] = {"StagePipeline",   "start_pipeline",   "consumer_barrier",
                                               "wait_all_copies", "give_registers",   "take_registers",
                                               "pipeline",        "pipeline_barriers"};
constexpr RegionHook pipeline_table[] = {
    {&kernel::stage_pipeline_record, write_pipeline, pipeline_words, pipeline_blocks},
    {&kernel::stage_record, write_stage}};

}  // namespace

extern const HookFamily pipeline_hooks;
constinit const HookFamily pipeline_hooks{pipeline_device_text, pipeline_names, {}, pipeline_table};

}  // namespace lathe::cuda
