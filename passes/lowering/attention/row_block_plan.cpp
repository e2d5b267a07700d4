#include "passes/lowering/attention/row_block_plan.h"

#include <algorithm>

#include "passes/fusion/inline_policy.h"
#include "passes/lowering/elementwise/elementwise_emitter.h"

namespace lathe {

using Kind = ElementwiseInstruction::Kind;

namespace {
constexpr int costs_a_slot = 8;  // arithmetic cost from which a value is kept in a slot
}  // namespace

RowBlockPlan::RowBlockPlan(const ir::Graph& graph, const ElementwiseProgram& program, std::uint64_t columns,
                           std::vector<int> results, Memory memory, std::set<int> stored_bf16)
    : graph_(graph),
      program_(program),
      columns_(columns),
      results_(std::move(results)),
      memory_(memory),
      stored_bf16_(std::move(stored_bf16)) {
  find_levels();
  for (int i = 0; i < program_.size(); ++i)
    if (program_[i].kind == Kind::reduce) loops_[at(levels_[at(i)] - 1)].reductions.push_back(i);
  for (const ElementwiseStore& store : program_.stores) {
    if (varies(store.value))
      loops_[at(levels_[at(store.value)])].stores.push_back(&store);
    else
      row_stores_.push_back(&store);
  }
  find_saved();
  assign_slots();
}

bool RowBlockPlan::is_result(int value) const {
  return std::find(results_.begin(), results_.end(), value) != results_.end();
}

void RowBlockPlan::find_levels() {
  int last = 0;
  for (int i = 0; i < program_.size(); ++i) {
    int level = 0;
    for (const int arg : program_[i].args) level = std::max(level, levels_[at(arg)]);
    if (program_[i].kind == Kind::reduce) ++level;
    levels_.push_back(level);
    if (program_[i].kind != Kind::reduce && (varies(i) || is_result(i))) last = std::max(last, level);
    if (program_[i].kind == Kind::reduce) last = std::max(last, level - 1);
  }
  loops_.resize(at(last) + 1);
}

/// Arithmetic cost of recomputing a value from scores, saved values and memory.
int RowBlockPlan::cost(int value) const {
  std::vector<bool> counted(program_.code.size(), false);
  std::vector<int> work = {value};
  int total = 0;
  while (!work.empty()) {
    const int i = work.back();
    work.pop_back();
    if (counted[at(i)] || !varies(i)) continue;
    counted[at(i)] = true;
    const ElementwiseInstruction& instruction = program_[i];
    if (instruction.kind == Kind::accumulator || (i != value && saved_[at(i)])) continue;
    if (instruction.kind == Kind::random) total += 40;
    if (instruction.kind == Kind::gather) total += 4;
    if (instruction.kind == Kind::scalar)
      total += instruction.node.valid() ? arithmetic_cost(graph_[instruction.node]) : 1;
    for (const int arg : instruction.args) work.push_back(arg);
  }
  return total;
}

/// Saves expensive values that a loop after the next reduction needs.
void RowBlockPlan::find_saved() {
  saved_.assign(program_.code.size(), false);
  const auto consider = [&](int value, int loop) {
    if (memory_ == Memory::none || program_[value].kind == Kind::accumulator) return;
    if (!varies(value) || levels_[at(value)] >= loop) return;
    if (cost(value) >= costs_a_slot) saved_[at(value)] = true;
  };
  for (int i = 0; i < program_.size(); ++i)
    for (const int arg : program_[i].args)
      if (program_[i].kind != Kind::reduce)
        consider(arg, levels_[at(i)]);
      else
        consider(arg, levels_[at(i)] - 1);
}

std::vector<int> RowBlockPlan::roots(int loop) const {
  std::vector<int> found;
  for (const int r : loops_[at(loop)].reductions) found.push_back(program_[r].args[0]);
  for (const ElementwiseStore* store : loops_[at(loop)].stores) found.push_back(store->value);
  for (int i = 0; i < program_.size(); ++i)
    if (saved_[at(i)] && levels_[at(i)] == loop) found.push_back(i);
  for (const int value : results_)
    if (levels_[at(value)] == loop) found.push_back(value);
  return found;
}

bool RowBlockPlan::found_in_slot(int value, int loop) const {
  if (program_[value].kind == Kind::accumulator) return true;
  return memory_ == Memory::slots && (saved_[at(value)] || is_result(value)) && levels_[at(value)] < loop;
}

/// By value: whether the loop needs it, computed or read from its slot.
std::vector<bool> RowBlockPlan::computed_in(int loop) const {
  std::vector<bool> needed(program_.code.size(), false);
  for (const int root : roots(loop)) needed[at(root)] = true;
  for (int i = program_.size() - 1; i >= 0; --i) {
    if (!needed[at(i)] || found_in_slot(i, loop) || !varies(i) || program_[i].kind == Kind::reduce) continue;
    for (const int arg : program_[i].args) needed[at(arg)] = true;
  }
  return needed;
}

/// A slot is free for writing in the last loop that reads it.
void RowBlockPlan::assign_slots() {
  const int count = static_cast<int>(loops_.size());
  std::vector<int> last_read(program_.code.size(), -1);
  for (int l = 0; l < count; ++l) {
    const std::vector<bool> needed = computed_in(l);
    for (int i = 0; i < program_.size(); ++i) {
      if (!needed[at(i)]) continue;
      if (found_in_slot(i, l)) {
        last_read[at(i)] = l;
        loops_[at(l)].reads.push_back(i);
      } else if (!varies(i) && program_[i].kind != Kind::reduce) {
        loops_[at(l)].fixed.push_back(i);
      }
    }
  }
  for (const int value : results_) last_read[at(value)] = count;
  std::vector<int> held;  // by slot: the value that it holds
  const auto position = [&](int value, int loop) {
    const DType dtype = stored_bf16_.contains(value) ? bf16 : compute_type(program_[value].dtype);
    for (std::size_t s = 0; s < held.size(); ++s) {
      if (last_read[at(held[s])] > loop || slot_dtypes_[s] != dtype) continue;
      held[s] = value;
      return static_cast<int>(s);
    }
    held.push_back(value);
    slot_dtypes_.push_back(dtype);
    return static_cast<int>(held.size()) - 1;
  };
  // All scores are written before the first loop.
  for (int i = 0; i < program_.size(); ++i)
    if (program_[i].kind == Kind::accumulator) slots_[i] = position(i, -2);
  for (int l = 0; l < count; ++l)
    for (int i = 0; i < program_.size(); ++i) {
      if (program_[i].kind == Kind::accumulator || levels_[at(i)] != l || !(saved_[at(i)] || is_result(i))) continue;
      slots_[i] = position(i, l);
      loops_[at(l)].writes.emplace_back(i, slots_[i]);
    }
}

}  // namespace lathe
