#include "passes/transforms/sizes/known_sizes.h"

#include <algorithm>

#include "ir/tensor/binding.h"
#include "ir/tensor/loop_views.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

Dim with_sizes(const Dim& dim, const DimBindings& sizes) {
  if (dim.value()) return dim;
  Dim sum(0);
  for (const Dim::Term& term : dim.terms()) {
    Dim product(term.coefficient);
    for (const auto& [name, power] : term.monomial) {
      const auto known = sizes.find(name);
      for (int i = 0; i < power; ++i) product = product * (known == sizes.end() ? Dim(name) : Dim(known->second));
    }
    sum = sum + product;
  }
  return dim.name().empty() ? sum : sum.named(dim.name());
}

Shape with_sizes(Shape shape, const DimBindings& sizes) {
  for (int d = 0; d < shape.rank(); ++d) shape.set(d, with_sizes(shape[d], sizes));
  return shape;
}

Node with_sizes(Node node, const DimBindings& sizes) {
  const Attributes before = node.attrs;
  for (const auto& [name, attribute] : before.entries()) {
    if (const auto* dim = std::get_if<Dim>(&attribute)) node.attrs.set(name, with_sizes(*dim, sizes));
    if (const auto* shape = std::get_if<Shape>(&attribute)) node.attrs.set(name, with_sizes(*shape, sizes));
  }
  node.type.shape = with_sizes(node.type.shape, sizes);
  return node;
}

/// Whether both check the same; their messages show sizes and may differ.
bool same_check(const DimCheck& a, const DimCheck& b) {
  return a.left == b.left && a.right == b.right && a.relation == b.relation && a.label == b.label && a.loc == b.loc;
}

/// Returns the checks that remain open; throws if one of the others fails.
std::vector<DimCheck> open_checks(const Graph& graph, const DimBindings& sizes) {
  std::vector<DimCheck> open;
  Graph decided;
  for (const DimCheck& check : graph.checks) {
    DimCheck now = check;
    now.left = with_sizes(check.left, sizes);
    now.right = with_sizes(check.right, sizes);
    if (now.left.value() && now.right.value())
      decided.checks.push_back(check);
    else
      open.push_back(std::move(now));
  }
  check_dims(decided, sizes);
  return open;
}

/// Leaves the bodies of loops as they are.
Graph with_sizes_around(const Graph& graph, const DimBindings& sizes) {
  GraphBuilder builder(graph.name);
  const std::vector<DimCheck> open = open_checks(graph, sizes);
  Rebuilder to(builder, graph);
  for (const ValueId id : all_values(graph))
    to.set(id, builder.copy(with_sizes(graph[id], sizes), to.operands(graph[id])));
  for (const Output& output : graph.outputs) builder.output(output.name, to[output.value]);
  for (const Update& update : graph.updates) builder.update(to[update.state], to[update.value]);
  for (const DimCheck& check : open) {
    const auto& made = builder.graph().checks;
    if (std::none_of(made.begin(), made.end(), [&](const DimCheck& other) { return same_check(check, other); }))
      builder.add_checks({&check, 1});
  }
  return builder.finish();
}

}  // namespace

Graph with_sizes(const Graph& graph, const DimBindings& sizes) {
  const auto change = [&](const Graph& each) { return with_sizes_around(each, sizes); };
  return change(on_bodies(graph, change));
}

}  // namespace lathe::ir
