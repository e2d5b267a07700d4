#include <fmt/core.h>

#include <limits>

#include "frontend/ops/derived_ops.h"
#include "models/import/ops/indexing_functions.h"
#include "models/import/ops/scatter_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Sums, means and maxima of the rows of an embedding, for bags of indices.
namespace lathe::pt2 {

namespace {

/// Indices [n], and the number of the bag of each one.
struct Bags {
  Tensor indices, numbers;
  Dim count = 0;
};

/// Each bag begins at an offset and ends at the next one.
Bags bags_of(const OpCall& call) {
  const Tensor indices = call.tensor(1);
  if (indices.rank() != 1) call.fail(fmt::format("the indices have {} dims", indices.rank()), "import_operand");
  Tensor offsets = call.tensor(2).to(i64);
  const Dim size = indices.size(0).unnamed();
  Dim count = offsets.size(0).unnamed();
  if (call.flag("include_last_offset", false)) {
    count = count - Dim(1);
    offsets = offsets.slice(0, 0, count);
  }
  // A bag may begin at the end, and several ones at the same index.
  const Tensor starts =
      scatter_add(importing::checked(offsets, size + Dim(1)), call.graph().ones({count}, i64), size + Dim(1));
  return {indices, cumsum(starts, 0).slice(0, 0, size) - 1, count};
}

Results embedding_bag(const OpCall& call) {
  enum Mode : std::uint8_t { sum, mean, largest };
  call.ignore({"scale_grad_by_freq", "sparse"});
  if (call.flag("scale_grad_by_freq", false)) call.fail("the argument scale_grad_by_freq is true");
  const std::int64_t mode = call.integer("mode", sum);
  if (mode < sum || mode > largest) call.fail(fmt::format("the argument mode is {}", mode), "import_attribute");
  const Tensor table = call.tensor(0);
  const Bags bags = bags_of(call);
  Tensor rows = embedding(bags.indices, table), counts = call.graph().ones({bags.indices.size(0)}, table.dtype());
  if (call.has(3)) {
    if (mode != sum) call.fail("per_sample_weights are for the mode sum", "import_operand");
    rows = rows * call.tensor(3).unsqueeze(1);
  }
  if (call.has("padding_idx")) {
    const Tensor padding =
        importing::from_front(call.graph().constant(call.integer("padding_idx"), i64), table.size(0).unnamed());
    const Tensor is_padding = bags.indices.to(i64) == padding;
    rows = where(is_padding.unsqueeze(1), mode == largest ? -std::numeric_limits<double>::infinity() : 0.0, rows);
    counts = where(is_padding, 0, counts);
  }
  const Tensor sizes = scatter_add(bags.numbers, counts, bags.count).unsqueeze(1);
  if (mode != largest) {
    const Tensor sums = scatter_add(bags.numbers, rows, bags.count);
    return {mode == sum ? sums : sums / maximum(sizes, 1)};
  }
  const Tensor lowest =
      call.graph().full({bags.count, table.size(1)}, -std::numeric_limits<double>::infinity(), table.dtype());
  const Tensor found = importing::with_rows(lowest, bags.numbers, rows,
                                            {.kind = importing::ScatterKind::largest, .includes_self = false});
  return {where(sizes == 0, 0, found)};
}

}  // namespace

std::span<const OpRecord> aten_bag_ops() {
  constexpr std::string_view operands = "weight indices offsets per_sample_weights";
  static constexpr OpRecord records[] = {
      aten("embedding_bag", operands, "scale_grad_by_freq mode sparse include_last_offset", embedding_bag),
      aten("embedding_bag.padding_idx", operands, "scale_grad_by_freq mode sparse include_last_offset padding_idx",
           embedding_bag),
  };
  return records;
}

}  // namespace lathe::pt2
