#include "ir/kernel/interpreter.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/core.h>

#include "ir/kernel/interpreter_exchange.h"
#include "ir/kernel/structure_rules.h"
#include "ir/support/error.h"

namespace lathe::kernel {

namespace {

std::size_t at_index(int id) { return static_cast<std::size_t>(id); }

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::span<const BoundBuffer> buffers, std::span<const std::int64_t> dims,
              const RunOptions& options)
      : kernel_(kernel), buffers_(buffers), options_(options), held_(kernel) {
    if (buffers.size() != static_cast<std::size_t>(kernel.parameter_count()) || dims.size() != kernel.dims.size())
      fail(fmt::format("{} buffers and {} dims are bound", buffers.size(), dims.size()), "binding");
    main_.values.resize(held_.count());
    std::size_t next = 0;
    for (const VarInfo& var : kernel.vars) var_offsets_.push_back(next), next += at_index(var.type.lanes);
    main_.vars.resize(next);
    main_.scratch.resize(kernel.buffers.size());
    for (std::size_t i = 0; i < kernel.values.size(); ++i) {
      const Instruction& in = kernel.values[i];
      Scalar* const first = lanes(static_cast<ValueId>(i), main_);
      if (in.op == Opcode::dim) first->integer = dims[static_cast<std::size_t>(in.integer)];
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
  [[noreturn]] void fail(const std::string& text, const char* label) const { held_.fail(text, label); }

  const Instruction& info(ValueId id) const { return kernel_.values[at_index(id)]; }
  Scalar* lanes(ValueId id, Thread& t) const { return held_.lanes(id, t); }
  std::int64_t integer(ValueId id, Thread& t) const { return held_.integer(id, t); }
  std::vector<std::int64_t> integers(const std::vector<ValueId>& ids, Thread& t) const {
    std::vector<std::int64_t> all;
    for (const ValueId id : ids) all.push_back(integer(id, t));
    return all;
  }
  Actor actor(const Thread& t) const { return {t.id(), phase_, in_pipeline_}; }
  bool active(ValueId mask, int lane, Thread& t) const { return mask == none || lanes(mask, t)[lane].integer != 0; }

  /// Evaluates a pure value and what it needs.
  void demand(ValueId value) {
    for (const ValueId id : with_needs(kernel_, value)) compute(id, main_);
  }

  std::int64_t trip_count(const Loop& loop, Thread& t) const {
    const std::int64_t lo = integer(loop.lo, t), hi = integer(loop.hi, t), step = integer(loop.step, t);
    if (step <= 0) fail(fmt::format("a {} loop steps by {}", name(loop.kind), step), "loop_step");
    return lo >= hi ? 0 : (hi - lo - 1) / step + 1;
  }

  Target target(BufferId id, Thread& t) const {
    const BufferInfo& buffer = kernel_.buffers[at_index(id)];
    if (buffer.space == Space::parameter) {
      const BoundBuffer& bound = buffers_[at_index(id)];
      return {&kernel_, &buffer, static_cast<std::byte*>(bound.data), bound.count, nullptr};
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
      case Opcode::dot_pairs:
        return each([&](int i) { return evaluate_dot_pair(arg(0) + 2 * i, arg(1) + 2 * i, arg(2)[i]); });
      case Opcode::bf16_slices: return each([&](int i) { return evaluate_slice(arg(i % 2)[i / 2], in.integer); });
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
      case Opcode::get: std::copy_n(&t.vars[var_offsets_[static_cast<std::size_t>(in.integer)]], n, out); return;
      case Opcode::from_lane:
      case Opcode::from_consumers: break;  // exchange_lanes(), tell_all()
      case Opcode::mma:
        return multiply_tiles(in, {target(in.left.buffer, t), arg(0)->integer, arg(1)->integer},
                              {target(in.right.buffer, t), arg(2)->integer, arg(3)->integer},
                              static_cast<int>(t.position[0] % warp_threads), actor(t), arg(4), out);
    }
  }

  void scalar(const Instruction& in, Scalar* out, Thread& t) const {
    const DType operand = info(in.args.back()).type.scalar;
    Scalar args[3];
    for (int lane = 0; lane < in.type.lanes; ++lane) {
      for (std::size_t i = 0; i < in.args.size(); ++i) args[i] = lanes(in.args[i], t)[lane];
      out[lane] = in.scalar_op == ScalarOp::cast
                      ? evaluate_cast(operand, in.type.scalar, args[0])
                      : evaluate(in.scalar_op, operand, std::span<const Scalar>(args, in.args.size()));
    }
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
    std::copy_n(lanes(s.value, t), kernel_.vars[at_index(s.var)].type.lanes, &t.vars[var_offsets_[at_index(s.var)]]);
  }

  void statement(const Alloc& s, Thread& t) const {
    t.scratch[at_index(s.buffer)] = std::make_shared<Scratch>(kernel_.buffers[at_index(s.buffer)]);
  }
  void statement(const Prefetch&, Thread&) const {}
  void statement(const AsyncCopy& s, Thread& t) const {
    const Target to = target(s.to, t), from = target(s.from, t);
    const std::int64_t at = integer(s.to_index, t), from_at = integer(s.from_index, t);
    const auto lanes = static_cast<std::int64_t>(16 / size_in_bytes(to.info->dtype));
    const std::int64_t count = s.count == none ? lanes : integer(s.count, t);
    to.check_alignment(16, at);
    if (count > 0) from.check_alignment(16, from_at);
    t.copies.start(t.scratch[at_index(s.to)], to, at, from.load_piece(from_at, lanes, count, actor(t)), actor(t));
  }

  void statement(const CopyBox& s, Thread& t) const {
    if (t.position[0] != ring_->consumers) return;
    const TensorMap& map = kernel_.maps[at_index(s.map)];
    const Target to = target(s.to, t);
    const MappedTensor from{target(map.from, t), integer(map.offset, t), integers(map.sizes, t),
                            integers(map.strides, t)};
    to.check_alignment(panel_alignment, integer(s.to_index, t));
    t.copies.start(t.scratch[at_index(s.to)], to, integer(s.to_index, t),
                   read_box(from, map.box, integers(s.at, t), actor(t)), actor(t));
  }
  void statement(const CommitCopies&, Thread& t) const { t.copies.commit(); }
  void statement(const WaitCopies& s, Thread& t) const { t.copies.wait(s.pending, actor(t)); }

  void statement(const Wgmma&, Thread&) const { fail("a wgmma outside a pipeline", "warpgroup_place"); }

  /// For whole warpgroups.
  void multiply(const Wgmma& s, std::span<Thread* const> threads) const {
    const bool of_value = s.left_value != none;
    std::vector<ValueId> places = {s.right_first};
    if (!of_value) places.push_back(s.left_first);
    check_same(held_, places, "wgmma", warpgroup_threads, threads);
    std::vector<const Scalar*> held;
    for (Thread* t : threads)
      if (of_value) held.push_back(lanes(s.left_value, *t));
    for (std::size_t i = 0; i < threads.size(); ++i) {
      Thread& t = *threads[i];
      const auto number = static_cast<int>(i % warpgroup_threads);
      const std::vector<Scalar> left =
          of_value ? left_of_threads(s, std::span(held).subspan(i - i % warpgroup_threads, warpgroup_threads), number)
                   : left_of_panel(s, {target(s.left.buffer, t), integer(s.left_first, t)}, number, actor(t));
      multiply_panels(s, left, {target(s.right.buffer, t), integer(s.right_first, t)}, number, actor(t),
                      &t.vars[var_offsets_[at_index(s.sums)]]);
    }
  }
  void statement(const WaitSums&, Thread&) const {}
  void statement(const TileMma& s, Thread& t) const {
    const auto place = [&](const TileMma::Matrix& m) {
      return TilePlace{target(m.buffer, t), integer(m.first, t), integer(m.line, t)};
    };
    multiply_blocks(s, place(s.sums), place(s.left), place(s.right), integer(s.depth, t), actor(t));
  }

  void statement(const StagePipeline&, Thread&) const {
    fail("a pipeline outside the thread loops", "pipeline_place");
  }
  void statement(const Stage&, Thread&) const { fail("a stage outside a pipeline", "pipeline_stage"); }
  void statement(const Barrier&, Thread&) const { fail("a barrier outside the thread loops", "barrier_place"); }

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

  /// Splits every thread into one for each iteration of a thread loop, and runs them from barrier to barrier.
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
    for (const Statement& s : statements) {
      const auto* loop = std::get_if<Loop>(&s.node);
      const auto threads = consumers_of(s, all);
      if (std::holds_alternative<Barrier>(s.node)) {
        ++phase_;
      } else if (const auto* pipeline = std::get_if<StagePipeline>(&s.node)) {
        ++phase_;
        ring_ = pipeline;
        producer_needs_ = needs_of_producer(kernel_, *pipeline);
        in_pipeline_ = Actor::InPipeline{.stages = pipeline->stages};
        turns_ = 0;
        lockstep(pipeline->body, all);
        ring_ = nullptr;
        in_pipeline_ = {};
      } else if (const auto* stage = std::get_if<Stage>(&s.node)) {
        turn(*stage, all);
      } else if (loop && is_collective_[loop] && loop->kind >= LoopKind::thread_x) {
        lockstep(*loop, threads);
      } else if (loop && is_collective_[loop]) {
        uniform_loop(*loop, threads);
      } else {
        if (const auto* product = std::get_if<Wgmma>(&s.node)) {
          multiply(*product, threads);
          continue;
        }
        if (const auto* compute = std::get_if<Compute>(&s.node); compute && kernel_.is_collective(s)) {
          const Instruction& in = info(compute->value);
          if (in.op == Opcode::from_lane) {
            exchange_lanes(held_, compute->value, threads);
            continue;
          }
          if (in.op == Opcode::from_consumers) {
            tell_all(held_, compute->value, ring_->consumers, all);
            continue;
          }
          check_same(held_, {in.args.data(), in.args.size() - 1}, name(in.op), warp_threads, threads);
        }
        for (Thread* t : threads) std::visit([&](const auto& node) { statement(node, *t); }, s.node);
      }
    }
  }

  /// In a pipeline the other threads run what leads to its stage, and, with no effect, what is computed from values
  /// alone.
  std::span<Thread* const> consumers_of(const Statement& s, std::span<Thread* const> threads) const {
    const auto* set = std::get_if<SetVar>(&s.node);
    if (!ring_ || leads_to_stage(s) || (set && producer_needs_.vars[at_index(set->var)])) return threads;
    const auto* compute = std::get_if<Compute>(&s.node);
    const bool pure = compute && info(compute->value).buffer == none && !kernel_.is_collective(s);
    return pure ? threads : threads.first(std::min(threads.size(), static_cast<std::size_t>(ring_->consumers)));
  }

  /// A stage is filled, its copies arrive, and it is used.
  void turn(const Stage& stage, std::span<Thread* const> threads) {
    const auto consumers = static_cast<std::size_t>(ring_->consumers);
    for (Thread* t : threads) lanes(stage.slot, *t)->integer = turns_ % ring_->stages;
    in_pipeline_->turn = turns_++;
    in_pipeline_->fills = true;
    for (Thread* t : threads.subspan(consumers)) {
      block(stage.produce, *t);
      t->copies.commit();
      t->copies.wait(0, actor(*t));
    }
    in_pipeline_->fills = false;
    lockstep(stage.consume, threads.first(consumers));
    in_pipeline_->turn = -1;
  }

  /// A serial loop with a barrier or mma inside: all threads must run it equally often.
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
  ThreadValues held_;
  std::vector<std::size_t> var_offsets_;
  std::unordered_map<const Loop*, bool> is_collective_;  // a barrier or an mma stands inside
  Thread main_;
  std::int64_t status_ = 0, phase_ = 0, steps_ = 0, turns_ = 0;
  const StagePipeline* ring_ = nullptr;  // that runs
  ProducerNeeds producer_needs_;         // its fill's
  std::optional<Actor::InPipeline> in_pipeline_;
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
