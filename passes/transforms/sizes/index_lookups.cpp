#include "passes/transforms/sizes/index_lookups.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/lookups.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/tensor/analysis/ancestors.h"
#include "ir/tensor/analysis/walk.h"
#include "ir/tensor/interpret/interpreter.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"

namespace lathe::ir {

namespace {

/// Whether each element of the result is read from a few elements of the operands.
bool only_reads(const Node& node) {
  if (node.op->as<Argument>() || node.op->as<Elementwise>() || node.op->as<View>()) return true;
  if (node.op->as<Composite>()) return is_integer(node.type.dtype) || node.type.dtype == boolean;
  const auto* custom = node.op->as<Custom>();
  if (!custom) return false;
  switch (custom->kind) {
    case CustomKind::constant:
    case CustomKind::iota:
    case CustomKind::gather:
    case CustomKind::concat:
    case CustomKind::pad: return true;
    case CustomKind::random:
    case CustomKind::random_at:
    case CustomKind::collective:
    case CustomKind::scatter_add:
    case CustomKind::update_rows:
    case CustomKind::cumsum:
    case CustomKind::linear_recurrence:
    case CustomKind::argsort:
    case CustomKind::top_k:
    case CustomKind::cholesky:
    case CustomKind::solve_triangular:
    case CustomKind::orthonormal_basis:
    case CustomKind::eigenvectors:
    case CustomKind::grouped_matmul:
    case CustomKind::segment_outer:
    case CustomKind::view_as_complex:
    case CustomKind::view_as_real: break;
  }
  return false;
}

/// By node: whether it and everything that it depends on only read elements; `changing` arguments are excluded.
NodeMap<bool> readable_nodes(const Graph& graph, const NodeMap<bool>& changing) {
  NodeMap<bool> readable(graph);
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    readable[id] =
        !changing[id] && only_reads(node) &&
        std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) { return readable[operand]; });
  }
  return readable;
}

/// Rebuilds the lookups of a graph, with the computation of their indices, in primitives.
class LookupFinder {
 public:
  explicit LookupFinder(const Graph& from) : from_(from), builder_(from.name), to_(builder_, from) {}

  IndexLookups run() {
    NodeMap<bool> changing(from_);
    for (const Update& update : from_.updates) changing[update.state] = true;
    const NodeMap<bool> readable = readable_nodes(from_, changing);
    const NodeMap<bool> live = needed_nodes(from_);
    NodeMap<bool> needed(from_);
    for (const ValueId id : all_values(from_))
      if (const Node& node = from_[id]; live[id] && may_look_up(node))
        for (const ValueId operand : node.operands)
          if (is_integer(from_[operand].type.dtype) && readable[operand]) needed[operand] = true;
    mark_ancestors(from_, needed);
    for (const ValueId id : all_values(from_)) {
      const Node& node = from_[id];
      if (!needed[id] && !(live[id] && may_look_up(node))) continue;
      for (const ValueId operand : node.operands)
        if (!to_.has(operand)) to_.set(operand, unknown(operand));
      user_ = &node;
      to_.set(id, built(to_, node));
    }
    return extracted();
  }

 private:
  /// Whether a node is a lookup, or a composite that may contain one.
  bool may_look_up(const Node& node) const {
    return is_lookup(*node.op) ||
           (node.op->as<Composite>() && std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
              return is_integer(from_[operand].type.dtype);
            }));
  }

  /// Returns an argument that replaces a value that is not computed again.
  Value unknown(ValueId id) {
    const TensorType& type = from_[id].type;
    const Value value = builder_.argument(ops::input, fmt::format("%{}", id.index), type.dtype, type.shape);
    unknown_.push_back(value.id());
    return value;
  }

  /// Returns a node with its mapped operands, in primitives; records the lookups that it adds.
  Value built(const Rebuilder& from, const Node& node) {
    const GraphBuilder::At at(builder_, node.loc);
    if (const auto* composite = node.op->as<Composite>()) {
      GraphBuilder inner(node.op->name.value);
      const GraphBuilder::At inner_at(inner, node.loc);
      const std::vector<Value> operands = from.operands(node);
      std::vector<Value> inputs;
      for (const Value& operand : operands)
        inputs.push_back(
            inner.argument(ops::input, fmt::format("operand{}", inputs.size()), operand.dtype(), operand.shape()));
      const Value result = composite->expand(inner, node, inputs);
      Rebuilder to(builder_, inner.graph());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (operands[i].node().name.empty()) unnamed_.push_back(operands[i].id());
        to.set(inputs[i].id(), operands[i]);  // sets its name
      }
      for (const ValueId id : all_values(inner.graph()))
        if (!to.has(id)) to.set(id, built(to, inner.graph()[id]));
      return to[result.id()];
    }
    const int before = builder_.graph().size();
    const Value value = from.copy(node);
    if (builder_.graph().size() == before) return value;
    if (const auto lookup = lookup_of(builder_.graph(), value.node()))
      lookups_.push_back({.op = std::string(user_->op->name.value),
                          .loc = node.loc,
                          .size = lookup->size,
                          .index = value.node().operands[lookup->indices]});
    return value;
  }

  /// Returns the indices that can be computed, and the graph that computes them.
  IndexLookups extracted() {
    Graph all = builder_.finish();
    for (const ValueId id : unnamed_) all[id].name.clear();
    NodeMap<bool> changing(all), needed(all);
    for (const ValueId id : unknown_) changing[id] = true;
    const NodeMap<bool> readable = readable_nodes(all, changing);
    for (IndexLookup& lookup : lookups_) {
      if (!readable[lookup.index]) lookup.index = {};
      if (lookup.index.valid()) needed[lookup.index] = true;
    }
    mark_ancestors(all, needed);
    GraphBuilder builder(all.name);
    Rebuilder to(builder, all);
    for (const ValueId id : all_values(all))
      if (needed[id]) to.set(id, to.copy(all[id]));
    for (IndexLookup& lookup : lookups_)
      if (lookup.index.valid()) lookup.index = to[lookup.index].id();
    return {builder.finish(), std::move(lookups_)};
  }

  const Graph& from_;
  GraphBuilder builder_;
  Rebuilder to_;
  const Node* user_ = nullptr;  ///< the node of the user's graph that is being built
  std::vector<ValueId> unknown_, unnamed_;
  std::vector<IndexLookup> lookups_;
};

/// One element of one value.
struct Element {
  ValueId value;
  Sizes at;
};

/// Follows an element back to where its number was written.
class Tracer {
 public:
  Tracer(const Graph& graph, const Tensors& arguments, const DimBindings& dims)
      : graph_(graph), arguments_(arguments), dims_(dims) {}

  Element source(Element element) const {
    for (;;) {
      const Node& node = graph_[element.value];
      const auto* elementwise = node.op->as<Elementwise>();
      if (node.op->as<View>()) {
        element = viewed(node, element.at);
      } else if (elementwise && elementwise->op == ScalarOp::cast) {
        element = operand(node, 0, element.at);
      } else if (elementwise && elementwise->op == ScalarOp::select) {
        element = operand(node, is_true(operand(node, 0, element.at)) ? 1 : 2, element.at);
      } else if (node.op == &ops::gather && graph_[node.operands[0]].op == &ops::iota) {
        element = operand(node, 1, element.at);  // an index that was only checked
      } else {
        return element;
      }
    }
  }

  Sizes sizes_of(ValueId id) const { return graph_[id].type.shape.evaluate(dims_); }

 private:
  /// Returns the element of an operand that is broadcast to the node's shape.
  Element operand(const Node& node, std::size_t i, const Sizes& at) const {
    const ValueId id = node.operands[i];
    const Sizes sizes = sizes_of(id);
    Sizes there(at.end() - static_cast<std::ptrdiff_t>(sizes.size()), at.end());
    for (std::size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] == 1) there[d] = 0;
    return {id, std::move(there)};
  }

  Element viewed(const Node& node, const Sizes& at) const {
    const ValueId id = node.operands[0];
    const IndexMap map = node.op->as<View>()->map(graph_, node);
    if (map.reshape) return {id, position_of(sizes_of(id), flat(node.type.shape.evaluate(dims_), at))};
    Sizes there;
    for (const IndexMap::Component& part : map.components) {
      there.push_back(part.offset.evaluate(dims_));
      part.each_term([&](int dim, std::int64_t scale) { there.back() += scale * at[dim]; });
    }
    return {id, std::move(there)};
  }

  static std::int64_t flat(const Sizes& sizes, const Sizes& at) {
    const Sizes strides = dense_strides(sizes);
    std::int64_t sum = 0;
    for (std::size_t d = 0; d < at.size(); ++d) sum += strides[d] * at[d];
    return sum;
  }

  bool is_true(const Element& element) const {
    const HostTensor value =
        interpret_values(graph_, arguments_, std::span(&element.value, 1), {.dims = dims_}).front();
    return value.get_int(flat(value.shape(), element.at)) != 0;
  }

  const Graph& graph_;
  const Tensors& arguments_;
  const DimBindings& dims_;
};

/// "the input targets", "the add at model.cpp:3".
std::string describe(const Node& node) {
  const std::string_view op = node.op->name.value;
  if (node.op->as<Argument>()) return fmt::format("the {} {}", op, node.name);
  return node.name.empty() ? fmt::format("the {} at {}", op, node.loc.place()) : node.name;
}

[[noreturn]] void fail(const IndexLookup& lookup, std::int64_t size, const std::string& message) {
  const bool loss = lookup.op == "cross_entropy";
  const std::string range = size > 0 ? fmt::format("use 0 to {}", size - 1) : std::string("the dim is empty");
  throw UserError(
      lookup.loc, lookup.op,
      fmt::format("{} is out of range for {} {}", message, loss ? "the number of classes," : "a dim of size", size),
      "index_range", loss ? range + ", and ignore_index for targets that do not count" : range);
}

}  // namespace

IndexLookups index_lookups(const Graph& graph) { return LookupFinder(graph).run(); }

void throw_index_error(const IndexLookups& lookups, const Tensors& arguments, const DimBindings& dims) {
  Tensors known;
  for (const ValueId id : lookups.graph.arguments()) {
    const std::string& name = lookups.graph[id].name;
    known.emplace(name, arguments.at(name));
  }
  for (const IndexLookup& lookup : lookups.lookups) {
    if (!lookup.index.valid()) continue;
    const std::int64_t size = lookup.size.evaluate(dims);
    const HostTensor indices =
        interpret_values(lookups.graph, known, std::span(&lookup.index, 1), {.dims = dims}).front();
    for (std::int64_t i = 0; i < indices.numel(); ++i) {
      const std::int64_t index = indices.get_int(i);
      if (index >= 0 && index < size) continue;
      const Tracer tracer(lookups.graph, known, dims);
      const Element source = tracer.source({lookup.index, position_of(indices.shape(), i)});
      fail(lookup, size,
           fmt::format("index {} at {} of {}", index, shape_to_string(source.at),
                       describe(lookups.graph[source.value])));
    }
  }
  const IndexLookup* left_out = nullptr;
  for (const IndexLookup& lookup : lookups.lookups) {
    if (lookup.index.valid()) continue;
    if (left_out && !(left_out->loc == lookup.loc)) return;
    if (!left_out) left_out = &lookup;
  }
  if (left_out) fail(*left_out, left_out->size.evaluate(dims), "an index");
}

}  // namespace lathe::ir
