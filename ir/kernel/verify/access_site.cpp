#include "ir/kernel/verify/access_site.h"

#include <algorithm>
#include <utility>

#include "ir/kernel/intrinsics/region.h"
#include "ir/support/error.h"

namespace lathe::kernel {

namespace {

using Step = AccessSite::Step;

/// A loop, branch or thread restriction around a statement; lists are outermost first.
struct Around {
  const Loop* loop = nullptr;
  ValueId condition = none;  ///< of a branch
  bool holds = true;
  int first_threads = 0, last_threads = 0;  ///< number of threads of the innermost loop that run the statement
};

bool is_whole(DType dtype) { return is_integer(dtype) || dtype == boolean; }

class SiteMaker {
 public:
  explicit SiteMaker(const Kernel& kernel) : kernel_(kernel), slots_(kernel.values.size(), -1) {}

  /// Discards the previous site.
  void start() {
    for (const ValueId id : computed_) slots_[id] = -1;
    computed_.clear();
    site_ = {};
    site_.slots.emplace_back();
  }

  void enter(const std::vector<Around>& path) {
    int index = anything, end = anything;
    for (const Around& around : path) {
      if (around.loop) {
        const Loop& loop = *around.loop;
        index = slot();
        end = value(loop.hi);
        step({.kind = Step::Kind::loop,
              .out = index,
              .a = value(loop.lo),
              .b = value(loop.hi),
              .c = value(loop.step)});
        set(loop.index, index);
      } else if (around.condition != none) {
        step({.kind = around.holds ? Step::Kind::holds : Step::Kind::fails, .a = value(around.condition)});
      } else if (around.last_threads > 0) {
        step({.kind = Step::Kind::holds,
              .a = apply(ScalarOp::le, apply(ScalarOp::sub, end, number(around.last_threads)), index)});
      } else {
        step({.kind = Step::Kind::holds, .a = apply(ScalarOp::lt, index, number(around.first_threads))});
      }
    }
  }

  AccessSite make(const Store& s) { return make(at(s.value).type.lanes, s.kind, s.index, s.stride, s.mask); }

  AccessSite make(const Instruction& in) {
    const StoreKind kind = in.op == Opcode::load           ? StoreKind::contiguous
                           : in.op == Opcode::load_strided ? StoreKind::strided
                                                           : StoreKind::scatter;
    return make(in.type.lanes, kind, in.args[0], kind == StoreKind::strided ? in.args[1] : none, in.mask);
  }

  AccessSite make(const BlockAccess& block) {
    int start = value(block.first);
    if (block.stride != none)
      start = apply(ScalarOp::add, start, apply(ScalarOp::mul, count(block.rows), value(block.stride)));
    site_.element = apply(ScalarOp::add, start, count(block.columns));
    return std::move(site_);
  }

 private:
  static constexpr int anything = 0;  // a slot

  AccessSite make(int lanes, StoreKind kind, ValueId index, ValueId stride, ValueId mask) {
    // A scalar access whose mask is the "or" over a vector runs if any lane of that vector is true.
    const Instruction* const any = mask != none && lanes == 1 ? any_lane(mask) : nullptr;
    lane_ = count_or_zero(any ? at(any->args[0]).type.lanes : lanes);
    if (mask != none) step({.kind = Step::Kind::holds, .a = value(any ? any->args[0] : mask)});
    int element = value(index);
    if (lanes > 1 && kind == StoreKind::contiguous) element = apply(ScalarOp::add, element, lane_);
    if (lanes > 1 && kind == StoreKind::strided)
      element = apply(ScalarOp::add, element, apply(ScalarOp::mul, lane_, value(stride)));
    site_.element = element;
    return std::move(site_);
  }

  const Instruction& at(ValueId id) const { return kernel_.values[id]; }
  const Instruction* any_lane(ValueId mask) const {
    const Instruction& in = at(mask);
    return in.op == Opcode::reduce && in.scalar_op == ScalarOp::logical_or ? &in : nullptr;
  }
  int of(ValueId id) const { return slots_[id]; }
  void set(ValueId id, int slot) {
    slots_[id] = slot;
    computed_.push_back(id);
  }
  int slot(Range known = {}) {
    site_.slots.push_back(known);
    return static_cast<int>(site_.slots.size()) - 1;
  }
  int number(std::int64_t n) { return slot({n, n}); }
  int step(Step s) {
    site_.steps.push_back(s);
    return s.out;
  }
  int apply(ScalarOp op, int a, int b) { return step({.op = op, .out = slot(), .a = a, .b = b}); }
  int count_or_zero(int n) { return n > 1 ? count(n) : number(0); }
  int count(int n) { return step({.kind = Step::Kind::count, .out = slot(), .a = number(n)}); }

  /// Returns the slot of a value; adds steps for its arguments first.
  int value(ValueId wanted) {
    LATHE_ASSERT(wanted != none);
    std::vector<ValueId> work = {wanted};
    while (!work.empty()) {
      const ValueId id = work.back();
      const std::size_t before = work.size();
      if (of(id) < 0 && is_known(at(id)))
        for (const ValueId arg : at(id).args)
          if (of(arg) < 0) work.push_back(arg);
      if (work.size() > before) continue;
      work.pop_back();
      if (of(id) < 0) set(id, compute(at(id)));
    }
    return of(wanted);
  }

  /// Returns whether an instruction's range follows from those of its arguments.
  bool is_known(const Instruction& in) const {
    if (!is_whole(in.type.scalar)) return false;
    if (in.op == Opcode::broadcast || in.op == Opcode::ramp) return true;
    if (in.op != Opcode::scalar) return false;
    for (const ValueId arg : in.args)
      if (!is_whole(at(arg).type.scalar)) return false;
    return true;
  }

  int compute(const Instruction& in) {
    const bool in_32_bits = in.type.scalar == i32;
    if (in.op == Opcode::constant && is_whole(in.type.scalar)) return number(in.integer);
    if (in.op == Opcode::dim) {
      site_.dims.push_back({slot(), static_cast<int>(in.integer)});
      return site_.dims.back().slot;
    }
    if (!is_known(in)) return anything;
    const int a = of(in.args[0]);
    if (in.op == Opcode::broadcast) return a;
    if (in.op == Opcode::ramp) {
      const int lanes = apply(ScalarOp::mul, lane_, of(in.args[1]));
      return step({.op = ScalarOp::add, .in_32_bits = in_32_bits, .out = slot(), .a = a, .b = lanes});
    }
    if (in.scalar_op != ScalarOp::cast) {
      Step s{.op = in.scalar_op, .in_32_bits = in_32_bits, .out = slot(), .a = a};
      if (in.args.size() > 1) s.b = of(in.args[1]);
      if (in.args.size() > 2) s.c = of(in.args[2]);
      return step(s);
    }
    if (in.type.scalar == boolean) return step({.kind = Step::Kind::boolean, .out = slot(), .a = a});
    return step({.op = ScalarOp::add, .in_32_bits = in_32_bits, .out = slot(), .a = a, .b = number(0)});
  }

  const Kernel& kernel_;
  AccessSite site_;
  std::vector<int> slots_;  // by value; -1: no slot yet
  std::vector<ValueId> computed_;
  int lane_ = anything;
};

class Finder {
 public:
  Finder(const Kernel& kernel, BufferId parameter, AccessKind kind)
      : kernel_(kernel), parameter_(parameter), kind_(kind), maker_(kernel) {}

  std::vector<AccessSite> run() {
    block(kernel_.body);
    return std::move(sites_);
  }

 private:
  void block(const Block& statements) {
    for (const Statement& s : statements) std::visit([this](const auto& node) { statement(node); }, s.node);
  }
  void inside(const Around& around, const Block& statements) {
    path_.push_back(around);
    block(statements);
    path_.pop_back();
  }

  template <class Node>
  void statement(const Node&) {}
  void statement(const Loop& s) { inside({.loop = &s}, s.body); }
  void statement(const Branch& s) {
    inside({.condition = s.condition, .holds = true}, s.then_block);
    inside({.condition = s.condition, .holds = false}, s.else_block);
  }
  void statement(const IntrinsicRegion& s) {
    for (std::size_t i = 0; i < s.bodies.size(); ++i) switch (s.record->bodies[i].run_by) {
        case RunBy::all: block(s.bodies[i]); break;
        case RunBy::first: inside({.first_threads = s.record->first_threads(s)}, s.bodies[i]); break;
        case RunBy::last: by_last(s.record->last_threads(s), s.bodies[i]); break;
        case RunBy::others: break;
      }
  }

  /// The last threads run the body instead of the first threads of the enclosing region.
  void by_last(int threads, const Block& statements) {
    const auto first =
        std::find_if(path_.rbegin(), path_.rend(), [](const Around& around) { return around.first_threads > 0; });
    if (first == path_.rend()) return inside({.last_threads = threads}, statements);
    const Around before = std::exchange(*first, Around{.last_threads = threads});
    const auto at = first - path_.rbegin();
    block(statements);
    path_.rbegin()[at] = before;
  }

  void statement(const Compute& s) {
    const Instruction& in = kernel_.values[s.value];
    if (is_wanted(in.buffer, AccessKind::load)) add(in);
    if (const IntrinsicRecord* record = record_of(in))
      for (const BlockAccess& block : record->blocks(in)) {
        if (block.of.access != Access::write && is_wanted(block.of.id, AccessKind::load)) add(block);
        if (block.of.access != Access::read && is_wanted(block.of.id, AccessKind::store)) add(block);
      }
  }
  void statement(const Store& s) {
    if (is_wanted(s.buffer, AccessKind::store)) add(s);
  }
  bool is_wanted(BufferId buffer, AccessKind kind) const { return buffer == parameter_ && kind == kind_; }

  template <class... Args>
  void add(const Args&... args) {
    maker_.start();
    maker_.enter(path_);
    sites_.push_back(maker_.make(args...));
  }

  const Kernel& kernel_;
  BufferId parameter_;
  AccessKind kind_;
  SiteMaker maker_;
  std::vector<Around> path_;
  std::vector<AccessSite> sites_;
};

}  // namespace

std::vector<AccessSite> access_sites(const Kernel& kernel, BufferId parameter, AccessKind kind) {
  return Finder(kernel, parameter, kind).run();
}

}  // namespace lathe::kernel
