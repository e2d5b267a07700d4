#include "ir/kernel/verify/structure_rules.h"

#include <algorithm>
#include <set>

#include "ir/kernel/intrinsics/record.h"
#include "ir/kernel/verify/rules.h"
#include "ir/support/post_order.h"

namespace lathe::kernel {

namespace {

/// Checks that a bound of the parallel loop depends on dims only.
void pure(const Kernel& kernel, ValueId bound) {
  std::vector<ValueId> work = {bound};
  std::set<ValueId> seen;
  while (!work.empty()) {
    const ValueId id = work.back();
    work.pop_back();
    if (!seen.insert(id).second) continue;
    require(kernel, id >= 0 && id < static_cast<int>(kernel.values.size()), "value_range", "value {} does not exist",
            id);
    const Instruction& in = value(kernel, id);
    require(kernel, computes_alone(in) && in.op != Opcode::get && in.op != Opcode::loop_index, "parallel_bounds",
            "a bound of the parallel loop depends on a {}", name_of(in));
    work.insert(work.end(), in.args.begin(), in.args.end());
  }
}

void no_parameter_store(const Kernel& kernel, const Statement& statement) {
  const auto* store = std::get_if<Store>(&statement.node);
  if (!store) return;
  require(kernel,
          store->buffer >= 0 && store->buffer < static_cast<int>(kernel.buffers.size()) &&
              kernel.buffers[store->buffer].space != Space::parameter,
          "setup_store", "a store to a parameter before the parallel loop");
}

}  // namespace

void verify_parallel_loop(const Kernel& kernel) {
  for (std::size_t i = 0; i < kernel.body.size(); ++i) {
    const auto* loop = std::get_if<Loop>(&kernel.body[i].node);
    if (!loop || loop->kind != LoopKind::parallel) continue;
    require(kernel, i + 1 == kernel.body.size(), "parallel_last", "statements follow the parallel loop");
    for_each_statement({kernel.body.begin(), kernel.body.begin() + static_cast<std::ptrdiff_t>(i)},
                       [&](const Statement& s) { no_parameter_store(kernel, s); });
    for (const ValueId bound : {loop->lo, loop->hi, loop->step}) pure(kernel, bound);
  }
}

void verify_loop(const Kernel& kernel, const Loop& loop) {
  const Instruction& step = value(kernel, loop.step);
  require(kernel, step.op != Opcode::constant || step.integer > 0, "loop_step", "a step of {}", step.integer);
  require(kernel, loop.index >= 0 && loop.index < static_cast<int>(kernel.values.size()), "value_range",
          "value {} does not exist", loop.index);
  const Instruction& index = value(kernel, loop.index);
  require(kernel, index.op == Opcode::loop_index && index.type == Type{i64, 1}, "loop_index",
          "value {} is no loop index", loop.index);
  if (loop.kind != LoopKind::unroll) return;
  for (const ValueId bound : {loop.lo, loop.hi, loop.step})
    require(kernel, value(kernel, bound).op == Opcode::constant, "unroll_bounds",
            "an unrolled loop without constant bounds");
}

void for_each_block(const Statement& statement, const std::function<void(const Block&)>& body) {
  std::visit(Overloaded{[&](const Loop& l) { body(l.body); },
                        [&](const Branch& b) { body(b.then_block), body(b.else_block); },
                        [&](const IntrinsicRegion& r) { std::for_each(r.bodies.begin(), r.bodies.end(), body); },
                        [](const auto&) {}},
             statement.node);
}

void for_each_statement(const Block& statements, const std::function<void(const Statement&)>& body) {
  for (const Statement& s : statements) {
    body(s);
    for_each_block(s, [&](const Block& inside) { for_each_statement(inside, body); });
  }
}

std::vector<ValueId> with_needs(const Kernel& kernel, ValueId value) {
  std::vector<ValueId> found;
  std::set<ValueId> done;
  post_order(
      value, [&](ValueId id) -> auto& { return kernel.values[id].args; },
      [&](ValueId id) { return !done.contains(id); },
      [&](ValueId id) {
        if (done.insert(id).second) found.push_back(id);
        return true;
      });
  return found;
}

bool runs_together(const Kernel& kernel, const Loop& loop) {
  return std::any_of(loop.body.begin(), loop.body.end(), [&](const Statement& s) {
    const auto* inner = std::get_if<Loop>(&s.node);
    return inner ? runs_together(kernel, *inner) : kernel.is_collective(s);
  });
}

bool holds_region(const Statement& statement, const IntrinsicRegionRecord* record) {
  const auto* region = std::get_if<IntrinsicRegion>(&statement.node);
  if (region && (!record || region->record == record)) return true;
  bool found = false;
  for_each_block(statement, [&](const Block& inside) { found = found || holds_region(inside, record); });
  return found;
}

bool holds_region(const Block& statements, const IntrinsicRegionRecord* record) {
  return std::any_of(statements.begin(), statements.end(),
                     [&](const Statement& s) { return holds_region(s, record); });
}

}  // namespace lathe::kernel
