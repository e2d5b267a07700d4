#include "passes/autodiff/join_pads.h"

#include <map>
#include <utility>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"

namespace lathe::ir {

namespace {

using IndexRange = std::pair<std::int64_t, std::int64_t>;  // from the first index up to below the second

int dim_of(const Node& pad) { return rules::normalize_axis(pad.attrs.get<std::int64_t>("dim"), pad.type.rank()); }

Value inside_of(const Value& pad) { return {pad.builder(), pad.node().operands[0]}; }

IndexRange range_of(const Value& pad) {
  const std::int64_t low = *pad.node().attrs.get<Dim>("low").value();
  return {low, low + *inside_of(pad).shape()[dim_of(pad.node())].value()};
}

/// Values at ranges of one dim that do not overlap.
class Layer {
 public:
  /// Ranges are added in ascending order.
  void add(const IndexRange& range, const Value& value) {
    ranges_.push_back(range);
    values_.push_back(value);
  }

  /// Returns one value of the shape with zeros in the gaps.
  Value joined(const Shape& shape, int dim) const {
    std::vector<Value> parts;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (i > 0 && ranges_[i - 1].second < ranges_[i].first)
        parts.push_back(zeros(shape, dim, ranges_[i].first - ranges_[i - 1].second));
      parts.push_back(values_[i]);
    }
    const Value all = parts.size() == 1 ? parts[0] : concat(parts, dim);
    return pad(all, dim, ranges_.front().first, shape[dim].unnamed() - Dim(ranges_.back().second));
  }

 private:
  Value zeros(Shape shape, int dim, std::int64_t size) const {
    shape.set(dim, Dim(size));
    return full(values_[0].builder(), shape, 0, values_[0].dtype());
  }

  std::vector<IndexRange> ranges_;
  std::vector<Value> values_;
};

/// Distributes values, ordered by their first index, to as many layers as values overlap at one index.
std::vector<Layer> layers_of(const std::map<IndexRange, Value>& values) {
  std::vector<Layer> layers;
  std::multimap<std::int64_t, std::size_t> ends;  // layers by their last range's end
  for (const auto& [range, value] : values) {
    std::size_t layer = layers.size();
    if (!ends.empty() && ends.begin()->first <= range.first) {
      layer = ends.begin()->second;
      ends.erase(ends.begin());
    } else {
      layers.emplace_back();
    }
    layers[layer].add(range, value);
    ends.emplace(range.second, layer);
  }
  return layers;
}

}  // namespace

bool is_known_pad(const Value& value) {
  const Node& node = value.node();
  if (node.op != &ops::pad) return false;
  const Shape inside = inside_of(value).shape();
  return node.attrs.get<Dim>("low").value() && inside[dim_of(node)].value().value_or(0) > 0;
}

Value sum_of_known_pads(const std::vector<Value>& pads) {
  std::map<int, std::map<IndexRange, Value>> by_dim;
  for (const Value& pad : pads) {
    const int dim = dim_of(pad.node());
    const auto [at, is_new] = by_dim[dim].emplace(range_of(pad), inside_of(pad));
    if (!is_new) at->second = add(at->second, inside_of(pad));
  }
  const Shape shape = pads[0].shape();
  std::optional<Value> sum;
  for (const auto& [dim, values] : by_dim)
    for (const Layer& layer : layers_of(values)) {
      const Value joined = layer.joined(shape, dim);
      sum = sum ? add(*sum, joined) : joined;
    }
  return *sum;
}

}  // namespace lathe::ir
