#include "runtime/sharding.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <thread>

#include "passes/shard/plan/default_splits.h"

namespace lathe {

namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

std::vector<std::string> set_default_splits(CompileOptions& options, const ir::Graph& forward) {
  shard::DefaultSplits found = shard::default_splits(forward, options.ranks->mesh());
  options.split = std::move(found.splits);
  return std::move(found.left_out);
}

std::string sharding_text(const CompileOptions& options) {
  const shard::ShardOptions& parts = options.parts;
  std::string text = "--mesh " + options.ranks->mesh().to_string(), splits;
  for (const Split& split : options.split)
    splits += fmt::format("{}{}:{}", splits.empty() ? "" : ",", split.dim, split.axis);
  if (!splits.empty()) text += " --split " + splits;
  if (!parts.states.empty()) text += " --states " + parts.states;
  if (!parts.parameters.empty()) text += " --parameters " + parts.parameters;
  if (parts.second_gather == shard::SecondGather::never) text += " --keep-gathered";
  if (parts.second_gather == shard::SecondGather::always) text += " --gather-again";
  if (parts.ring != shard::RingWay::decide)
    text += parts.ring == shard::RingWay::always ? " --ring always" : " --ring never";
  return text;
}

DimBindings sizes_on_process(DimBindings sizes, const std::vector<Split>& splits, const Mesh& mesh) {
  std::map<std::string, std::pair<std::string, std::int64_t>> local;  // by dim: its name and size on one process
  for (const Split& split : splits) {
    const auto size = sizes.find(split.dim);
    if (size == sizes.end()) continue;
    auto& [name, on_process] = local.try_emplace(split.dim, split.dim, size->second).first->second;
    name += "@" + split.axis;
    on_process /= mesh[mesh.find(split.axis)].ranks;
  }
  for (const auto& [dim, on_process] : local) sizes.insert(on_process);
  return sizes;
}

int threads_per_process(Ranks& ranks) {
  const std::vector<std::string> hosts = ranks.gather(host_name());
  const auto here = std::ranges::count(hosts, hosts[ranks.rank()]);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / static_cast<int>(here));
}

}  // namespace lathe
