#include "passes/lowering/attention/online_softmax.h"

#include <algorithm>

#include "passes/lowering/attention/softmax_divisor.h"

namespace lathe {

using Kind = ElementwiseInstruction::Kind;

namespace {

class OnlineSoftmaxFinder {
 public:
  explicit OnlineSoftmaxFinder(const AttentionProgram& attention)
      : program_(attention.program), columns_(attention.columns()) {
    for (const ElementwiseInstruction& i : program_.code)
      reduces_.push_back(i.kind == Kind::reduce ||
                         std::any_of(i.args.begin(), i.args.end(), [&](int arg) { return reduces_[arg]; }));
  }

  std::optional<OnlineSoftmax> find(const std::vector<int>& results) {
    OnlineSoftmax found{.most = -1, .sums = {}};
    for (int i = 0; i < program_.size(); ++i) {
      if (program_[i].kind != Kind::reduce) continue;
      if (program_[i].op == ScalarOp::max && found.most < 0 && !waits(program_[i].args[0]))
        found.most = i;
      else if (program_[i].op == ScalarOp::add)
        found.sums.push_back(i);
      else
        return std::nullopt;
    }
    if (found.most < 0 || !is_float(program_[found.most].dtype)) return std::nullopt;
    most_ = found.most;
    subtracted_ = find_subtracted();
    found.zero_masked = subtracted_ != most_;
    const auto varies = [&](const ElementwiseStore& store) {
      return (program_.depends[store.value] & columns_) != 0;
    };
    for (const ElementwiseInstruction& i : program_.code) scales_.push_back(scales(i));
    const auto is_scaled = [&](int i) { return bool(scales_[i]); };
    const bool sums =
        std::all_of(found.sums.begin(), found.sums.end(), [&](int s) { return is_scaled(program_[s].args[0]); });
    if (!sums || !std::all_of(results.begin(), results.end(), is_scaled) ||
        std::any_of(program_.stores.begin(), program_.stores.end(), varies))
      return std::nullopt;
    return found;
  }

 private:
  bool waits(int i) const { return reduces_[i]; }

  /// Whether `subtracted` is the maximum, clamped or not, that all the exponentials use.
  bool takes_most(int subtracted) const {
    return subtracted == subtracted_ && without_least_maximum(program_, subtracted) == most_;
  }

  /// Returns the value that the first exponential subtracts.
  int find_subtracted() const {
    for (const ElementwiseInstruction& i : program_.code)
      if (i.kind == Kind::scalar && i.op == ScalarOp::sub && without_least_maximum(program_, i.args[1]) == most_)
        return i.args[1];
    return -1;
  }

  /// Whether a value is exp(a - max of a) times factors that depend on no reduction. scales_ must cover all earlier
  /// instructions.
  bool scales(const ElementwiseInstruction& i) const {
    const auto is_scaled = [&](std::size_t arg) { return bool(scales_[i.args[arg]]); };
    if (i.kind != Kind::scalar || !is_float(i.dtype)) return false;
    switch (i.op) {
      case ScalarOp::exp: {
        const ElementwiseInstruction& difference = program_[i.args[0]];
        return difference.kind == Kind::scalar && difference.op == ScalarOp::sub && takes_most(difference.args[1]) &&
               difference.args[0] == program_[most_].args[0];
      }
      case ScalarOp::cast:
      case ScalarOp::neg: return is_scaled(0);
      case ScalarOp::div: return is_scaled(0) && !waits(i.args[1]);
      case ScalarOp::mul: return (is_scaled(0) && !waits(i.args[1])) || (is_scaled(1) && !waits(i.args[0]));
      default: return false;
    }
  }

  const ElementwiseProgram& program_;
  std::uint64_t columns_;
  std::vector<bool> reduces_;  ///< by instruction: whether it depends on a reduction
  std::vector<bool> scales_;   ///< by instruction
  int most_ = -1, subtracted_ = -1;
};

}  // namespace

std::optional<OnlineSoftmax> find_online_softmax(AttentionProgram& attention) {
  if (attention.parts.sums_over_rows()) return std::nullopt;
  AttentionProgram divided = attention;
  for (AttentionParts::OutputProduct& output : divided.parts.outputs) {
    if (output.divisor) continue;
    const auto taken = take_out_divisor(divided.program, output.value, divided.columns(), true);
    if (!taken) continue;
    output.value = taken->value;
    output.divisor = taken->divisor;
  }
  std::optional<OnlineSoftmax> found = OnlineSoftmaxFinder(divided).find(divided.results());
  if (!found) return std::nullopt;
  divided.bounds =
      find_column_bounds(divided.program, divided.parts.row_dim, divided.parts.columns_dim, divided.results());
  attention = std::move(divided);
  return found;
}

}  // namespace lathe
