#include "passes/shard/plan/gather_plan.h"

#include <algorithm>
#include <optional>

#include "ir/tensor/node_map.h"
#include "ir/tensor/op/op.h"

namespace lathe::shard {

using namespace ir;

namespace {

/// The first and last position in the graph of the nodes that read a value, also through views.
struct ReaderSpan {
  int first, last;

  void add(const ReaderSpan& other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
};

/// A gathered value, with its readers in the forward pass and in the gradient.
struct GatheredValue {
  std::optional<std::int64_t> bytes;
  std::vector<ReaderSpan> readers = {};
  std::optional<ReaderSpan> forward = {}, gradient = {};
};

class GatherPlanner {
 public:
  GatherPlanner(const Graph& graph, const SplitPlan& splits, std::span<const ShardPlan> parts,
                std::span<const FormPlan> partials)
      : graph_(graph), splits_(splits), parts_(parts), partials_(partials), values_(graph) {}

  NodeMap<bool> run() {
    find_readers();
    for (const GatheredValue& value : values_)
      if (!value.readers.empty()) gathered_.push_back(&value);
    NodeMap<bool> again(graph_);
    for (const ValueId id : all_values(graph_)) {
      const GatheredValue& value = values_[id];
      again[id] = value.forward && value.gradient && !graph_[id].loc.gradient() && is_apart(value);
    }
    return again;
  }

 private:
  /// Whether `reader` needs the whole of a value that processes hold as shards.
  bool gathers(ValueId reader, ValueId operand) const {
    for (std::size_t a = 0; a < partials_.size(); ++a)
      if (partials_[a][operand].made == Form::part &&
          form_read(graph_, parts_[a], partials_[a], reader, operand) == Form::whole)
        return true;
    return false;
  }

  void find_readers() {
    // Readers come after their operands, so the readers of a view are known before the view is visited.
    NodeMap<std::optional<ReaderSpan>> used(graph_);
    for (int i = graph_.size() - 1; i >= 0; --i) {
      const ValueId id{i};
      const Node& node = graph_[id];
      const ReaderSpan span = node.op->as<View>() && used[id] ? *used[id] : ReaderSpan{i, i};
      for (const ValueId operand : node.operands) {
        include(used[operand], span);
        if (!gathers(id, operand)) continue;
        GatheredValue& value = values_[operand];
        value.bytes = bytes_of(operand);
        value.readers.push_back(span);
        include(node.loc.gradient() ? value.gradient : value.forward, span);
      }
    }
  }
  static void include(std::optional<ReaderSpan>& all, const ReaderSpan& more) {
    if (all)
      all->add(more);
    else
      all = more;
  }

  /// Returns the bytes of the whole value that a process has after the splits by name.
  std::optional<std::int64_t> bytes_of(ValueId id) const {
    const auto elements = splits_.local_shape(id).numel().value();
    if (!elements) return std::nullopt;
    return *elements * static_cast<std::int64_t>(size_in_bytes(graph_[id].type.dtype));
  }

  /// Whether another value is read between the forward pass's readers of this one and those of the gradient.
  bool is_apart(const GatheredValue& value) const {
    return std::ranges::any_of(gathered_, [&](const GatheredValue* other) {
      if (other == &value || (other->bytes && value.bytes && *other->bytes < *value.bytes / 100)) return false;
      return std::ranges::any_of(other->readers, [&](const ReaderSpan& reader) {
        return reader.last > value.forward->last && reader.first < value.gradient->first;
      });
    });
  }

  const Graph& graph_;
  const SplitPlan& splits_;
  std::span<const ShardPlan> parts_;
  std::span<const FormPlan> partials_;
  NodeMap<GatheredValue> values_;  ///< by node; without readers if it is not gathered
  std::vector<const GatheredValue*> gathered_;
};

}  // namespace

NodeMap<bool> plan_second_gathers(const Graph& graph, const SplitPlan& splits, std::span<const ShardPlan> parts,
                                  std::span<const FormPlan> partials) {
  return GatherPlanner(graph, splits, parts, partials).run();
}

}  // namespace lathe::shard
