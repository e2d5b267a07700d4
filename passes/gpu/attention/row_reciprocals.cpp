#include "passes/gpu/attention/row_reciprocals.h"

#include <map>

#include "passes/fusion/attention/softmax_sums.h"
#include "passes/lowering/attention/softmax_divisor.h"

namespace lathe::gpu {

using Kind = ElementwiseInstruction::Kind;

namespace {

class Rewriter {
 public:
  Rewriter(const ir::Graph& graph, const ElementwiseProgram& from)
      : graph_(graph), from_(from), columns_(std::uint64_t{1} << (from.domain.rank() - 1)) {}

  ElementwiseProgram run() {
    to_.domain = from_.domain;
    for (int i = 0; i < from_.size(); ++i) {
      ElementwiseInstruction instruction = from_[i];
      for (int& arg : instruction.args) arg = positions_[arg];
      if (divides_by_sum(i)) {
        instruction.op = ScalarOp::mul;
        instruction.args[1] = reciprocal(from_[i].args[1]);
      }
      positions_.push_back(add(std::move(instruction), depends(i)));
    }
    for (ElementwiseStore store : from_.stores) {
      store.value = positions_[store.value];
      to_.stores.push_back(std::move(store));
    }
    for (const auto& [node, i] : from_.members) to_.members[node] = positions_[i];
    return std::move(to_);
  }

 private:
  std::uint64_t depends(int i) const { return from_.depends[i]; }

  bool divides_by_sum(int i) const {
    const ElementwiseInstruction& division = from_[i];
    if (division.kind != Kind::scalar || division.op != ScalarOp::div || division.dtype != f32) return false;
    if ((depends(i) & columns_) == 0 || (depends(division.args[1]) & columns_) != 0) return false;
    const ElementwiseInstruction& sum = from_[without_least_sum(from_, division.args[1])];
    return sum.kind == Kind::load && sum.args.empty() && sum.dtype == f32 && is_softmax_sum(graph_, sum.buffer);
  }

  int reciprocal(int sum) {
    const auto [at, fresh] = reciprocals_.try_emplace(sum, -1);
    if (fresh) {
      const int one = add({.kind = Kind::constant, .dtype = f32, .value = 1}, 0);
      at->second = add({.kind = Kind::scalar,
                        .dtype = f32,
                        .op = ScalarOp::div,
                        .args = {one, positions_[sum]},
                        .node = from_[sum].node},
                       depends(sum));
    }
    return at->second;
  }

  int add(ElementwiseInstruction instruction, std::uint64_t depends) {
    to_.code.push_back(std::move(instruction));
    to_.depends.push_back(depends);
    return to_.size() - 1;
  }

  const ir::Graph& graph_;
  const ElementwiseProgram& from_;
  std::uint64_t columns_;
  ElementwiseProgram to_;
  std::vector<int> positions_;      // new position, by instruction
  std::map<int, int> reciprocals_;  // by sum
};

}  // namespace

ElementwiseProgram with_row_reciprocals(const ir::Graph& graph, const ElementwiseProgram& program) {
  return Rewriter(graph, program).run();
}

}  // namespace lathe::gpu
