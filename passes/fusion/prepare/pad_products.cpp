#include "passes/fusion/prepare/pad_products.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/kernel/intrinsics/gpu/async_copy.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/analysis/users.h"
#include "passes/fusion/affine.h"
#include "passes/fusion/fusion.h"
#include "passes/fusion/prepare/longer_rows.h"
#include "passes/transforms/dce.h"

namespace lathe {

using namespace ir;

namespace {

/// Returns the number of elements per copy.
std::int64_t chunk_of(DType dtype) {
  return kernel::async_copy_bytes / static_cast<std::int64_t>(size_in_bytes(dtype));
}

std::int64_t whole_chunks(std::int64_t size, DType dtype) {
  const std::int64_t chunk = chunk_of(dtype);
  return (size + chunk - 1) / chunk * chunk;
}

bool is_16_bits(const Node& node) { return node.type.dtype == bf16 || node.type.dtype == f16; }

/// Whether a value is an argument of the graph, plain or rounded.
bool is_argument(const Graph& graph, ValueId id) {
  while (!graph[id].op->as<Argument>()) {
    if (!is_alias(graph[id]) && graph[id].op != &ops::cast) return false;
    id = graph[id].operands[0];
  }
  return true;
}

class Padding {
 public:
  Padding(const Graph& graph, const PaddingLimits& limits)
      : graph_(graph),
        limits_(limits),
        longer_(graph),
        users_(graph),
        operand_(graph, Pad::none),
        columns_(graph, false),
        kept_(graph, false) {
    for (const ValueId id : graph.results()) kept_[id] = true;
    for (const ValueId id : all_values(graph)) look_at(id);
  }

  bool any() const {
    return std::any_of(operand_.begin(), operand_.end(), [](Pad pad) { return pad != Pad::none; }) ||
           std::find(columns_.begin(), columns_.end(), true) != columns_.end();
  }

  Graph run() {
    GraphBuilder builder(graph_.name);
    builder.add_checks(graph_.checks);  // first, because they refer to the ops that the user wrote
    Rebuilder to(builder, graph_);
    for (const ValueId id : all_values(graph_)) {
      const GraphBuilder::At here(builder, graph_[id].loc);
      std::optional<Value> now;
      if (operand_[id] == Pad::computed) {
        now = cut(id, computed(to, id));
      } else if (graph_[id].op->as<Contraction>()) {
        now = product(to, id);
      }
      to.set(id, now ? *now : to.copy(graph_[id]));
    }
    to.close();
    return dce(builder.finish());
  }

 private:
  /// How an operand gets rows of whole chunks: it is copied, or it is computed with longer rows.
  enum class Pad { none, copied, computed };

  void look_at(ValueId id) {
    const Node& node = graph_[id];
    const bool fits = is_16_bits(node) || node.type.dtype == f32;
    if (!node.op->as<Contraction>() || !fits) return;
    const ContractionRoles roles = node.op->as<Contraction>()->roles(node);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string &own = i == 0 ? roles.lhs : roles.rhs, &other = i == 0 ? roles.rhs : roles.lhs;
      const ValueId operand = node.operands[i];
      if (graph_[operand].type.dtype != node.type.dtype || !is_argument(graph_, node.operands[1 - i])) continue;
      if (!own.empty() && roles.contracted().find(own.back()) != std::string::npos && is_odd(operand) &&
          is_long_beside(node, roles, other, own.back(), limits_.padded_rows))
        pad_operand(operand);
      if (!roles.out.empty() && roles.batch().empty() && own.find(roles.out.back()) == std::string::npos &&
          is_odd(id) && is_long_beside(node, roles, own, roles.contracted(), limits_.padded_columns_rows) &&
          is_folded(id)) {
        columns_[id] = true;
        longer_.add(id);
      }
    }
  }

  void pad_operand(ValueId operand) {
    if (longer_.reaches(operand) && !kept_[operand])
      operand_[operand] = Pad::computed;
    else if (is_16_bits(graph_[operand]))
      operand_[operand] = Pad::copied;
  }

  /// Whether rows have a known length that is large and not a whole number of chunks.
  bool is_odd(ValueId id) const {
    const auto size = row_of(id);
    return size && *size > limits_.unpadded_depth && whole_chunks(*size, graph_[id].type.dtype) != *size;
  }
  std::optional<std::int64_t> row_of(ValueId id) const {
    const Shape& shape = graph_[id].type.shape;
    return shape.rank() == 0 ? std::nullopt : shape[shape.rank() - 1].value();
  }
  std::int64_t longer_row_of(ValueId id) const { return whole_chunks(*row_of(id), graph_[id].type.dtype); }

  /// Whether an operand with these labels has many rows, apart from the dims in `others`.
  bool is_long_beside(const Node& product, const ContractionRoles& roles, std::string labels,
                      const std::string& others, std::int64_t many) const {
    std::erase_if(labels, [&](char label) { return others.find(label) != std::string::npos; });
    return roles.size_of(labels, graph_, product).value().value_or(many) >= many;
  }
  bool is_long_beside(const Node& product, const ContractionRoles& roles, std::string labels, char summed,
                      std::int64_t many) const {
    return is_long_beside(product, roles, std::move(labels), std::string(1, summed), many);
  }

  /// Whether a reduction folds rows of values that depend on this one, as a loss does, and neither it nor a cast of
  /// it is returned. Its rows can then be read in place.
  bool is_folded(ValueId id) const {
    bool folded = false;
    std::set<int> seen = {id.index};
    std::vector<ValueId> work = {id};
    while (!work.empty()) {
      const ValueId value = work.back();
      work.pop_back();
      const int last = graph_[value].type.rank() - 1;
      const bool casts = value == id || graph_[value].op == &ops::cast || is_alias(graph_[value]);
      if (casts && kept_[value]) return false;
      for (const ValueId user : users_[value]) {
        const Node& reader = graph_[user];
        if (reader.op->as<Reduce>()) {
          const std::vector<int> dims = reduced_dims(graph_, reader);
          folded = folded || std::find(dims.begin(), dims.end(), last) != dims.end();
        } else if (reader.op->as<Elementwise>() || (casts && is_alias(reader))) {
          if (seen.insert(user.index).second) work.push_back(user);
        }
      }
    }
    return folded;
  }

  /// Returns the first elements of longer rows.
  Value cut(ValueId id, const Value& longer) const {
    return slice(longer, longer.rank() - 1, 0, graph_[id].type.shape[longer.rank() - 1]);
  }

  /// Computes an operand with longer rows that end in zeros.
  Value computed(const Rebuilder& to, ValueId id) {
    GraphBuilder& b = to.builder();
    const Value all = longer_.build(to, id, longer_row_of(id)), row = iota(b, {Dim(longer_row_of(id))}, 0, i32);
    const Value zeroed = where(lt(row, static_cast<double>(*row_of(id))), all, 0);
    zeroed_.insert_or_assign(id.index, zeroed);
    longer_.set(id, zeroed);
    return zeroed;
  }

  std::optional<Value> product(const Rebuilder& to, ValueId id) {
    const Node& node = graph_[id];
    const ContractionRoles roles = node.op->as<Contraction>()->roles(node);
    std::map<char, std::int64_t> sizes;  // of padded dims
    for (std::size_t i = 0; i < 2; ++i)
      if (operand_[node.operands[i]] != Pad::none)
        sizes[(i == 0 ? roles.lhs : roles.rhs).back()] = longer_row_of(node.operands[i]);
    if (columns_[id]) sizes[roles.out.back()] = longer_row_of(id);
    if (sizes.empty()) return std::nullopt;
    Value result =
        contract(padded(to, node.operands[0], roles.lhs, sizes), padded(to, node.operands[1], roles.rhs, sizes),
                 roles.lhs + "," + roles.rhs + "->" + roles.out);
    if (columns_[id]) longer_.set(id, result);
    for (int d = 0; d < node.type.rank(); ++d)
      if (sizes.contains(roles.out[d])) result = slice(result, d, 0, node.type.shape[d]);
    return result;
  }

  Value padded(const Rebuilder& to, ValueId operand, const std::string& labels,
               const std::map<char, std::int64_t>& sizes) const {
    const auto zeroed = zeroed_.find(operand.index);
    Value value = zeroed != zeroed_.end() ? zeroed->second : to[operand];
    for (int d = 0; d < value.rank(); ++d) {
      const auto size = sizes.find(labels[d]);
      if (size == sizes.end()) continue;
      if (const std::int64_t now = *value.type().shape[d].value(); now < size->second)
        value = pad(value, d, 0, size->second - now);
    }
    return value;
  }

  const Graph& graph_;
  const PaddingLimits& limits_;
  LongerRows longer_;
  Users users_;
  NodeMap<Pad> operand_;         ///< how the rows of an operand are padded
  NodeMap<bool> columns_;        ///< whether a matmul has padded columns
  NodeMap<bool> kept_;           ///< whether it is an output or an update
  std::map<int, Value> zeroed_;  ///< operands with longer rows, by old node
};

}  // namespace

Graph pad_products(const Graph& graph, const PaddingLimits& limits) {
  Padding pads(graph, limits);
  return pads.any() ? pads.run() : graph;
}

}  // namespace lathe
