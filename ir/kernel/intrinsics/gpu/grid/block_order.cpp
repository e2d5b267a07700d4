#include "ir/kernel/intrinsics/gpu/grid/block_order.h"

#include <algorithm>

#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::kernel {

constinit const IntrinsicRecord wait_block_turn_record =
    intrinsic_record<WaitBlockTurn>({.name = "wait_block_turn",
                                     .args = {2, 2},
                                     .buffers = {1, 1},
                                     .orders_blocks = true,
                                     .together = Together::warpgroup});
constinit const IntrinsicRecord add_in_turn_record = intrinsic_record<AddInTurn>(
    {.name = "add_in_turn", .args = {2, 2}, .buffers = {1, 1}, .parameter_alignment = 16});
constinit const IntrinsicRecord pass_block_turn_record = intrinsic_record<PassBlockTurn>(
    {.name = "pass_block_turn", .args = {1, 1}, .buffers = {1, 1}, .together = Together::warpgroup});

WaitBlockTurn WaitBlockTurn::of(const Instruction& in) { return {in.machine->buffers[0].id, in.args[0], in.args[1]}; }
Instruction WaitBlockTurn::instruction() const {
  return intrinsic_instruction({.record = &wait_block_turn_record, .buffers = {{turns, Access::read}}}, {turn, rank});
}

PassBlockTurn PassBlockTurn::of(const Instruction& in) { return {in.machine->buffers[0].id, in.args[0]}; }
Instruction PassBlockTurn::instruction() const {
  return intrinsic_instruction({.record = &pass_block_turn_record, .buffers = {{turns, Access::read_write}}}, {turn});
}

namespace {

/// Checks the turns of a whole kernel: every wait is followed, among the same statements, by the end of the same
/// turn, and no turn is inside another one (block_turn_pairs); a buffer that is both read and written in turns is
/// accessed in turns alone, and the counters by these operations alone (block_turn_buffers).
class Turns {
 public:
  explicit Turns(const PlaceRules& rules)
      : rules_(rules), inside_(rules.kernel.buffers.size()), outside_(rules.kernel.buffers.size()) {
    block(rules.kernel.body, false);
    for (std::size_t i = 0; i < inside_.size(); ++i) {
      const bool is_shared_by_blocks = inside_[i].read && inside_[i].written;
      const BufferInfo& buffer = rules.kernel.buffers[i];
      rules.require(
          buffer.space != Space::parameter || !is_shared_by_blocks || !(outside_[i].read || outside_[i].written),
          "block_turn_buffers", "{} is read and written in turns of the blocks, and accessed outside them",
          buffer.name);
    }
    if (turns_.empty()) return;
    for (const BufferId turns : turns_)
      rules.require(turns == turns_.front() && !touched(inside_[turns]) && !touched(outside_[turns]),
                    "block_turn_buffers", "{} counts turns of the blocks, and is accessed otherwise",
                    rules.kernel.buffers[turns].name);
  }

 private:
  struct Use {
    bool read = false, written = false;
  };
  static bool touched(const Use& use) { return use.read || use.written; }

  void block(const Block& statements, bool in_turn) {
    const Instruction* open = nullptr;
    for (const Statement& s : statements) {
      const Instruction* in = intrinsic_operation(rules_.kernel, s);
      const IntrinsicRecord* record = in ? record_of(*in) : nullptr;
      if (record == &wait_block_turn_record) {
        rules_.require(!open && !in_turn, "block_turn_pairs", "a block waits for a turn in another turn");
        open = in;
        turns_.push_back(in->machine->buffers[0].id);
      } else if (record == &pass_block_turn_record) {
        rules_.require(
            open && open->args[0] == in->args[0] && open->machine->buffers[0].id == in->machine->buffers[0].id,
            "block_turn_pairs", "a block passes a turn that it has not waited for");
        open = nullptr;
      } else {
        rules_.require(record != &add_in_turn_record || open || in_turn, "block_turn_pairs",
                       "an add_in_turn outside the turns of blocks");
        note(s, (open || in_turn ? inside_ : outside_));
        for_each_block(s, [&](const Block& nested) { block(nested, open || in_turn); });
      }
    }
    rules_.require(!open, "block_turn_pairs", "a block waits for a turn and does not pass it");
  }

  void note(const Statement& s, std::vector<Use>& uses) {
    if (const auto* store = std::get_if<Store>(&s.node)) uses[store->buffer].written = true;
    const auto* compute = std::get_if<Compute>(&s.node);
    if (!compute) return;
    const Instruction& in = value(rules_.kernel, compute->value);
    if (in.buffer != none) uses[in.buffer].read = true;
    if (!in.machine) return;
    for (const IntrinsicBuffer& buffer : in.machine->buffers) {
      uses[buffer.id].read |= buffer.access != Access::write;
      uses[buffer.id].written |= buffer.access != Access::read;
    }
  }

  const PlaceRules& rules_;
  std::vector<Use> inside_, outside_;  // by buffer
  std::vector<BufferId> turns_;
};

/// Checks the counters (block_turn_counters) and the place (block_turn_context).
void verify_turn(const IntrinsicRules& rules, BufferId turns, ValueId turn) {
  const BufferInfo& buffer = rules.buffer(turns);
  rules.require(buffer.space == Space::parameter && buffer.dtype == DType::i32, "block_turn_counters",
                "turns of blocks counted in {}, which is no parameter of i32", buffer.name);
  rules.want(turn, {i64, 1}, "the number of a turn");
  const Instruction& number = rules.value(turn);
  rules.require(number.op != Opcode::constant || number.integer > 0, "block_turn_counters",
                "turn {}, which counts the blocks that have started", number.integer);
  const IntrinsicContext& context = rules.context;
  rules.require(context.warp_loops > 0 && context.thread_loops == 1 && context.branches == 0, "block_turn_context",
                "a turn of blocks in a branch or outside the one thread loop, of whole warps along x");
  const auto is_block_loop = [](const Statement& s) {
    const auto* loop = std::get_if<Loop>(&s.node);
    return loop && loop->kind >= LoopKind::block_x && loop->kind < LoopKind::thread_x;
  };
  int blocks = 0, along_x = 0;
  for_each_statement(rules.kernel.body, [&](const Statement& s) {
    if (!is_block_loop(s)) return;
    ++blocks;
    along_x += std::get<Loop>(s.node).kind == LoopKind::block_x;
  });
  rules.require(blocks == 1 && along_x == 1, "block_turn_context", "turns of blocks in {} block loops", blocks);
}

}  // namespace

void WaitBlockTurn::verify(const IntrinsicRules& rules) const {
  verify_turn(rules, turns, turn);
  rules.want(rank, {i64, 1}, "the rank of a block");
  Turns{rules};
}
void PassBlockTurn::verify(const IntrinsicRules& rules) const {
  verify_turn(rules, turns, turn);
  Turns{rules};
}

std::string WaitBlockTurn::text(const IntrinsicText& text) const {
  return fmt::format("wait_block_turn {}[{}] at {}", text.buffer(turns), text.value(turn), text.value(rank));
}
WaitBlockTurn WaitBlockTurn::parse(IntrinsicReader& in) {
  WaitBlockTurn wait{.turns = in.buffer(), .turn = in.element()};
  in.expect("at");
  wait.rank = in.value();
  return wait;
}

std::string PassBlockTurn::text(const IntrinsicText& text) const {
  return fmt::format("pass_block_turn {}[{}]", text.buffer(turns), text.value(turn));
}
PassBlockTurn PassBlockTurn::parse(IntrinsicReader& in) {
  const BufferId turns = in.buffer();
  return {turns, in.element()};
}

namespace {

/// Returns the uniform number of the turn.
std::int64_t checked_turn(ValueId turn, const IntrinsicRun& run, std::span<Thread* const> threads) {
  if (threads.size() != warpgroup_threads)
    run.fail(fmt::format("{} threads of a block take a turn", threads.size()), "block_turn_threads");
  run.check_same({&turn, 1}, "a turn of blocks", warpgroup_threads, threads);
  const std::int64_t number = run.integer(turn, *threads[0]);
  if (number < 1) run.fail(fmt::format("turn {} of blocks", number), "block_turn_counters");
  return number;
}

}  // namespace

void WaitBlockTurn::interpret(const IntrinsicRun& run, ValueId, std::span<Thread* const> threads) const {
  const std::int64_t number = checked_turn(turn, run, threads);
  run.check_same({&rank, 1}, "the rank of a block", warpgroup_threads, threads);
  Thread& first = *threads[0];
  const Target counters = run.target(turns, first);
  const std::int64_t passed = counters.load(number, run.actor(first)).integer, own = run.integer(rank, first);
  if (passed != own)
    run.fail(fmt::format("a block waits for turn {} at rank {}, and blocks of lower index pass it {} times", number,
                         own, passed),
             "block_order");
}

void PassBlockTurn::interpret(const IntrinsicRun& run, ValueId, std::span<Thread* const> threads) const {
  const std::int64_t number = checked_turn(turn, run, threads);
  Thread& first = *threads[0];
  const Target counters = run.target(turns, first);
  const Actor actor = run.actor(first);
  counters.store(number, {.integer = counters.load(number, actor).integer + 1}, actor);
}

void in_block_turn(Builder& builder, Buffer turns, Value turn, Value rank, const std::function<void()>& body) {
  builder.machine(WaitBlockTurn{turns.id, turn.id, rank.id}.instruction());
  body();
  builder.machine(PassBlockTurn{turns.id, turn.id}.instruction());
}

AddInTurn AddInTurn::of(const Instruction& in) { return {in.machine->buffers[0].id, in.args[0], in.args[1]}; }
Instruction AddInTurn::instruction() const {
  return intrinsic_instruction({.record = &add_in_turn_record, .buffers = {{sums, Access::read_write}}},
                               {first, terms});
}

void AddInTurn::verify(const IntrinsicRules& rules) const {
  const BufferInfo& buffer = rules.buffer(sums);
  rules.require(buffer.space == Space::parameter && buffer.dtype == f32, "block_turn_buffers",
                "an add_in_turn to {}, which is no parameter of f32", buffer.name);
  rules.want(first, {i64, 1}, "the index of an add_in_turn");
  rules.want(terms, {f32, lanes}, "the terms of an add_in_turn");
  rules.want_multiple(first, lanes, "the index of an add_in_turn");
  Turns{rules};
}

std::string AddInTurn::text(const IntrinsicText& text) const {
  return fmt::format("add_in_turn {}[{}] += {}", text.buffer(sums), text.value(first), text.value(terms));
}
AddInTurn AddInTurn::parse(IntrinsicReader& in) {
  AddInTurn add{.sums = in.buffer(), .first = in.element()};
  in.expect("+=");
  add.terms = in.value();
  return add;
}

void AddInTurn::interpret(const IntrinsicRun& run, ValueId, Thread& t) const {
  const Target to = run.target(sums, t);
  const Actor actor = run.actor(t);
  const std::int64_t at = run.integer(first, t);
  to.check_alignment(lanes * int{sizeof(float)}, at);
  for (int i = 0; i < lanes; ++i)
    to.store(at + i, {.real = to.load(at + i, actor).real + run.lanes(terms, t)[i].real}, actor);
}

void add_in_turn(Builder& builder, Buffer sums, Value first, Value terms) {
  builder.machine(AddInTurn{sums.id, first.id, terms.id}.instruction());
}

namespace {
constexpr const IntrinsicRecord* block_order_records[] = {&wait_block_turn_record, &pass_block_turn_record,
                                                          &add_in_turn_record};
}  // namespace
extern const IntrinsicFamily block_order_intrinsics;
constinit const IntrinsicFamily block_order_intrinsics{.operations = block_order_records};

}  // namespace lathe::kernel
