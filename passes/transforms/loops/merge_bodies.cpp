#include "passes/transforms/loops/merge_bodies.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "ir/tensor/loop_views.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

std::string free_output(const Graph& graph, const std::string& name) {
  const auto taken = [&](const std::string& wanted) {
    return std::ranges::find(graph.outputs, wanted, &Output::name) != graph.outputs.end();
  };
  std::string found = name;
  for (int number = 2; taken(found); ++number) found = fmt::format("{}.{}", name, number);
  return found;
}

}  // namespace

std::optional<MergedBodies> merge_bodies(const Body& first, const Body& second) {
  const Graph &one = first.graph(), &two = second.graph();
  GraphBuilder builder{Graph(one)};
  Rebuilder to(builder, two);
  const std::vector<ValueId> of_one = one.arguments(), of_two = two.arguments();
  if (of_one.size() != of_two.size() || one.updates.size() != two.updates.size()) return std::nullopt;
  for (std::size_t i = 0; i < of_two.size(); ++i) {
    if (!(one[of_one[i]].type == two[of_two[i]].type)) return std::nullopt;
    to.set(of_two[i], Value(builder, of_one[i]));
  }
  to.copy_rest();
  for (int i = 0; i < static_cast<int>(one.updates.size()); ++i)
    if (to[next_of(two, i)].id() != next_of(one, i)) return std::nullopt;
  std::vector<int> outputs;
  for (const Output& output : two.outputs) {
    const ValueId value = to[output.value].id();
    const auto& all = builder.graph().outputs;
    const auto known = std::ranges::find(all, value, &Output::value);
    outputs.push_back(static_cast<int>(known - all.begin()));
    if (known == all.end()) builder.output(free_output(builder.graph(), output.name), Value(builder, value));
  }
  builder.add_checks(two.checks);
  return MergedBodies{Body(builder.finish()), std::move(outputs)};
}

}  // namespace lathe::ir
