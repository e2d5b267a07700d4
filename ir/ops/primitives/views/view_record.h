#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/ops/rules/view_rules.h"

/// Helpers for the records of view ops.
namespace lathe::ir::ops {

inline const TensorType& source(const Graph& graph, const Node& node) { return graph[node.operands[0]].type; }

inline Sample view_sample(std::vector<std::int64_t> sizes, Attributes attrs, DType dtype = f64) {
  return {.operands = {{std::move(sizes), dtype}}, .attrs = std::move(attrs)};
}

constexpr Op view_op(std::string_view name, std::string_view doc, std::span<const AttrSpec> attrs,
                     std::span<const std::string_view> labels, TensorType (*infer)(const InferContext&),
                     IndexMap (*map)(const Graph&, const Node&), GradientRule gradient,
                     std::vector<Sample> (*samples)()) {
  return Op{.name = name,
            .doc = doc,
            .arity = Arity{1, 1},
            .attrs = attrs,
            .labels = labels,
            .infer = infer,
            .meaning = View{map},
            .precision = MixedPrecision::follow,
            .gradient = gradient,
            .samples = samples};
}

}  // namespace lathe::ir::ops
