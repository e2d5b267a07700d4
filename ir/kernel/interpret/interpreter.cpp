#include "ir/kernel/interpret/interpreter.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/core.h>

#include "ir/kernel/intrinsics/region.h"
#include "ir/kernel/intrinsics/run.h"
#include "ir/kernel/verify/structure_rules.h"
#include "ir/support/error.h"

namespace lathe::kernel {

namespace {

std::size_t at_index(int id) { return static_cast<std::size_t>(id); }

class Interpreter : IntrinsicRun {
 public:
  Interpreter(const Kernel& kernel, std::span<const BoundBuffer> buffers, std::span<const std::int64_t> dims,
              const RunOptions& options)
      : IntrinsicRun(kernel), kernel_(kernel), buffers_(buffers), options_(options) {
    LATHE_ASSERT(options.reached.empty() || options.reached.size() == buffers.size());
    if (buffers.size() != static_cast<std::size_t>(kernel.parameter_count()) || dims.size() != kernel.dims.size())
      fail(fmt::format("{} buffers and {} dims are bound", buffers.size(), dims.size()), "binding");
    main_.values.resize(value_lanes());
    main_.vars.resize(var_lanes());
    main_.scratch.resize(kernel.buffers.size());
    for (std::size_t i = 0; i < kernel.values.size(); ++i) {
      const Instruction& in = kernel.values[i];
      Scalar* const first = lanes(static_cast<ValueId>(i), main_);
      if (in.op == Opcode::dim) first->integer = dims[in.integer];
      if (in.op == Opcode::constant) std::fill_n(first, in.type.lanes, Scalar{in.integer, in.real});
    }
    for_each_statement(kernel.body, [this](const Statement& s) {
      if (const auto* loop = std::get_if<Loop>(&s.node)) is_collective_[loop] = runs_together(kernel_, *loop);
    });
  }

  std::int64_t run() {
    const Loop* parallel = kernel_.parallel_loop();
    if (!parallel && options_.begin >= (options_.end < 0 ? 1 : options_.end)) return 0;
    block(kernel_.body, main_);
    return status_;
  }

  std::int64_t extent() {
    const Loop* loop = kernel_.parallel_loop();
    if (!loop) return 1;
    for (const ValueId bound : {loop->lo, loop->hi, loop->step}) demand(bound);
    return trip_count(*loop, main_);
  }

 private:
  Actor actor(const Thread& t) const override { return {t.id(), phase_, regions()}; }
  bool active(ValueId mask, int lane, Thread& t) const { return mask == none || lanes(mask, t)[lane].integer != 0; }

  /// Evaluates a pure value and its operands.
  void demand(ValueId value) {
    for (const ValueId id : with_needs(kernel_, value)) compute(id, main_);
  }

  std::int64_t trip_count(const Loop& loop, Thread& t) const {
    const std::int64_t lo = integer(loop.lo, t), hi = integer(loop.hi, t), step = integer(loop.step, t);
    if (step <= 0) fail(fmt::format("a {} loop steps by {}", name(loop.kind), step), "loop_step");
    return lo >= hi ? 0 : (hi - lo - 1) / step + 1;
  }

  void barrier() override { ++phase_; }
  void run_alone(const Block& body, Thread& t) override { block(body, t); }
  void run_together(const Block& body, std::span<Thread* const> threads) override { lockstep(body, threads); }

  Target target(BufferId id, Thread& t) const override {
    const BufferInfo& buffer = kernel_.buffers[at_index(id)];
    if (buffer.space == Space::parameter) {
      const BoundBuffer& bound = buffers_[at_index(id)];
      return {&kernel_,    &buffer, static_cast<std::byte*>(bound.data),
              bound.count, nullptr, options_.reached.empty() ? nullptr : &options_.reached[at_index(id)]};
    }
    Scratch* scratch = t.scratch[at_index(id)].get();
    return {&kernel_, &buffer, scratch->bytes.data(), buffer.count, scratch};
  }

  void block(const Block& statements, Thread& t) {
    for (const Statement& s : statements) {
      if (options_.max_steps > 0 && ++steps_ > options_.max_steps)
        fail(fmt::format("more than {} statements", options_.max_steps), "max_steps");
      std::visit([&](const auto& node) { statement(node, t); }, s.node);
    }
  }

  void statement(const Compute& s, Thread& t) { compute(s.value, t); }

  void compute(ValueId id, Thread& t) {
    const Instruction& in = info(id);
    Scalar* out = lanes(id, t);
    const auto arg = [&](std::size_t i) { return lanes(in.args[i], t); };
    const int n = in.type.lanes;
    const auto each = [&](const auto& lane) {
      for (int i = 0; i < n; ++i) out[i] = lane(i);
    };
    switch (in.op) {
      case Opcode::constant:
      case Opcode::dim:
      case Opcode::loop_index: return;
      case Opcode::scalar: return scalar(in, out, t);
      case Opcode::fma:
        return each([&](int i) { return evaluate_fma(in.type.scalar, arg(0)[i], arg(1)[i], arg(2)[i]); });
      case Opcode::broadcast: std::fill_n(out, n, *arg(0)); return;
      case Opcode::ramp:
        for (int i = 0; i < n; ++i) out[i].integer = wrap_to(in.type.scalar, arg(0)->integer + i * arg(1)->integer);
        return;
      case Opcode::reduce:
        *out = evaluate_reduction(in.scalar_op, in.type.scalar, {arg(0), at_index(info(in.args[0]).type.lanes)});
        return;
      case Opcode::extract: *out = arg(0)[in.integer]; return;
      case Opcode::shuffle: {
        const int split = info(in.args[0]).type.lanes;
        for (int i = 0; i < n; ++i) {
          const int lane = in.lanes[at_index(i)];
          out[i] = lane < split ? arg(0)[lane] : arg(1)[lane - split];
        }
        return;
      }
      case Opcode::load:
      case Opcode::load_strided:
      case Opcode::gather: return load(in, out, t);
      case Opcode::get: std::copy_n(var(static_cast<VarId>(in.integer), t), n, out); return;
      case Opcode::intrinsic: {
        Thread* one = &t;
        return record_of(in)->interpret(in, *this, id, {&one, 1});
      }
    }
  }

  void scalar(const Instruction& in, Scalar* out, Thread& t) const {
    const DType operand = info(in.args.back()).type.scalar;
    const Scalar* const a = lanes(in.args[0], t);
    if (in.scalar_op == ScalarOp::cast) {
      for (int lane = 0; lane < in.type.lanes; ++lane) out[lane] = evaluate_cast(operand, in.type.scalar, a[lane]);
      return;
    }
    const Scalar* const b = in.args.size() > 1 ? lanes(in.args[1], t) : a;
    const Scalar* const c = in.args.size() > 2 ? lanes(in.args[2], t) : a;
    for (int lane = 0; lane < in.type.lanes; ++lane)
      out[lane] = evaluate(in.scalar_op, operand, a[lane], b[lane], c[lane]);
  }

  void load(const Instruction& in, Scalar* out, Thread& t) const {
    const Target from = target(in.buffer, t);
    const Scalar* index = lanes(in.args[0], t);
    const std::int64_t stride = in.op == Opcode::load_strided ? integer(in.args[1], t) : 1;
    const Actor own = actor(t);
    for (int i = 0; i < in.type.lanes; ++i) {
      const std::int64_t at = in.op == Opcode::gather ? index[i].integer : index->integer + i * stride;
      out[i] = active(in.mask, i, t) ? from.load(at, own) : Scalar{};
    }
    from.check_alignment(in.alignment, index->integer);
  }

  void statement(const Store& s, Thread& t) const {
    const Target to = target(s.buffer, t);
    const Scalar *index = lanes(s.index, t), *value = lanes(s.value, t);
    const std::int64_t stride = s.kind == StoreKind::strided ? integer(s.stride, t) : 1;
    const Actor own = actor(t);
    for (int i = 0; i < info(s.value).type.lanes; ++i) {
      const std::int64_t at = s.kind == StoreKind::scatter ? index[i].integer : index->integer + i * stride;
      if (active(s.mask, i, t)) to.store(at, value[i], own);
    }
    to.check_alignment(s.alignment, index->integer);
  }

  void statement(const SetVar& s, Thread& t) const {
    std::copy_n(lanes(s.value, t), kernel_.vars[at_index(s.var)].type.lanes, var(s.var, t));
  }

  void statement(const Alloc& s, Thread& t) const {
    t.scratch[at_index(s.buffer)] = std::make_shared<Scratch>(kernel_.buffers[at_index(s.buffer)]);
  }
  void statement(const Prefetch&, Thread&) const {}
  void statement(const IntrinsicRegion& s, Thread&) const {
    fail(fmt::format("a {} outside the thread loops", s.record->name), "barrier_context");
  }
  void statement(const Barrier&, Thread&) const { fail("a barrier outside the thread loops", "barrier_context"); }

  void statement(const Check& s, Thread& t) {
    if (integer(s.condition, t) == 0 && status_ == 0) status_ = s.code;
  }

  void statement(const Branch& s, Thread& t) { block(integer(s.condition, t) ? s.then_block : s.else_block, t); }

  void statement(const Loop& s, Thread& t) {
    std::int64_t first = 0, count = trip_count(s, t);
    const bool thread = s.kind >= LoopKind::thread_x;
    if (s.kind == LoopKind::parallel) {
      first = options_.begin;
      if (options_.end >= 0) count = std::min(count, options_.end);
    }
    if (thread && is_collective_[&s]) {
      Thread* one = &t;
      return lockstep(s, {&one, 1});
    }
    const std::int64_t lo = integer(s.lo, t), step = integer(s.step, t);
    for (std::int64_t i = first; i < count; ++i) {
      lanes(s.index, t)->integer = lo + i * step;
      if (thread) t.position[static_cast<int>(s.kind) - static_cast<int>(LoopKind::thread_x)] = i;
      block(s.body, t);
    }
    if (thread) t.position[static_cast<int>(s.kind) - static_cast<int>(LoopKind::thread_x)] = 0;
  }

  /// Splits every thread into one per iteration of a thread loop, and runs these threads from barrier to barrier.
  void lockstep(const Loop& loop, std::span<Thread* const> outer) {
    std::vector<std::unique_ptr<Thread>> threads;
    for (Thread* t : outer)
      for (std::int64_t i = 0, count = trip_count(loop, *t); i < count; ++i) {
        auto copy = std::make_unique<Thread>(*t);
        for (std::size_t b = 0; b < copy->scratch.size(); ++b)
          if (copy->scratch[b] && kernel_.buffers[b].space != Space::shared)
            copy->scratch[b] = std::make_shared<Scratch>(*copy->scratch[b]);
        lanes(loop.index, *copy)->integer = integer(loop.lo, *t) + i * integer(loop.step, *t);
        copy->position[static_cast<int>(loop.kind) - static_cast<int>(LoopKind::thread_x)] = i;
        threads.push_back(std::move(copy));
      }
    std::vector<Thread*> all;
    for (const auto& t : threads) all.push_back(t.get());
    lockstep(loop.body, all);
  }

  void lockstep(const Block& statements, std::span<Thread* const> all) {
    for (std::size_t next = 0; next < statements.size();) {
      const std::span<Thread* const> threads = runners(statements[next], all);
      std::size_t end = next;
      while (end < statements.size() && runs_alone(statements[end]) &&
             runners(statements[end], all).size() == threads.size())
        ++end;
      if (end == next) {
        together(statements[next++], threads);
        continue;
      }
      // Runs each thread up to the next barrier before the next thread starts, so that its values stay in the caches.
      for (Thread* t : threads)
        for (std::size_t i = next; i < end; ++i)
          std::visit([&](const auto& node) { statement(node, *t); }, statements[i].node);
      next = end;
    }
  }

  /// Returns the threads that execute the statement, a prefix of `all`.
  std::span<Thread* const> runners(const Statement& s, std::span<Thread* const> all) const {
    for (const RunningRegion* region : regions()) all = region->runners(s, all);
    return all;
  }

  /// Returns whether each thread can execute the statement on its own, independent of the order of threads.
  bool runs_alone(const Statement& s) const {
    const auto* loop = std::get_if<Loop>(&s.node);
    return !std::holds_alternative<Barrier>(s.node) && !std::holds_alternative<IntrinsicRegion>(s.node) &&
           !std::holds_alternative<Check>(s.node) && !intrinsic_operation(kernel_, s) &&
           !(loop && is_collective_.at(loop));
  }

  void together(const Statement& s, std::span<Thread* const> threads) {
    const auto* loop = std::get_if<Loop>(&s.node);
    if (std::holds_alternative<Barrier>(s.node)) {
      barrier();
    } else if (const auto* region = std::get_if<IntrinsicRegion>(&s.node)) {
      region->record->interpret(*region, *this, threads);
    } else if (const Instruction* in = intrinsic_operation(kernel_, s)) {
      record_of(*in)->interpret(*in, *this, std::get<Compute>(s.node).value, threads);
    } else if (!loop) {
      for (Thread* t : threads) std::visit([&](const auto& node) { statement(node, *t); }, s.node);
    } else if (loop->kind >= LoopKind::thread_x) {
      lockstep(*loop, threads);
    } else {
      uniform_loop(*loop, threads);
    }
  }

  /// Runs a serial loop that contains a collective statement: all threads must have the same trip count.
  void uniform_loop(const Loop& loop, std::span<Thread* const> threads) {
    if (threads.empty()) return;
    const std::int64_t count = trip_count(loop, *threads[0]);
    for (Thread* t : threads)
      if (const std::int64_t own = trip_count(loop, *t); own != count)
        fail(fmt::format("thread {} meets a barrier {} times, thread {} {} times", t->id(), own, threads[0]->id(),
                         count),
             "divergent_barrier");
    for (std::int64_t i = 0; i < count; ++i) {
      for (Thread* t : threads) lanes(loop.index, *t)->integer = integer(loop.lo, *t) + i * integer(loop.step, *t);
      lockstep(loop.body, threads);
    }
  }

  const Kernel& kernel_;
  std::span<const BoundBuffer> buffers_;
  RunOptions options_;
  std::unordered_map<const Loop*, bool> is_collective_;  // whether the loop contains a collective statement
  Thread main_;
  std::int64_t status_ = 0, phase_ = 0, steps_ = 0;
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
