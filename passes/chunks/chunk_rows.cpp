#include "passes/chunks/chunk_rows.h"

#include <algorithm>
#include <set>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/view_rules.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/rebuild.h"

namespace lathe {

using namespace ir;

namespace {

/// The members of one region, computed for some of the rows.
class Chunk {
 public:
  Chunk(const Rebuilder& to, const RowRegion& region, const Dim& first, const Dim& last)
      : to_(to), graph_(to.from()), region_(region), first_(first), last_(last) {}

  Value operator[](ValueId member) const { return made_.at(member); }

  /// Members must be made in order.
  void make(ValueId id) { made_.emplace(id, member(id, region_.members.at(id))); }

 private:
  Value member(ValueId id, const RowRegion::Member& member) {
    const Node& node = graph_[id];
    std::vector<Value> operands;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId operand = node.operands[i];
      const auto known = made_.find(operand);
      const auto& across = member.columns;
      operands.push_back(known != made_.end()
                             ? known->second
                             : part(operand, member.rows.operands[i], across ? across->operands[i] : std::nullopt));
    }
    return with_operands(node, std::move(operands), member.rows.result);
  }

  /// A value whose rows are being computed.
  struct Open {
    ValueId id;
    RowAxis rows;
    RowsThrough down, across;
    std::vector<Value> operands = {};  ///< those that exist already
  };

  /// Returns the rows of a value that does not depend on the product. With columns too, it is as large as the
  /// product; its point-wise nodes are computed for these rows alone.
  Value part(ValueId id, const std::optional<RowAxis>& rows, const std::optional<RowAxis>& columns) {
    std::vector<Open> open;
    std::optional<Value> value = begin(id, rows, columns, open);
    while (!open.empty()) {
      Open& now = open.back();
      if (value) now.operands.push_back(*value);
      const Node& node = graph_[now.id];
      if (const std::size_t i = now.operands.size(); i < node.operands.size()) {
        value = begin(node.operands[i], now.down.operands[i], now.across.operands[i], open);
        continue;
      }
      value = with_operands(node, std::move(now.operands), now.rows);
      made_.emplace(now.id, *value);
      open.pop_back();
    }
    return *value;
  }

  /// Returns the rows of a value if its operands need not be computed for them; otherwise opens it and returns
  /// nothing.
  std::optional<Value> begin(ValueId id, const std::optional<RowAxis>& rows, const std::optional<RowAxis>& columns,
                             std::vector<Open>& open) {
    if (!rows) return to_[id];
    if (const auto known = made_.find(id); known != made_.end()) return known->second;
    const Node& node = graph_[id];
    const GraphBuilder::At at(to_.builder(), node.loc);
    const bool point_wise = node.op->as<Elementwise>() || node.op == &ops::expand;
    const auto down = columns && point_wise ? rows_through(graph_, node, -1, *rows) : std::nullopt,
               across = down ? rows_through(graph_, node, -1, *columns) : std::nullopt;
    if (!across) return slice(to_[id], rows->dim, first_ * rows->unit, last_ * rows->unit);
    open.push_back({id, *rows, *down, *across});
    return std::nullopt;
  }

  /// Adds the node for rows of its operands; `rows`: their position in its result.
  Value with_operands(const Node& node, std::vector<Value> operands, const std::optional<RowAxis>& rows) const {
    const GraphBuilder::At at(to_.builder(), node.loc);
    Attributes attrs = node.attrs;
    if (rows && attrs.find("shape")) {
      Shape shape = node.type.shape;
      shape.set(rows->dim, (last_ - first_) * rows->unit);
      attrs.set("shape", shape);
      if (node.op == &ops::view && !rules::view_strides(operands[0].type(), shape))
        operands[0] = contiguous(operands[0]);
    }
    return to_.builder().add(*node.op, operands, std::move(attrs));
  }

  const Rebuilder& to_;
  const Graph& graph_;
  const RowRegion& region_;
  const Dim first_, last_;
  std::map<ValueId, Value> made_;
};

class Chunker {
 public:
  Chunker(const Graph& graph, std::vector<ChunkedRegion> regions)
      : graph_(graph), readers_(graph), regions_(std::move(regions)), builder_(graph.name), to_(builder_, graph) {
    for (std::size_t r = 0; r < regions_.size(); ++r)
      for (const auto& [id, member] : regions_[r].region.members) region_of_[id] = r;
  }

  Graph run() {
    builder_.add_checks(graph_.checks);
    for (const ValueId id : graph_.arguments()) to_.set(id, to_.copy(graph_[id]));
    for (const ValueId id : all_values(graph_)) bring(id);
    to_.close();
    return dce(builder_.finish());
  }

 private:
  /// Values to emit first, and the region to emit after them.
  struct Wanted {
    std::vector<ValueId> missing;  ///< in order
    std::size_t next = 0;
    const ChunkedRegion* then = nullptr;
  };

  Wanted missing_of(std::vector<ValueId> work, const ChunkedRegion* then) const {
    std::set<ValueId> missing;
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      if (to_.has(id) || !missing.insert(id).second || region_of_.contains(id)) continue;
      work.insert(work.end(), graph_[id].operands.begin(), graph_[id].operands.end());
    }
    return {{missing.begin(), missing.end()}, 0, then};
  }

  /// Emits `value` and its operands, possibly before their turn. A region is emitted as a unit, at its matmul.
  void bring(ValueId value) {
    std::vector<Wanted> open = {missing_of({value}, nullptr)};
    while (!open.empty()) {
      Wanted& now = open.back();
      if (now.next == now.missing.size()) {
        if (now.then) make(*now.then);
        open.pop_back();
        continue;
      }
      const ValueId id = now.missing[now.next++];
      const auto at = region_of_.find(id);
      if (at == region_of_.end())
        to_.set(id, to_.copy(graph_[id]));
      else if (done_.insert(at->second).second)
        open.push_back(missing_of(around(regions_[at->second].region), &regions_[at->second]));
    }
  }

  /// Returns the values that the members of a region read from outside.
  std::vector<ValueId> around(const RowRegion& region) const {
    std::vector<ValueId> found;
    for (const auto& [id, member] : region.members)
      for (const ValueId operand : graph_[id].operands)
        if (!region.members.contains(operand)) found.push_back(operand);
    return found;
  }

  void make(const ChunkedRegion& chunked) {
    const RowRegion& region = chunked.region;
    const Dim size = graph_[region.product].type.shape[chunked.rows].unnamed();
    std::map<ValueId, std::vector<Value>> rows;
    std::map<ValueId, Value> sums;
    for (std::int64_t c = 0; c < chunked.chunks; ++c) {
      Chunk chunk(to_, region, bound(size, c, chunked.chunks), bound(size, c + 1, chunked.chunks));
      for (const auto& [id, member] : region.members) {
        chunk.make(id);
        if (!region.is_result(id, readers_)) continue;
        if (member.rows.result)
          rows[id].push_back(chunk[id]);
        else if (const auto [sum, fresh] = sums.try_emplace(id, chunk[id]); !fresh)
          sum->second = joined(id, chunk[id], sum->second);
      }
    }
    for (const auto& [id, parts] : rows) {
      const GraphBuilder::At at(builder_, graph_[id].loc);
      to_.set(id, concat(parts, region.members.at(id).rows.result->dim));
    }
    for (const auto& [id, sum] : sums) to_.set(id, sum);
  }

  /// Returns the first row of a chunk; the larger chunks come first.
  static Dim bound(const Dim& size, std::int64_t chunk, std::int64_t chunks) {
    const std::int64_t all = *size.value(), least = all / chunks;
    return Dim(chunk * least + std::min(chunk, all % chunks));
  }

  /// Combines the results of two chunks for a reduction over their rows.
  Value joined(ValueId id, const Value& chunk, const Value& before) {
    const GraphBuilder::At at(builder_, graph_[id].loc);
    const auto* fold = graph_[id].op->as<Reduce>();
    const ScalarOp by = fold ? fold->combine : ScalarOp::add;
    return by == ScalarOp::max   ? maximum(chunk, before)
           : by == ScalarOp::min ? minimum(chunk, before)
           : by == ScalarOp::mul ? mul(chunk, before)
                                 : add(chunk, before);
  }

  const Graph& graph_;
  const Readers readers_;
  const std::vector<ChunkedRegion> regions_;
  std::map<ValueId, std::size_t> region_of_;
  std::set<std::size_t> done_;
  GraphBuilder builder_;
  Rebuilder to_;
};

}  // namespace

Graph chunk_rows(Graph graph, const RowChunks& options) {
  std::vector<ChunkedRegion> regions = find_row_chunks(graph, options);
  std::erase_if(regions, [](const ChunkedRegion& found) { return !found.region.holds(); });
  if (regions.empty()) return graph;
  return Chunker(graph, std::move(regions)).run();
}

}  // namespace lathe
