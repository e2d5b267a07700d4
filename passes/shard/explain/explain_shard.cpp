#include "passes/shard/explain/explain_shard.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "ir/ops/collectives.h"
#include "passes/shard/predict/held_bytes.h"
#include "passes/shard/predict/rate_text.h"
#include "passes/shard/predict/step_time.h"

namespace lathe::shard {

namespace {

/// The bytes that a process sends over one axis: a number, and a multiple of 1 / n in the unknown dims of the graph.
struct Sent {
  std::int64_t known = 0, ranks = 1;
  Dim times_ranks = 0;

  void add(const Collective& collective) {
    ranks = collective.axis.ranks;
    if (collective.elements.value())
      known += bytes_sent(collective);
    else
      times_ranks = times_ranks + collective.bytes() * Dim(parts_sent(collective));
  }
  std::string to_string() const {
    if (times_ranks.is(0)) return std::to_string(known);
    if (const auto all = times_ranks.divided_by(Dim(ranks))) return (*all + Dim(known)).to_string();
    const std::string part = fmt::format("({}) / {}", times_ranks.to_string(), ranks);
    return known == 0 ? part : fmt::format("{} + {}", part, known);
  }
};

std::string time_text(const Collective& collective, const StepRates& rates, const DimBindings& dims) {
  const std::vector<std::string> unknowns = collective.elements.unknowns();
  if (!std::ranges::all_of(unknowns, [&](const std::string& name) { return dims.contains(name); })) return "";
  return ", predicted " + seconds_text(collective_seconds(collective, rates, dims));
}

/// Returns the bytes of gathered values in use, or ahead of use, with the names of the large ones:
/// "163971072 (wte 154533888, h.0.mlp.c_fc.weight 9437184)".
std::string gathered_text(const HeldBytes& held, bool ahead) {
  std::int64_t bytes = 0;
  std::string names;
  for (const GatheredBytes& value : held.most_gathered) {
    if (value.ahead != ahead) continue;
    bytes += value.bytes;
    if (value.bytes * 50 >= held.gathered)
      names += fmt::format("{}{} {}", names.empty() ? "" : ", ", value.parameter, value.bytes);
  }
  return names.empty() ? fmt::format("{}", bytes) : fmt::format("{} ({})", bytes, names);
}

}  // namespace

std::string explain(const Sharded& sharded, const StepRates& rates, const DimBindings& dims) {
  std::string text = fmt::format("{} processes: {}\n", sharded.mesh.size(), sharded.mesh.to_string());
  std::map<std::pair<std::string, std::string>, std::pair<int, Sent>> totals;
  for (const Collective& each : sharded.collectives) {
    Sent sent;
    sent.add(each);
    text += fmt::format("{} over {}: {}, {} bytes, sends {}{}\n  {}: {}\n", ir::name(each.kind), each.axis.name,
                        each.value, each.bytes().to_string(), sent.to_string(), time_text(each, rates, dims),
                        each.loc.to_string(), each.reason);
    auto& [number, all] = totals[{each.axis.name, std::string(ir::name(each.kind))}];
    ++number;
    all.add(each);
  }
  for (const auto& [key, total] : totals)
    text += fmt::format("total over {}: {} {}, a process sends {} bytes\n", key.first, total.first, key.second,
                        total.second.to_string());
  const HeldBytes held = held_bytes(sharded.graph);
  for (const auto& [kind, bytes] :
       {std::pair{"inputs", held.inputs}, {"parameters", held.parameters}, {"states", held.states}})
    if (!bytes.is(0)) text += fmt::format("a process holds {} bytes of {}\n", bytes.to_string(), kind);
  if (held.gathered > 0)
    text += fmt::format("a process has at most {} bytes of gathered values at a time: {} in use, {} ahead of use\n",
                        held.gathered, gathered_text(held, false), gathered_text(held, true));
  if (sharded.rings > 0)
    text += fmt::format("{} attention{} with keys and values passed around a ring\n", sharded.rings,
                        sharded.rings == 1 ? "" : "s");
  for (const GatheredAttention& each : sharded.gathered)
    text += fmt::format("keys and values at {} stay gathered: {}\n", each.loc.to_string(), each.why);
  for (const std::string& name : sharded.kept_whole)
    text += fmt::format("{} is whole on every process: none of its dims is divisible\n", name);
  if (!sharded.collectives.empty()) text += to_string(rates);
  return text;
}

}  // namespace lathe::shard
