#include "tests/fuzz/shrinker.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "passes/transforms/rebuild.h"

namespace lathe::fuzz {

using namespace ir;

namespace {

std::vector<bool> live_nodes(const ir::Graph& graph) {
  std::vector<bool> live(graph.nodes.size());
  for (const Output& output : graph.outputs) live[static_cast<std::size_t>(output.value.index)] = true;
  for (const Update& update : graph.updates)
    for (const ValueId id : {update.state, update.value}) live[static_cast<std::size_t>(id.index)] = true;
  for (std::size_t i = live.size(); i-- > 0;)
    if (live[i])
      for (const ValueId id : graph.nodes[i].operands) live[static_cast<std::size_t>(id.index)] = true;
  return live;
}

/// Returns the replacement of a node; nothing for the node itself.
using Substitute = std::function<std::optional<Value>(GraphBuilder&, const Rebuilder&, ValueId)>;

/// Returns the live graph with some nodes replaced; run-time checks are recomputed.
ir::Graph rebuilt(const ir::Graph& graph, const Substitute& substitute) {
  const auto copy = [](const ir::Graph& from, const Substitute& instead) {
    const std::vector<bool> live = live_nodes(from);
    GraphBuilder builder(from.name);
    Rebuilder to(builder, from);
    for (const ValueId id : all_values(from)) {
      if (!live[static_cast<std::size_t>(id.index)]) continue;
      const auto other = instead ? instead(builder, to, id) : std::nullopt;
      if (other) {
        to.set(id, *other);
      } else if (from[id].op->as<Argument>()) {
        to.set(id, to.copy(from[id]));
      } else {
        const GraphBuilder::At at(builder, from[id].loc);
        const auto operands = to.operands(from[id]);
        const bool moved = from[id].op == &ops::view && !operands[0].type().is_contiguous();
        to.set(id, builder.add(moved ? ops::reshape : *from[id].op, operands, from[id].attrs));
      }
    }
    for (const Output& output : from.outputs) builder.output(output.name, to[output.value]);
    for (const Update& update : from.updates) builder.update(to[update.state], to[update.value]);
    return builder.finish();
  };
  return substitute ? copy(copy(graph, substitute), nullptr) : copy(graph, nullptr);
}

std::optional<Value> as_argument(GraphBuilder& builder, const ir::Graph& graph, ValueId id) {
  const Node& node = graph[id];
  if (node.op->as<Argument>() || is_complex(node.type.dtype)) return std::nullopt;
  return builder.argument(ops::input, fmt::format("v{}.{}", id.index, graph.size()), node.type.dtype,
                          node.type.shape);
}

class Shrinker {
 public:
  Shrinker(Case from, const std::function<bool(const Case&)>& fails, std::chrono::seconds limit)
      : best_(std::move(from)), fails_(fails), end_(std::chrono::steady_clock::now() + limit) {}

  Case run() {
    for (bool again = true; again && !late();) {
      again = drop_sizes();
      again = drop_results() || again;
      again = cut() || again;
      again = bypass() || again;
      again = halve_sizes() || again;
    }
    return best_;
  }

 private:
  bool late() const { return std::chrono::steady_clock::now() > end_; }

  /// Takes the candidate if it still fails. One that cannot be built is rejected.
  bool take(const std::function<void(Case&)>& change) {
    if (late()) return false;
    Case candidate = best_;
    try {
      change(candidate);
    } catch (const Error&) {
      return false;
    }
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  bool drop_sizes() {
    for (const DimBindings& only : best_.sizes)
      if (best_.sizes.size() > 1 && take([&](Case& c) { c.sizes = {only}; })) return true;
    return false;
  }

  /// Drops runs of outputs and updates, starting with half of them.
  bool drop_results() {
    bool any = false;
    const auto drop_from = [&](auto member) {
      for (std::size_t length = (best_.graph.*member).size(); length > 0; length /= 2)
        for (std::size_t first = 0; first < (best_.graph.*member).size();) {
          const bool taken = take([&](Case& c) {
            auto& list = c.graph.*member;
            const auto last = std::min(list.size(), first + length);
            if (c.graph.outputs.size() + c.graph.updates.size() == last - first) throw UserError("nothing left", "");
            list.erase(list.begin() + static_cast<std::ptrdiff_t>(first),
                       list.begin() + static_cast<std::ptrdiff_t>(last));
            c.graph = rebuilt(c.graph, nullptr);
          });
          any = any || taken;
          if (!taken) first += length;
        }
    };
    drop_from(&ir::Graph::outputs);
    drop_from(&ir::Graph::updates);
    return any;
  }

  /// Replaces runs of nodes with arguments, from the end.
  bool cut() {
    bool any = false;
    for (int length = std::max(best_.graph.size() / 2, 1); length > 0; length /= 2)
      for (int last = best_.graph.size(); last > 0;) {
        const int first = std::max(0, last - length), before = best_.graph.size();
        const bool taken = take([&](Case& c) {
          bool some = false;
          c.graph = rebuilt(best_.graph, [&](GraphBuilder& builder, const Rebuilder&, ValueId id) {
            const auto now =
                id.index >= first && id.index < last ? as_argument(builder, best_.graph, id) : std::nullopt;
            some = some || now;
            return now;
          });
          if (!some) throw UserError("nothing to cut", "");
        });
        any = any || taken;
        last = std::min(first, taken ? best_.graph.size() - (before - last) : first);
      }
    return any;
  }

  /// Replaces nodes with an operand of the same type.
  bool bypass() {
    bool any = false;
    for (int i = best_.graph.size() - 1; i >= 0; --i) {
      i = std::min(i, best_.graph.size() - 1);
      const ValueId id{i};
      for (const ValueId operand : InlineList<ValueId, 4>(best_.graph[id].operands)) {
        const TensorType &now = best_.graph[id].type, &then = best_.graph[operand].type;
        if (now.dtype != then.dtype || !(now.shape == then.shape)) continue;
        const bool taken = take([&](Case& c) {
          c.graph = rebuilt(best_.graph, [&](GraphBuilder&, const Rebuilder& to, ValueId at) {
            return at == id ? std::optional(to[operand]) : std::nullopt;
          });
        });
        any = any || taken;
        if (taken) break;
      }
    }
    return any;
  }

  bool halve_sizes() {
    bool any = false;
    for (std::size_t i = 0; i < best_.sizes.size(); ++i)
      for (const auto& [name, size] : DimBindings(best_.sizes[i]))
        for (const std::int64_t smaller : {size / 2, size - 1})
          if (smaller >= 0 && smaller < best_.sizes[i].at(name))
            any = take([&](Case& c) { c.sizes[i].at(name) = smaller; }) || any;
    return any;
  }

  Case best_;
  const std::function<bool(const Case&)>& fails_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace

Case shrink(Case from, const std::function<bool(const Case&)>& fails, std::chrono::seconds limit) {
  return Shrinker(std::move(from), fails, limit).run();
}

}  // namespace lathe::fuzz
