#include "ir/kernel/interpret/interpreter.h"

#include <algorithm>

#include <fmt/core.h>

#include "ir/kernel/interpret/access_lanes.h"
#include "ir/kernel/interpret/decoded_kernel.h"
#include "ir/kernel/intrinsics/region.h"
#include "ir/kernel/intrinsics/run.h"
#include "ir/kernel/verify/structure_rules.h"
#include "ir/support/error.h"

namespace lathe::kernel {

namespace {

/// Threads that execute a statement before the next statement, if their accesses allow any order.
constexpr std::size_t threads_at_a_time = 8;

std::size_t at_index(int id) { return static_cast<std::size_t>(id); }

class Interpreter final : IntrinsicRun {
 public:
  Interpreter(const Kernel& kernel, std::span<const BoundBuffer> buffers, std::span<const std::int64_t> dims,
              const RunOptions& options)
      : IntrinsicRun(kernel), kernel_(kernel), options_(options), decoded_(kernel, layout()) {
    LATHE_ASSERT(options.reached.empty() || options.reached.size() == buffers.size());
    if (buffers.size() != static_cast<std::size_t>(kernel.parameter_count()) || dims.size() != kernel.dims.size())
      fail(fmt::format("{} buffers and {} dims are bound", buffers.size(), dims.size()), "binding");
    main_.lanes.resize(layout().size());
    main_.scratch.resize(kernel.buffers.size());
    threads_of_.resize(decoded_.nested_count());
    for (std::size_t i = 0; i < kernel.values.size(); ++i) {
      const Instruction& in = kernel.values[i];
      Scalar* const first = lanes(static_cast<ValueId>(i), main_);
      if (in.op == Opcode::dim) first->integer = dims[in.integer];
      if (in.op == Opcode::constant) std::fill_n(first, in.type.lanes, constant_value(in));
    }
    for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
      Target target{.kernel = &kernel_, .info = &kernel.buffers[i], .count = kernel.buffers[i].count};
      target.element_bytes = static_cast<std::int64_t>(size_in_bytes(target.info->dtype));
      if (i < buffers.size()) {
        target.data = static_cast<std::byte*>(buffers[i].data);
        target.count = buffers[i].count;
        target.reached = options_.reached.empty() ? nullptr : &options_.reached[i];
      }
      targets_.push_back(target);
    }
  }

  std::int64_t run() {
    const Loop* parallel = kernel_.parallel_loop();
    if (!parallel && options_.begin >= (options_.end < 0 ? 1 : options_.end)) return 0;
    block(decoded_.of(kernel_.body), main_);
    return status_;
  }

  std::int64_t extent() {
    const Loop* loop = kernel_.parallel_loop();
    if (!loop) return 1;
    for (const ValueId bound : {loop->lo, loop->hi, loop->step}) demand(bound);
    return trip_count(loop->kind, integer(loop->lo, main_), integer(loop->hi, main_), integer(loop->step, main_));
  }

 private:
  Actor actor(const Thread& t) const override { return {t.id(), phase_, regions()}; }

  /// Evaluates a pure value and its operands.
  void demand(ValueId value) {
    for (const ValueId id : with_needs(kernel_, value)) execute(decode_value(kernel_, layout(), id), main_);
  }

  std::int64_t trip_count(LoopKind kind, std::int64_t lo, std::int64_t hi, std::int64_t step) const {
    if (step <= 0) fail(fmt::format("a {} loop steps by {}", name(kind), step), "loop_step");
    return lo >= hi ? 0 : (hi - lo - 1) / step + 1;
  }
  std::int64_t trip_count(const DecodedStatement& s, const Thread& t) const {
    return trip_count(s.nested->kind, t.lanes[s.a].integer, t.lanes[s.b].integer, t.lanes[s.c].integer);
  }
  static void set_index(const DecodedStatement& s, const Thread& bounds, std::int64_t iteration, Thread& t) {
    t.lanes[s.out].integer = bounds.lanes[s.a].integer + iteration * bounds.lanes[s.c].integer;
  }
  ValueId value_of(const DecodedStatement& s) const {
    return static_cast<ValueId>(s.instruction - kernel_.values.data());
  }
  /// Returns the coordinate of a thread that a thread loop sets.
  static std::int64_t& position(LoopKind kind, Thread& t) {
    return t.position[static_cast<int>(kind) - static_cast<int>(LoopKind::thread_x)];
  }

  void barrier() override { ++phase_; }
  void run_alone(const Block& body, Thread& t) override { block(decoded_.of(body), t); }
  void run_together(const Block& body, std::span<Thread* const> threads) override {
    lockstep(decoded_.of(body), threads);
  }

  void run_kernel(const Kernel& kernel, std::span<const Target> buffers, std::span<const std::int64_t> dims,
                  std::int64_t code) const override {
    std::vector<BoundBuffer> bound;
    std::vector<std::int64_t> reached;
    for (const Target& buffer : buffers) {
      bound.push_back({buffer.data, buffer.count});
      reached.push_back(buffer.reached ? *buffer.reached : 0);
    }
    const std::int64_t status = interpret(kernel, bound, dims, {.max_steps = options_.max_steps, .reached = reached});
    if (status != 0 && status_ == 0) status_ = code + status;
    for (std::size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i].reached) *buffers[i].reached = std::max(*buffers[i].reached, reached[i]);
  }

  Target target(BufferId id, Thread& t) const override {
    Target target = targets_[at_index(id)];
    if (target.info->space == Space::parameter) return target;
    target.scratch = t.scratch[at_index(id)].get();
    target.data = target.scratch->bytes.data();
    return target;
  }

  void block(const DecodedBlock& statements, Thread& t) {
    for (const DecodedStatement& s : statements) {
      if (options_.max_steps > 0 && ++executed_ > options_.max_steps)
        fail(fmt::format("more than {} statements", options_.max_steps), "max_steps");
      execute(s, t);
    }
  }

  void execute(const DecodedStatement& s, Thread& t) {
    switch (s.kind) {
      case DecodedKind::nothing: return;
      case DecodedKind::compute: return s.function(s, t.lanes.data());
      case DecodedKind::load: return load_lanes(s, target(s.buffer, t), actor(t), t.lanes.data());
      case DecodedKind::store: return store_lanes(s, target(s.buffer, t), actor(t), t.lanes.data());
      case DecodedKind::allocate: return allocate(s, t);
      case DecodedKind::barrier: return fail("a barrier outside the thread loops", "barrier_context");
      case DecodedKind::check: return check(s, t);
      case DecodedKind::branch: return block(t.lanes[s.a].integer ? *s.nested->body : *s.nested->else_body, t);
      case DecodedKind::loop: return loop(s, t);
      case DecodedKind::intrinsic: {
        Thread* one = &t;
        return record_of(*s.instruction)->interpret(*s.instruction, *this, value_of(s), {&one, 1});
      }
      case DecodedKind::region:
        fail(fmt::format("a {} outside the thread loops", std::get<IntrinsicRegion>(s.source->node).record->name),
             "barrier_context");
    }
  }

  /// Reuses the memory of an earlier iteration unless a copy or a region still refers to it.
  void allocate(const DecodedStatement& s, Thread& t) const {
    std::shared_ptr<Scratch>& scratch = t.scratch[at_index(s.buffer)];
    if (scratch && scratch.use_count() == 1 && regions().empty())
      scratch->clear();
    else
      scratch = std::make_shared<Scratch>(kernel_.buffers[at_index(s.buffer)]);
  }

  void check(const DecodedStatement& s, const Thread& t) {
    if (t.lanes[s.a].integer == 0 && status_ == 0) status_ = std::get<Check>(s.source->node).code;
  }

  void loop(const DecodedStatement& s, Thread& t) {
    const DecodedNested& loop = *s.nested;
    std::int64_t first = 0, count = trip_count(s, t);
    const bool thread = loop.kind >= LoopKind::thread_x;
    if (loop.kind == LoopKind::parallel) {
      first = options_.begin;
      if (options_.end >= 0) count = std::min(count, options_.end);
    }
    if (thread && loop.is_collective) {
      Thread* one = &t;
      return lockstep(s, {&one, 1});
    }
    if (thread && advance_together(loop.in_any_order)) return independent_threads(s, t, count);
    for (std::int64_t i = first; i < count; ++i) {
      set_index(s, t, i, t);
      if (thread) position(loop.kind, t) = i;
      block(*loop.body, t);
    }
    if (thread) position(loop.kind, t) = 0;
  }

  /// Runs the threads of a loop without collective statements, a few at a time.
  void independent_threads(const DecodedStatement& s, Thread& outer, std::int64_t count) {
    BlockThreads& threads = threads_of_[s.nested->number];
    std::vector<Thread*> some;
    for (std::int64_t i = 0; i < count; ++i) {
      Thread& own = threads.start(some.size(), outer, kernel_, s.nested->inherited);
      set_index(s, outer, i, own);
      position(s.nested->kind, own) = i;
      some.push_back(&own);
      if (some.size() < threads_at_a_time && i + 1 < count) continue;
      for (const DecodedStatement& inside : *s.nested->body) execute(inside, some);
      threads.end(some.size(), kernel_);
      some.clear();
    }
  }

  /// Splits every thread into one per iteration of a thread loop, and runs these threads from barrier to barrier.
  void lockstep(const DecodedStatement& s, std::span<Thread* const> outer) {
    BlockThreads& threads = threads_of_[s.nested->number];
    std::vector<Thread*> all;
    for (Thread* t : outer)
      for (std::int64_t i = 0, count = trip_count(s, *t); i < count; ++i) {
        Thread& own = threads.start(all.size(), *t, kernel_, s.nested->inherited);
        set_index(s, *t, i, own);
        position(s.nested->kind, own) = i;
        all.push_back(&own);
      }
    lockstep(*s.nested->body, all);
    threads.end(all.size(), kernel_);
  }

  void lockstep(const DecodedBlock& statements, std::span<Thread* const> all) {
    for (std::size_t next = 0; next < statements.size();) {
      const std::span<Thread* const> threads = runners(statements[next], all);
      std::size_t end = next;
      while (end < statements.size() && statements[end].alone &&
             runners(statements[end], all).size() == threads.size())
        ++end;
      if (end == next) {
        together(statements[next++], threads);
        continue;
      }
      // Few threads advance at a time, so that their lanes stay in the caches.
      const std::size_t most = advance_together(statements[next].in_any_order) ? threads_at_a_time : 1;
      for (std::size_t first = 0; first < threads.size(); first += most)
        for (std::size_t i = next; i < end; ++i)
          execute(statements[i], threads.subspan(first, std::min(most, threads.size() - first)));
      next = end;
    }
  }

  /// Statements are counted thread by thread.
  bool advance_together(bool in_any_order) const { return in_any_order && options_.max_steps == 0; }

  /// Executes a statement of threads that may advance in any order: all of them execute it before the next statement,
  /// inside loops and branches too, unless they diverge there.
  void execute(const DecodedStatement& s, std::span<Thread* const> threads) {
    if (s.kind == DecodedKind::compute) {
      for (Thread* t : threads) s.function(s, t->lanes.data());
    } else if (threads.size() > 1 && s.kind == DecodedKind::loop && is_uniform_loop(s, threads)) {
      const std::int64_t count = trip_count(s, *threads[0]);
      for (std::int64_t i = 0; i < count; ++i) {
        for (Thread* t : threads) set_index(s, *t, i, *t);
        for (const DecodedStatement& inside : *s.nested->body) execute(inside, threads);
      }
    } else if (threads.size() > 1 && s.kind == DecodedKind::branch && is_uniform_branch(s, threads)) {
      const bool taken = threads[0]->lanes[s.a].integer != 0;
      for (const DecodedStatement& inside : taken ? *s.nested->body : *s.nested->else_body) execute(inside, threads);
    } else {
      for (Thread* t : threads) execute(s, *t);
    }
  }

  bool is_uniform_loop(const DecodedStatement& s, std::span<Thread* const> threads) const {
    const LoopKind kind = s.nested->kind;
    if (kind != LoopKind::serial && kind != LoopKind::unroll && kind != LoopKind::vector) return false;
    const std::int64_t count = trip_count(s, *threads[0]);
    return std::all_of(threads.begin(), threads.end(), [&](const Thread* t) { return trip_count(s, *t) == count; });
  }

  static bool is_uniform_branch(const DecodedStatement& s, std::span<Thread* const> threads) {
    const bool taken = threads[0]->lanes[s.a].integer != 0;
    return std::all_of(threads.begin(), threads.end(),
                       [&](const Thread* t) { return (t->lanes[s.a].integer != 0) == taken; });
  }

  /// Returns the threads that execute the statement, a prefix of `all`.
  std::span<Thread* const> runners(const DecodedStatement& s, std::span<Thread* const> all) const {
    for (const RunningRegion* region : regions()) all = region->runners(*s.source, all);
    return all;
  }

  void together(const DecodedStatement& s, std::span<Thread* const> threads) {
    switch (s.kind) {
      case DecodedKind::barrier: return barrier();
      case DecodedKind::region: {
        const auto& region = std::get<IntrinsicRegion>(s.source->node);
        return region.record->interpret(region, *this, threads);
      }
      case DecodedKind::intrinsic:
        return record_of(*s.instruction)->interpret(*s.instruction, *this, value_of(s), threads);
      case DecodedKind::loop:
        return s.nested->kind >= LoopKind::thread_x ? lockstep(s, threads) : uniform_loop(s, threads);
      default:
        for (Thread* t : threads) execute(s, *t);
    }
  }

  /// Runs a serial loop that contains a collective statement: all threads must have the same trip count.
  void uniform_loop(const DecodedStatement& s, std::span<Thread* const> threads) {
    if (threads.empty()) return;
    const std::int64_t count = trip_count(s, *threads[0]);
    for (Thread* t : threads)
      if (const std::int64_t own = trip_count(s, *t); own != count)
        fail(fmt::format("thread {} meets a barrier {} times, thread {} {} times", t->id(), own, threads[0]->id(),
                         count),
             "divergent_barrier");
    for (std::int64_t i = 0; i < count; ++i) {
      for (Thread* t : threads) set_index(s, *t, i, *t);
      lockstep(*s.nested->body, threads);
    }
  }

  const Kernel& kernel_;
  RunOptions options_;
  DecodedKernel decoded_;
  std::vector<Target> targets_;  // by buffer; those of scratch lack its memory
  Thread main_;
  std::vector<BlockThreads> threads_of_;  // by collective loop
  mutable std::int64_t status_ = 0;       // phases set it too
  std::int64_t phase_ = 0, executed_ = 0;
};

}  // namespace

std::int64_t interpret(const Kernel& kernel, std::span<const BoundBuffer> buffers, std::span<const std::int64_t> dims,
                       const RunOptions& options) {
  return Interpreter(kernel, buffers, dims, options).run();
}

std::int64_t extent(const Kernel& kernel, std::span<const std::int64_t> dims) {
  const std::vector<BoundBuffer> unbound(static_cast<std::size_t>(kernel.parameter_count()));
  return Interpreter(kernel, unbound, dims, {}).extent();
}

}  // namespace lathe::kernel
