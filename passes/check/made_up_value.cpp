#include "passes/check/made_up_value.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "ir/ops/lookups.h"
#include "ir/support/tensors/complex_elements.h"
#include "ir/tensor/analysis/users.h"

namespace lathe::ir {

namespace {

/// FNV-1a: the same on every machine, unlike std::hash.
std::uint64_t hash(std::string_view text, std::uint64_t seed) {
  std::uint64_t h = 14695981039346656037ull ^ (seed * 0x9e3779b97f4a7c15ull);
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return h;
}

/// Returns the size of the dim that a node indexes with its operand `operand`; nothing if it does not index.
std::optional<Dim> indexed_size(const Graph& graph, const Node& node, std::size_t operand) {
  const std::string_view op = node.op->name.value;
  if (const auto lookup = lookup_of(graph, node); lookup && lookup->indices == operand) return lookup->size;
  if (op == "one_hot") return node.attrs.get<Dim>("classes");
  if (op == "cross_entropy" && operand == 1) {
    const Shape& logits = graph[node.operands[0]].type.shape;
    return logits[logits.rank() - 1];
  }
  return std::nullopt;
}

/// Returns one more than the largest index that every use of the argument allows; 2 if it is not used as an index.
std::int64_t index_bound(const Graph& graph, ValueId argument, const DimBindings& dims) {
  std::optional<std::int64_t> bound;
  const Users users(graph);
  std::vector<ValueId> open{argument};
  std::set<ValueId> seen{argument};
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    for (const ValueId user : users[value]) {
      const Node& node = graph[user];
      for (std::size_t i = 0; i < node.operands.size(); ++i)
        if (node.operands[i] == value)
          if (const auto size = indexed_size(graph, node, i))
            bound = std::min(bound.value_or(1 << 30), size->evaluate(dims));
      // Integers that are only moved remain indices.
      if (is_integer(node.type.dtype) && seen.insert(user).second) open.push_back(user);
    }
  }
  return std::max<std::int64_t>(1, bound.value_or(2));
}

/// Values are low + width * uniform.
struct Range {
  double low, width;
};

Range float_range(const Node& node, const std::vector<std::int64_t>& sizes) {
  const std::string_view kind = node.op->name.value;
  if (kind == "input") return {-1, 2};
  if (kind == "state") return {0, 0.1};
  if (sizes.size() >= 2) {
    const double reach = std::sqrt(3.0 / static_cast<double>(std::max<std::int64_t>(1, sizes.back())));
    return {-reach, 2 * reach};
  }
  return node.name.find("weight") != std::string::npos ? Range{0.9, 0.2} : Range{-0.1, 0.2};
}

}  // namespace

HostTensor made_up_value(const Graph& graph, ValueId argument, const DimBindings& dims, std::uint64_t seed) {
  const Node& node = graph[argument];
  const auto sizes = node.type.shape.evaluate(dims);
  HostTensor tensor(node.type.dtype, sizes);
  std::mt19937_64 random(hash(node.name, seed));
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  const DType dtype = node.type.dtype;
  if (is_integer(dtype)) {
    if (node.op->name.value == "state") return tensor;
    const std::int64_t bound = index_bound(graph, argument, dims);
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      tensor.set_int(i, static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound)));
  } else if (is_byte(dtype)) {
    const auto [lowest, highest] = integer_limits(dtype);
    const auto count = static_cast<std::uint64_t>(highest - lowest + 1);
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      tensor.set_int(i, lowest + static_cast<std::int64_t>(random() % count));
  } else if (dtype == boolean) {
    for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, uniform() < 0.8 ? 1 : 0);
  } else {
    const Range range = float_range(node, sizes);
    const auto draw = [&] { return range.low + range.width * uniform(); };
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      const double real = draw();
      is_complex(dtype) ? set_complex(tensor, i, {real, draw()}) : tensor.set(i, real);
    }
  }
  return tensor;
}

}  // namespace lathe::ir
