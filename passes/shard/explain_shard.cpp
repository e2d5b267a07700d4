#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/ops/list.h"
#include "ir/tensor/op.h"
#include "passes/shard/shard.h"

namespace lathe::shard {

using namespace ir;

namespace {

Dim bytes_of(const Node& node) {
  return node.type.shape.numel() * Dim(static_cast<std::int64_t>(size_in_bytes(node.type.dtype)));
}

/// Phases that each take (n - 1) / n of the bytes.
std::int64_t phases(const Exchange& exchange) { return exchange.op == ops::all_reduce.name.value ? 2 : 1; }

/// What a process sends over one axis: a number, and a multiple of 1 / n in the unknown dims of the graph.
struct Sent {
  std::int64_t known = 0, ranks = 1;
  Dim times_ranks = 0;

  void add(const Exchange& exchange) {
    ranks = exchange.axis.ranks;
    if (exchange.elements.value())
      known += bytes_sent(exchange);
    else
      times_ranks = times_ranks + exchange.bytes() * Dim(phases(exchange) * (ranks - 1));
  }
  std::string to_string() const {
    if (times_ranks.is(0)) return std::to_string(known);
    if (const auto all = times_ranks.divided_by(Dim(ranks))) return (*all + Dim(known)).to_string();
    const std::string part = fmt::format("({}) / {}", times_ranks.to_string(), ranks);
    return known == 0 ? part : fmt::format("{} + {}", part, known);
  }
};

/// The most bytes of gathered values that a process has at a time, in the order of the graph.
std::int64_t most_gathered(const Graph& graph) {
  std::vector<std::int32_t> source(graph.nodes.size(), -1), last(graph.nodes.size(), -1);
  for (const ValueId id : all_values(graph)) {
    const Node& node = graph[id];
    const auto slot = static_cast<std::size_t>(id.index);
    if (node.op == &ops::all_gather) source[slot] = id.index;
    for (const ValueId operand : node.operands) {
      const std::int32_t of = source[static_cast<std::size_t>(operand.index)];
      if (of < 0) continue;
      if (node.op->as<View>()) source[slot] = of;
      last[static_cast<std::size_t>(of)] = id.index;
    }
  }
  std::vector<std::int64_t> freed(graph.nodes.size(), 0);
  std::int64_t now = 0, most = 0;
  for (const ValueId id : all_values(graph)) {
    const auto slot = static_cast<std::size_t>(id.index);
    if (source[slot] == id.index && last[slot] >= 0) {
      const std::int64_t bytes = bytes_of(graph[id]).value().value_or(0);
      now += bytes;
      freed[static_cast<std::size_t>(last[slot])] += bytes;
    }
    most = std::max(most, now);
    now -= freed[slot];
  }
  return most;
}

}  // namespace

std::int64_t bytes_sent(const Exchange& exchange, const DimBindings& bindings) {
  const std::int64_t n = exchange.axis.ranks;
  const std::int64_t elements = exchange.elements.evaluate(bindings);
  const std::int64_t chunk = (elements + n - 1) / n;
  return (phases(exchange) == 2 ? elements + (n - 2) * chunk : (n - 1) * chunk) * exchange.element_bytes;
}

std::string explain(const Sharded& sharded) {
  std::string text = fmt::format("{} processes: {}\n", sharded.mesh.size(), sharded.mesh.to_string());
  std::map<std::pair<std::string, std::string>, std::pair<int, Sent>> totals;
  for (const Exchange& each : sharded.exchanges) {
    Sent sent;
    sent.add(each);
    text += fmt::format("{} over {}: {}, {} bytes, sends {}\n  {}: {}\n", each.op, each.axis.name, each.value,
                        each.bytes().to_string(), sent.to_string(), each.loc.to_string(), each.reason);
    auto& [number, all] = totals[{each.axis.name, each.op}];
    ++number;
    all.add(each);
  }
  for (const auto& [key, total] : totals)
    text += fmt::format("total over {}: {} {}, a process sends {} bytes\n", key.first, total.first, key.second,
                        total.second.to_string());
  std::map<std::string, Dim> held;
  for (const ValueId id : sharded.graph.arguments()) {
    const Node& node = sharded.graph[id];
    Dim& bytes = held.try_emplace(std::string(node.op->name.value), 0).first->second;
    bytes = bytes + bytes_of(node);
  }
  for (const auto& [kind, bytes] : held)
    text +=
        fmt::format("a process holds {} bytes of {}\n", bytes.to_string(), kind == "input" ? "inputs" : kind + "s");
  if (const std::int64_t most = most_gathered(sharded.graph); most > 0)
    text += fmt::format("a process has at most {} bytes of gathered values at a time\n", most);
  for (const std::string& name : sharded.kept_whole)
    text += fmt::format("{} is whole on every process: no dim of it divides\n", name);
  return text;
}

}  // namespace lathe::shard
