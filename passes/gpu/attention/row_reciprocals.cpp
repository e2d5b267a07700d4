#include "passes/gpu/attention/row_reciprocals.h"

#include <map>

#include "passes/fusion/attention/softmax_sums.h"
#include "passes/lowering/attention/softmax_divisor.h"

namespace lathe::gpu {

using Kind = PointInstruction::Kind;

namespace {

class Rewriter {
 public:
  Rewriter(const ir::Graph& graph, const PointProgram& from)
      : graph_(graph), from_(from), columns_(std::uint64_t{1} << (from.domain.rank() - 1)) {}

  PointProgram run() {
    to_.domain = from_.domain;
    for (int i = 0; i < from_.size(); ++i) {
      PointInstruction instruction = from_[i];
      for (int& arg : instruction.args) arg = places_[static_cast<std::size_t>(arg)];
      if (divides_by_sum(i)) {
        instruction.op = ScalarOp::mul;
        instruction.args[1] = reciprocal(from_[i].args[1]);
      }
      places_.push_back(add(std::move(instruction), depends(i)));
    }
    for (PointStore store : from_.stores) {
      store.value = places_[static_cast<std::size_t>(store.value)];
      to_.stores.push_back(std::move(store));
    }
    for (const auto& [node, i] : from_.members) to_.members[node] = places_[static_cast<std::size_t>(i)];
    return std::move(to_);
  }

 private:
  std::uint64_t depends(int i) const { return from_.depends[static_cast<std::size_t>(i)]; }

  bool divides_by_sum(int i) const {
    const PointInstruction& division = from_[i];
    if (division.kind != Kind::scalar || division.op != ScalarOp::div || division.dtype != f32) return false;
    if ((depends(i) & columns_) == 0 || (depends(division.args[1]) & columns_) != 0) return false;
    const PointInstruction& sum = from_[without_least_sum(from_, division.args[1])];
    return sum.kind == Kind::load && sum.args.empty() && sum.dtype == f32 && is_softmax_sum(graph_, sum.buffer);
  }

  int reciprocal(int sum) {
    const auto [at, fresh] = reciprocals_.try_emplace(sum, -1);
    if (fresh) {
      const int one = add({.kind = Kind::constant, .dtype = f32, .value = 1}, 0);
      at->second = add({.kind = Kind::scalar,
                        .dtype = f32,
                        .op = ScalarOp::div,
                        .args = {one, places_[static_cast<std::size_t>(sum)]},
                        .node = from_[sum].node},
                       depends(sum));
    }
    return at->second;
  }

  int add(PointInstruction instruction, std::uint64_t depends) {
    to_.code.push_back(std::move(instruction));
    to_.depends.push_back(depends);
    return to_.size() - 1;
  }

  const ir::Graph& graph_;
  const PointProgram& from_;
  std::uint64_t columns_;
  PointProgram to_;
  std::vector<int> places_;         // by instruction: where it is now
  std::map<int, int> reciprocals_;  // by sum
};

}  // namespace

PointProgram with_row_reciprocals(const ir::Graph& graph, const PointProgram& program) {
  return Rewriter(graph, program).run();
}

}  // namespace lathe::gpu
