#include "passes/fusion/prepare/prepare_for_fusion.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/loop_views.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/prepare/split_batches.h"
#include "passes/fusion/prepare/store_transposed.h"
#include "passes/transforms/canonicalize/canonicalize_rules.h"
#include "passes/transforms/rebuild.h"
#include "passes/transforms/sizes/flat_collectives.h"

namespace lathe {

using namespace ir;

namespace {

/// Returns the dim along which a reduction ran whose result the value uses pointwise, such as the columns for softmax
/// weights; -1 if there is no such dim.
int reduced_along(const Graph& graph, ValueId value) {
  const Shape& shape = graph[value].type.shape;
  std::vector<ValueId> work = {value};
  for (std::size_t i = 0; i < work.size() && i < 32; ++i) {
    const Node& node = graph[work[i]];
    const bool alias = canonical::keeps_order(*node.op) || node.op == &ops::expand;
    if (node.op->as<Elementwise>() || alias) {
      work.insert(work.end(), node.operands.begin(), node.operands.end());
    } else if (node.op->as<Reduce>() && graph[node.operands[0]].type.shape == shape) {
      const std::vector<int> dims = reduced_dims(graph, node);
      if (dims.size() == 1 && !shape[dims[0]].is(1)) return dims[0];
    }
  }
  return -1;
}

/// The dims to fold first: that along which the rows of scores run, else the trailing ones, or the last alone where
/// everything goes; empty where one step does.
std::vector<std::int64_t> first_step(const Graph& graph, const Node& reduce) {
  const Shape& shape = graph[reduce.operands[0]].type.shape;
  const std::vector<int> dims = reduced_dims(graph, reduce);
  const auto folded = [&](int d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
  const auto others = std::count_if(dims.begin(), dims.end(), [&](int d) { return !shape[d].is(1); }) - 1;
  if (const int columns = others > 0 ? reduced_along(graph, reduce.operands[0]) : -1; columns >= 0 && folded(columns))
    return {columns};
  std::vector<std::int64_t> trailing;
  int real = 0, real_folded = 0;
  for (int d = shape.rank() - 1; d >= 0; --d)
    if (!shape[d].is(1)) {
      ++real;
      real_folded += folded(d) ? 1 : 0;
    }
  for (int d = shape.rank() - 1; d >= 0; --d) {
    if (shape[d].is(1)) continue;
    if (!folded(d)) break;
    trailing.push_back(d);
    if (real_folded == real) break;
  }
  if (trailing.empty() || static_cast<int>(trailing.size()) == real_folded) return {};
  return trailing;
}

/// Folds in steps that keep every dim, then drops the folded ones.
Value fold(const Value& operand, const Node& reduce, const Graph& graph, const std::vector<std::int64_t>& first) {
  GraphBuilder& b = operand.builder();
  const auto step = [&](const Value& value, std::vector<std::int64_t> dims, bool keep) {
    Attributes attrs;
    attrs.set("dims", std::move(dims));
    attrs.set("keepdim", keep);
    return b.add(*reduce.op, {value}, std::move(attrs));
  };
  std::vector<std::int64_t> rest;
  for (const int d : reduced_dims(graph, reduce)) rest.push_back(d);
  return step(step(operand, first, true), rest, reduce.attrs.get<bool>("keepdim"));
}

/// Whether every dim that the reduction folds has one element: then it changes nothing but the shape.
bool folds_nothing(const Graph& graph, const Node& reduce) {
  const auto dims = reduced_dims(graph, reduce);
  return std::all_of(dims.begin(), dims.end(), [&](int d) { return graph[reduce.operands[0]].type.shape[d].is(1); });
}

Graph split_once(const Graph& graph) {
  return rebuild(graph,
                 [&](GraphBuilder&, const Node& node, std::span<const Value> operands) -> std::optional<Value> {
                   if (!node.op->as<Reduce>()) return std::nullopt;
                   if (folds_nothing(graph, node)) {
                     const bool dense = operands[0].type().is_contiguous();
                     return view(dense ? operands[0] : contiguous(operands[0]), node.type.shape);
                   }
                   const auto first = first_step(graph, node);
                   if (first.empty()) return std::nullopt;
                   return fold(operands[0], node, graph, first);
                 });
}

constexpr std::size_t most_parts = 16;  // of a concat: a kernel asks for each element which of them has it

/// Whether the last dim that has not just one element is folded.
bool folds_last_dim(const Graph& graph, const Node& reduce) {
  const Shape& shape = graph[reduce.operands[0]].type.shape;
  const std::vector<int> dims = reduced_dims(graph, reduce);
  int last = shape.rank() - 1;
  while (last >= 0 && shape[last].is(1)) --last;
  return std::find(dims.begin(), dims.end(), last) != dims.end();
}

bool is_computed(const Node& node) {
  return !is_alias(node) && !node.op->as<Argument>() && node.op != &ops::constant;
}

/// Returns the first result that is not a computed node, or that occurs twice among the results.
std::optional<ValueId> result_without_node(const Graph& graph) {
  std::set<ValueId> taken;
  for (const ValueId id : graph.results())
    if (!is_computed(graph[id]) || !taken.insert(id).second) return id;
  return std::nullopt;
}

}  // namespace

Graph split_reductions(Graph graph) {
  const auto is_split = [&](const Node& node) {
    return node.op->as<Reduce>() && (folds_nothing(graph, node) || !first_step(graph, node).empty());
  };
  while (std::any_of(graph.nodes.begin(), graph.nodes.end(), is_split)) graph = split_once(graph);
  return graph;
}

Graph split_concats(Graph graph) {
  const auto is_long = [](const Node& node) { return node.op == &ops::concat && node.operands.size() > most_parts; };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_long)) return graph;
  return rebuild(graph,
                 [&](GraphBuilder&, const Node& node, std::span<const Value> operands) -> std::optional<Value> {
                   if (!is_long(node)) return std::nullopt;
                   const auto dim = static_cast<int>(node.attrs.get<std::int64_t>("dim"));
                   std::vector<Value> parts(operands.begin(), operands.end());
                   while (parts.size() > 1) {
                     std::vector<Value> joined;
                     for (std::size_t i = 0; i < parts.size(); i += most_parts) {
                       const auto some = std::span(parts).subspan(i, std::min(most_parts, parts.size() - i));
                       joined.push_back(some.size() == 1 ? some[0] : concat(some, dim));
                     }
                     parts = std::move(joined);
                   }
                   return parts[0];
                 });
}

Graph store_tables(Graph graph) {
  const auto lacks_table = [&](const Node& node) {
    if (!reads_by_address(node)) return false;
    return is_splat(graph[through_aliases(graph, node.operands[0])]);
  };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), lacks_table)) return graph;
  return rebuild(graph, [&](GraphBuilder& b, const Node& node, std::span<const Value> operands) {
    std::optional<Value> result;
    if (!lacks_table(node)) return result;
    std::vector<Value> now(operands.begin(), operands.end());
    now[0] = b.add(ops::contiguous, {now[0]});
    result = b.add(*node.op, now, node.attrs);
    return result;
  });
}

Graph store_loop_operands(Graph graph) {
  // Views that keep the order of elements share the memory of what they view.
  const auto is_dense = [&](const Graph& of, ValueId id) {
    while (is_alias(of[id]) && canonical::keeps_order(*of[id].op)) id = of[id].operands[0];
    return !is_alias(of[id]) && !is_splat(of[id]);
  };
  const auto lacks_memory = [&](const Node& node) {
    return is_loop(node) &&
           std::ranges::any_of(node.operands, [&](ValueId operand) { return !is_dense(graph, operand); });
  };
  if (std::ranges::none_of(graph.nodes, lacks_memory)) return graph;
  return rebuild(graph,
                 [&](GraphBuilder& b, const Node& node, std::span<const Value> operands) -> std::optional<Value> {
                   if (!lacks_memory(node)) return std::nullopt;
                   std::vector<Value> now(operands.begin(), operands.end());
                   for (std::size_t i = 0; i < now.size(); ++i)
                     if (!is_dense(graph, node.operands[i])) now[i] = b.add(ops::contiguous, {now[i]});
                   return b.add(*node.op, now, node.attrs);
                 });
}

Graph own_results(Graph graph) {
  if (!result_without_node(graph)) return graph;
  GraphBuilder builder(std::move(graph));
  std::set<ValueId> taken;
  const auto own = [&](ValueId id) {
    Value value(builder, id);
    while (!is_computed(value.node()) || !taken.insert(value.id()).second) {
      const GraphBuilder::At at(builder, value.node().loc);
      value = builder.add(ops::contiguous, {value});
    }
    return value.id();
  };
  std::vector<Output> outputs = builder.graph().outputs;
  std::vector<Update> updates = builder.graph().updates;
  for (Output& output : outputs) output.value = own(output.value);
  for (Update& update : updates) update.value = own(update.value);
  Graph result = builder.finish();
  result.outputs = std::move(outputs);
  result.updates = std::move(updates);
  return result;
}

void verify_prepared(const Graph& graph) {
  const auto fail = [&](ValueId id, std::string_view what) {
    const Node& node = graph[id];
    throw InternalError(fmt::format("plan_fusion of @{}: %{} {} at {} {}", graph.name, id.index, node.op->name.value,
                                    node.loc.to_string(), what));
  };
  if (const auto id = result_without_node(graph)) fail(*id, "is a result without a node of its own");
  for (const ValueId id : all_values(graph))
    if (graph[id].op->as<Reduce>() && !folds_trailing_dims(graph, graph[id]) && folds_last_dim(graph, graph[id]))
      fail(id, "folds trailing dims together with others");
}

Graph prepare_for_fusion(const Graph& graph) {
  Graph prepared = split_concats(split_batches(flat_collectives(graph)));
  prepared = store_transposed(split_reductions(std::move(prepared)));
  return own_results(store_loop_operands(store_tables(std::move(prepared))));
}

}  // namespace lathe
