#include "codegen/cuda/intrinsics/pipelines.h"

#include <algorithm>

#include <fmt/core.h>

#include "ir/kernel/intrinsics/gpu/pipeline/hand_over.h"
#include "ir/kernel/intrinsics/gpu/pipeline/turn.h"
#include "ir/kernel/verify/structure_rules.h"
#include "ir/kernel/verify/sums_rules.h"
#include "ir/support/error.h"

namespace lathe::cuda {

PipelineRole::PipelineRole(const kernel::Kernel& kernel, const kernel::StagePipeline& pipeline, kernel::RunBy threads)
    : copied_by_all(kernel::copies_by_all(kernel, pipeline)),
      kernel_(kernel),
      threads_(threads),
      needs_(kernel::needs_of(kernel, pipeline.body, threads)),
      consumers_(pipeline.consumers) {
  const auto handed = kernel::hand_over_in(pipeline.body);
  few_registers_ = handed && handed->registers > 0;
}

bool PipelineRole::takes_part(const kernel::Statement& s) const {
  if (threads_ == kernel::RunBy::first || in_own_body) return true;
  if (const auto* set = std::get_if<kernel::SetVar>(&s.node)) return needs_.vars[set->var];
  const auto* compute = std::get_if<kernel::Compute>(&s.node);
  if (!compute) return kernel::leads_to(s, threads_);
  return needs_.values[compute->value] ||
         (produces() && kernel::is_broadcast_to_producers(kernel::value(kernel_, compute->value)));
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
std::int64_t stage_words(const kernel::Kernel& kernel, const kernel::StagePipeline& pipeline) {
  return 2 * pipeline.stages + (broadcasts_to_producers(kernel) ? 3 : 0);
}

/// Returns the number of warpgroups that finish what the consumers give.
int finishers_of(const kernel::StagePipeline& pipeline) {
  return kernel::last_threads_of(pipeline) / kernel::warpgroup_threads;
}

/// Returns the number of groups of threads that give one after the other.
int givers_of(const kernel::StagePipeline& pipeline, const kernel::HandOver& handed) {
  return handed.together ? 1 : pipeline.consumers / kernel::warpgroup_threads;
}

/// Returns the words above, plus two barriers per group that gives.
std::int64_t pipeline_words(const kernel::Kernel& kernel, const kernel::IntrinsicRegion& region) {
  const auto pipeline = kernel::StagePipeline::of(region);
  const auto handed = kernel::hand_over_in(pipeline.body);
  return stage_words(kernel, pipeline) + (handed ? 2 * givers_of(pipeline, *handed) : 0);
}

int pipeline_blocks(const kernel::IntrinsicRegion& region) { return kernel::StagePipeline::of(region).blocks; }

/// Registers per thread of a pipeline's warpgroups, and of all of them at the kernel's start; 0: they do not change.
struct RoleRegisters {
  int start = 0, producer = 0, consumer = 0, finisher = 0;
};

/// Returns the number of registers of a thread's sums.
int registers_of_sums(const kernel::Kernel& kernel) {
  std::vector<bool> added(kernel.vars.size());
  kernel::for_each_statement(kernel.body, [&](const kernel::Statement& s) {
    const kernel::Instruction* in = kernel::intrinsic_operation(kernel, s);
    if (!in || kernel::record_of(*in)->sums != kernel::OfSums::adds_later) return;
    for (const kernel::VarId var : in->machine->vars) added[static_cast<std::size_t>(var)] = true;
  });
  int registers = 0;
  for (std::size_t i = 0; i < added.size(); ++i)
    if (added[i]) registers += kernel.vars[i].type.lanes;
  return registers;
}

/// If a whole warpgroup produces for several consumer warpgroups, registers move from it to the others (setmaxnreg of
/// sm_90a). With warpgroups that finish, the consumers keep their sums and a few registers; the finishers share the
/// rest, or have the number that the hand-over states. The total is that of the kernel's start, where all threads
/// have the same number.
RoleRegisters registers_of(const kernel::Kernel& kernel, const kernel::StagePipeline& pipeline, bool copied_by_all,
                           int threads, const WarpgroupRegisters& r) {
  constexpr int beside_sums = 32;  // addresses, counters and the rounded sums that are stored
  const int warpgroups = pipeline.consumers / kernel::warpgroup_threads, finishers = finishers_of(pipeline),
            all_warpgroups = threads / kernel::warpgroup_threads;
  const auto down = [&](int registers) { return std::min(r.most, registers / r.step * r.step); };
  const bool is_whole = threads == pipeline.consumers + (1 + finishers) * kernel::warpgroup_threads;
  if (copied_by_all || warpgroups == 1 || !is_whole) return {};
  const int start = down(r.all / all_warpgroups);
  if (finishers == 0) return {start, r.producer, down((r.all - r.producer) / warpgroups), 0};
  const int left = start * all_warpgroups - r.producer, stated = kernel::hand_over_in(pipeline.body)->registers;
  if (stated > 0) return {start, r.producer, down((left - stated * finishers) / warpgroups), stated};
  const int consumer = down(registers_of_sums(kernel) + beside_sums + r.step - 1);
  return {start, r.producer, consumer, down((left - consumer * warpgroups) / finishers)};
}

/// Emits a change of the registers of a role.
void write_registers(RegionText& text, const RoleRegisters& registers, int own) {
  if (registers.start > 0)
    text.write(fmt::format("  {}_registers<{}>();", own > registers.start ? "take" : "give", own));
}

/// Emits the body for each role: the last threads, producers and consumers.
void write_pipeline(const kernel::IntrinsicRegion& region, RegionText& text) {
  const auto pipeline = kernel::StagePipeline::of(region);
  const int threads = text.block_threads(), consumers = pipeline.consumers, finishers = finishers_of(pipeline);
  const PipelineRole consumer(text.kernel(), pipeline, kernel::RunBy::first),
      producer(text.kernel(), pipeline, kernel::RunBy::others);
  const RoleRegisters registers =
      registers_of(text.kernel(), pipeline, producer.copied_by_all, threads, text.gpu().warpgroup_registers);
  const int first_finisher = threads - finishers * kernel::warpgroup_threads;
  text.shared_words("pipeline_barriers", pipeline_words(text.kernel(), region));
  if (const auto handed = kernel::hand_over_in(pipeline.body)) {
    const int warps = consumers / kernel::warp_threads;
    text.write(fmt::format("HandOver<{0}, {1}> handed = start_hand_over<{0}, {1}{2}>(pipeline_barriers + {3}, {4});",
                           givers_of(pipeline, *handed), finishers,
                           handed->together ? fmt::format(", {}", warps) : "", stage_words(text.kernel(), pipeline),
                           first_finisher));
  }
  text.write(fmt::format("StagePipeline<{0}> pipeline = start_pipeline<{0}{1}>(pipeline_barriers, {2}, {3});",
                         pipeline.stages, broadcasts_to_producers(text.kernel()) ? ", true" : "",
                         producer.copied_by_all ? threads - consumers : 1, consumers));
  if (finishers > 0) {
    text.write(fmt::format("if (threadIdx.x >= {}) {{", first_finisher));
    write_registers(text, registers, registers.finisher);
    text.body(pipeline.body, PipelineRole(text.kernel(), pipeline, kernel::RunBy::last));
    text.write("} else");
  }
  // Both branches are those of whole warps: in others, addresses of tiles would not be known to be uniform.
  text.write(fmt::format("if (threadIdx.x >= {}) {{", consumers));
  write_registers(text, registers, registers.producer);
  if (!producer.copied_by_all) text.write(fmt::format("  if (threadIdx.x != {}) return;", consumers));
  text.body(pipeline.body, producer);
  if (producer.copied_by_all) text.write("  wait_all_copies();");
  text.write("} else {");
  write_registers(text, registers, registers.consumer);
  if (consumer.warpgroups() > 1 && kernel::holds_region(pipeline.body, &kernel::turn_record))
    text.write(fmt::format("  start_turns<{}>();", consumer.warpgroups()));
  text.body(pipeline.body, consumer);
  text.write("}");
}

void write_stage(const kernel::IntrinsicRegion& region, RegionText& text) {
  const auto stage = kernel::Stage::of(region);
  PipelineRole inside = pipeline_role(text.role());
  inside.in_stage = inside.in_own_body = true;
  const std::string index = text.index(stage.slot);
  text.write(fmt::format("pipeline.{}();", inside.produces()      ? "wait_empty"
                                           : inside.copied_by_all ? "wait_copied"
                                                                  : "wait_full"));
  text.write("{");
  text.write(fmt::format("  const {} = pipeline.slot();", index));
  text.body(inside.produces() ? stage.produce : stage.consume, inside);
  text.write("}");
  const char* done = kernel::leaves_sums(text.kernel(), stage.consume) ? "multiplied" : "used";
  if (inside.produces()) done = inside.copied_by_all ? "filled" : "sent";
  text.write(fmt::format("pipeline.{}();", done));
}

void write_turn(const kernel::IntrinsicRegion& region, RegionText& text) {
  const PipelineRole& role = pipeline_role(text.role());
  if (role.warpgroups() > 1) text.write("take_turn();");
  text.write("{");
  text.body(kernel::Turn::of(region).body, role);
  text.write("}");
  if (role.warpgroups() > 1) text.write(fmt::format("pass_turn<{}>();", role.warpgroups()));
}

void write_hand_over(const kernel::IntrinsicRegion& region, RegionText& text) {
  const auto handed = kernel::HandOver::of(region);
  PipelineRole inside = pipeline_role(text.role());
  inside.in_own_body = true;
  const std::string number = text.index(handed.number);
  if (inside.is_last()) {
    text.write("for (handed.start_turn(); handed.goes_on(); handed.finished()) {");
    text.write(fmt::format("  const {} = handed.number;", number));
    text.body(handed.finish, inside);
  } else {
    text.write("handed.wait_finished();");
    text.write("{");
    text.write(fmt::format("  const {} = handed.number;", number));
    text.body(handed.give, inside);
  }
  text.write("}");
  text.write(inside.is_last() ? "handed.end_turn();" : "handed.given();");
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
/// Synchronizes the first `threads` threads of the block, and makes what they stored visible to wgmma.
template <int threads>
LATHE_FUNCTION void consumer_barrier() {
  show_to_other_proxy();
#ifdef __CUDA_ARCH__
  asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory");
#else
  shim_named_barrier(1, threads, true);
#endif
}
/// Waits until the previous warpgroup has passed its turn. Barriers 0 and 1 are those of the block and the consumers;
/// from 2 on each warpgroup has one, of its own threads, which wait, and those of the previous warpgroup, which do not.
LATHE_FUNCTION void take_turn() {
  const u32 own = threadIdx.x / 128 + 2;
#ifdef __CUDA_ARCH__
  asm volatile("bar.sync %0, 256;" ::"r"(own) : "memory");
#else
  shim_named_barrier(own, 256, true);
#endif
}
/// Lets the next of the `warpgroups` warpgroups continue.
template <int warpgroups>
LATHE_FUNCTION void pass_turn() {
  const u32 own = threadIdx.x / 128, next = (own + 1 == warpgroups ? 0 : own + 1) + 2;
#ifdef __CUDA_ARCH__
  asm volatile("bar.arrive %0, 256;" ::"r"(next) : "memory");
#else
  shim_named_barrier(next, 256, false);
#endif
}
/// The first warpgroup has the first turn.
template <int warpgroups>
LATHE_FUNCTION void start_turns() {
  if (threadIdx.x / 128 == warpgroups - 1) pass_turn<warpgroups>();
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

/// A thread's state in a hand-over. `givers` groups of consumers give to `finishers` last warpgroups. `barriers` has a "given"
/// barrier per giver, then a "finished" barrier per giver. `number` is the giver, of the present turn for the last
/// threads; `round` is the parity of the next turn.
template <int givers, int finishers>
struct HandOver {
  u64* barriers;
  i32 own, number;
  u32 round;

  LATHE_FUNCTION void wait_finished() const { wait_barrier(barriers + givers + number, round ^ 1); }
  LATHE_FUNCTION void given() {
    arrive_for_warp(barriers + number);
    round ^= 1;
  }
  /// A last warpgroup waits for each of its givers.
  LATHE_FUNCTION void start_turn() { number = own; }
  LATHE_FUNCTION bool goes_on() const {
    if (number >= givers) return false;
    wait_barrier(barriers + number, round);
    return true;
  }
  LATHE_FUNCTION void finished() {
    arrive_for_warp(barriers + givers + number);
    number += finishers;
  }
  LATHE_FUNCTION void end_turn() { round ^= 1; }
  /// One thread per warp arrives for the whole warp.
  LATHE_FUNCTION static void arrive_for_warp(u64* barrier) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(barrier);
  }
};

/// Initializes the barriers; start_pipeline, which follows, shows them to the block. `first` is the first of the last
/// threads. A giver has `warps` warps.
template <int givers, int finishers, int warps = 4>
LATHE_FUNCTION HandOver<givers, finishers> start_hand_over(u64* barriers, u32 first) {
  if (threadIdx.x == 0)
    for (int i = 0; i < givers; ++i) {
      init_barrier(barriers + i, warps);
      init_barrier(barriers + givers + i, 128 / 32);
    }
  const i32 own = threadIdx.x < first ? i32(threadIdx.x) / (32 * warps) : i32(threadIdx.x - first) / 128;
  return {barriers, own, own, 0};
}
)cuda";

constexpr std::string_view pipeline_names[] = {
    "StagePipeline",     "start_pipeline", "consumer_barrier", "wait_all_copies", "give_registers",
    "take_registers",    "start_turns",    "take_turn",        "pass_turn",       "pipeline",
    "pipeline_barriers", "HandOver",       "start_hand_over",  "handed"};
constexpr RegionHook pipeline_table[] = {
    {&kernel::stage_pipeline_record, write_pipeline, pipeline_words, pipeline_blocks},
    {&kernel::stage_record, write_stage},
    {&kernel::hand_over_record, write_hand_over},
    {&kernel::turn_record, write_turn}};

}  // namespace

extern const HookFamily pipeline_hooks;
constinit const HookFamily pipeline_hooks{pipeline_device_text, pipeline_names, {}, pipeline_table};

}  // namespace lathe::cuda
