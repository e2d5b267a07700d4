#include "passes/transforms/dtypes/convert_dtype.h"

#include <fmt/core.h>

#include "ir/ops/primitives/primitives.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

class Converter {
 public:
  Converter(DType from, DType to) : from_(from), to_(to) {}

  DType operator()(DType dtype) const {
    if (dtype == from_) return to_;
    if (!is_complex(dtype) || real_part(dtype) != from_) return dtype;
    const auto complex = complex_of(to_);
    if (!complex)
      throw UserError(
          fmt::format("the graph holds {} values, and there is no complex dtype made of {}", name(dtype), name(to_)),
          "convert_dtype", "complex numbers are pairs of f32 or f64");
    return *complex;
  }

  Attributes operator()(const Attributes& attrs) const {
    Attributes result = attrs;
    for (const auto& [key, value] : attrs.entries())
      if (const auto* dtype = std::get_if<DType>(&value)) result.set(key, (*this)(*dtype));
    return result;
  }

 private:
  DType from_, to_;
};

Value converted(Rebuilder& to, const Node& node, const Converter& convert) {
  GraphBuilder& builder = to.builder();
  const GraphBuilder::At at(builder, node.loc);
  if (node.op->as<Argument>())
    return builder.argument(*node.op, node.name, convert(node.type.dtype), node.type.shape);
  const auto operands = to.operands(node);
  Node now = node;
  now.attrs = convert(node.attrs);
  if (node.op == &ops::cast && operands[0].dtype() == now.attrs.get<DType>("dtype")) return operands[0];
  return builder.copy(now, operands);
}

}  // namespace

Graph convert_dtype(const Graph& graph, DType from, DType to) {
  for (const DType dtype : {from, to})
    if (!is_float(dtype))
      throw UserError(fmt::format("a graph cannot be run at {} instead of {}", name(to), name(from)), "convert_dtype",
                      "both must be among f64, f32, bf16 and f16");
  const Converter convert(from, to);
  GraphBuilder builder(graph.name);
  Rebuilder rebuilder(builder, graph);
  for (const ValueId id : all_values(graph)) rebuilder.set(id, converted(rebuilder, graph[id], convert));
  rebuilder.close();
  return builder.finish();
}

}  // namespace lathe::ir
