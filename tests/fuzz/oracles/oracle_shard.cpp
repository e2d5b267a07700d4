#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <set>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/tensor/verifier.h"
#include "passes/shard/simulate.h"
#include "tests/fuzz/oracles/oracles.h"
#include "tests/fuzz/reference.h"

namespace lathe::fuzz {

using namespace ir;
using test::Outcome;
using test::outcome;

namespace {

constexpr int placements_per_case = 4;

/// How a graph is sharded.
struct Division {
  shard::Mesh mesh;
  std::vector<shard::Split> splits;
  shard::ShardOptions options;

  std::string to_string() const {
    std::string text = mesh.to_string();
    for (const shard::Split& split : splits) text += fmt::format(" {}:{}", split.dim, split.axis);
    return text + fmt::format(" states={} parameters={}{}", options.states, options.parameters,
                              options.ring == shard::RingWay::always ? " ring" : "");
  }
};

/// Names every static dim of the arguments, so that it can be split; names of static dims are otherwise only for
/// display.
ir::Graph with_named_dims(ir::Graph graph) {
  for (const ValueId id : graph.arguments()) {
    Shape& shape = graph[id].type.shape;
    for (int d = 0; d < shape.rank(); ++d)
      if (shape[d].value() && !shape[d].is(1)) shape.set(d, shape[d].named(fmt::format("{}_{}", graph[id].name, d)));
  }
  return graph;
}

std::vector<std::string> names_of(const ir::Graph& graph) {
  std::set<std::string> names;
  for (const ValueId id : graph.arguments())
    for (const Dim& size : graph[id].type.shape)
      if (!size.name().empty()) names.insert(size.name());
  return {names.begin(), names.end()};
}

/// Picks a name, always the same one while it exists, so that a reduced case is sharded like the original.
const std::string& any_name(const std::vector<std::string>& names, unsigned draw) {
  const auto key = [draw](const std::string& name) {
    std::uint32_t hash = 2166136261u ^ draw;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash;
  };
  return *std::min_element(names.begin(), names.end(),
                           [&](const std::string& a, const std::string& b) { return key(a) < key(b); });
}

Division random_division(const std::vector<std::string>& names, std::mt19937& random) {
  static const std::vector<std::vector<shard::MeshAxis>> meshes = {
      {{"a", 2}}, {{"a", 3}}, {{"a", 4}}, {{"a", 2}, {"b", 2}}};
  Division division;
  division.mesh = meshes[random() % meshes.size()];
  const auto axis = [&] {
    return division.mesh[static_cast<int>(random() % static_cast<unsigned>(division.mesh.axis_count()))].name;
  };
  const auto count = random() % 3;
  for (unsigned i = 0; i < count; ++i) {
    const auto draw = static_cast<unsigned>(random());
    const std::string over = axis();
    if (!names.empty()) division.splits.push_back({any_name(names, draw), over});
  }
  if (random() % 2) division.options.states = axis();
  if (random() % 2 || count == 0) division.options.parameters = axis();
  if (random() % 2) division.options.second_gather = shard::SecondGather::never;
  if (random() % 2) division.options.ring = shard::RingWay::always;
  return division;
}

/// Returns the sizes of the case, with split dims as multiples of the number of processes.
DimBindings divisible(DimBindings sizes, const Division& division) {
  for (const shard::Split& split : division.splits)
    if (const auto found = sizes.find(split.dim); found != sizes.end())
      found->second = (found->second % 3) * division.mesh.size();
  return sizes;
}

bool is_refusal(const std::string& label) { return label.starts_with("shard_") || label == "mesh_divide"; }

Complaint check_division(const Case& from, const Division& division) {
  std::optional<shard::Sharded> sharded;
  const Outcome made = outcome([&] {
    sharded = shard::shard(from.graph, division.mesh, division.splits, division.options);
    return Tensors{};
  });
  if (!sharded) return is_refusal(made.label) ? std::nullopt : Complaint("refused with [" + made.label + "]");
  verify(sharded->graph);
  for (const DimBindings& dims : from.sizes) {
    const DimBindings sizes = divisible(dims, division);
    Reference reference({from.seed, from.graph, {sizes}, from.tame, from.scaled}, sizes, false);
    const Outcome found = outcome([&] { return shard::simulate(*sharded, reference.arguments(), {.round = false}); });
    if (found.label == "mesh_divide") continue;
    if (const auto wrong = reference.complaint(found)) return fmt::format("{}: {}", test::to_string(sizes), *wrong);
  }
  return std::nullopt;
}

}  // namespace

Complaint divided(const Case& from) {
  std::mt19937 random(from.seed);
  Case named = from;
  named.graph = with_named_dims(from.graph);
  const std::vector<std::string> names = names_of(named.graph);
  for (int i = 0; i < placements_per_case; ++i) {
    const Division division = random_division(names, random);
    if (const auto wrong = check_division(named, division))
      return fmt::format("{}: {}", division.to_string(), *wrong);
  }
  return std::nullopt;
}

}  // namespace lathe::fuzz
