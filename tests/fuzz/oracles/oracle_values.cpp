#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "ir/tensor/op/op.h"
#include "passes/check/results.h"
#include "passes/transforms/dce.h"
#include "tests/fuzz/every_kernel.h"
#include "tests/fuzz/oracles/oracles.h"
#include "tests/fuzz/reference.h"
#include "tests/support/programs/guarded_program.h"
#include "tests/support/programs/run_with_states.h"

namespace lathe::fuzz {

using namespace ir;
using test::Outcome;
using test::outcome;

namespace {

using ValueSet = std::vector<ValueId>;

/// Returns the values that some result needs, in random order.
ValueSet computed_values(const ir::Graph& graph, std::mt19937& random) {
  const NodeMap<bool> needed = needed_nodes(graph);
  ValueSet values;
  for (const ValueId id : all_values(graph))
    if (needed[id] && !graph[id].op->as<Argument>()) values.push_back(id);
  std::shuffle(values.begin(), values.end(), random);
  return values;
}

/// Returns disjoint sets of different sizes that cover the values. Sets are small, but larger in a large graph, to
/// have not many more than `most` sets.
std::vector<ValueSet> small_sets(const ValueSet& values, std::mt19937& random, bool alone) {
  constexpr std::size_t most = 64, few = 4;
  const std::size_t widest = alone ? 1 : std::max(few, 2 * values.size() / most);
  std::vector<ValueSet> sets;
  for (std::size_t next = 0; next < values.size();) {
    const std::size_t count = std::min(1 + random() % widest, values.size() - next);
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(next);
    sets.emplace_back(from, from + static_cast<std::ptrdiff_t>(count));
    next += count;
  }
  return sets;
}

/// A graph with some values of another one as its only outputs.
struct Exposed {
  ValueSet values;
  bool updates;  ///< with the updates of its states
};

/// Returns the sets that a case requests in addition to its own results.
std::vector<Exposed> exposed_sets(const Case& from) {
  constexpr std::size_t some = 6;
  const Exposure& exposure = from.exposure;
  if (exposure.kind == Exposure::Kind::given) return {};
  std::mt19937 random(from.seed);
  auto sets = small_sets(computed_values(from.graph, random), random, exposure.kind == Exposure::Kind::alone);
  if (exposure.kind == Exposure::Kind::some) sets.resize(std::min(some, sets.size()));
  std::vector<Exposed> asked;
  for (std::size_t i = from.seed % exposure.parts; i < sets.size(); i += exposure.parts)
    asked.push_back({sets[i], !from.graph.updates.empty() && random() % 8 == 0});
  return asked;
}

Case exposing(const Case& from, const Exposed& exposed) {
  Case result = from;
  result.graph = only_values(from.graph, exposed.values, exposed.updates);
  result.exposure.kind = Exposure::Kind::given;
  return result;
}

std::vector<Output> results_of(const ir::Graph& graph, const Exposed& exposed) {
  std::vector<Output> results;
  for (const ValueId id : exposed.values) results.push_back({value_name(id), id});
  if (exposed.updates)
    for (const Update& update : graph.updates) results.push_back({graph[update.state].name, update.value});
  return results;
}

std::vector<std::string> names_of(const std::vector<Output>& results) {
  std::vector<std::string> names;
  for (const Output& result : results) names.push_back(result.name);
  return names;
}

/// Returns the references of a case, one per binding of the dims, for all values in `sets`.
std::vector<Reference> references_of(const Case& from, const std::vector<Exposed>& sets) {
  std::map<std::string, ValueId> all;
  for (const Exposed& set : sets)
    for (const Output& result : results_of(from.graph, set)) all[result.name] = result.value;
  std::vector<Output> results;
  for (const auto& [name, value] : all) results.push_back({name, value});
  std::vector<Reference> references;
  for (const DimBindings& dims : from.sizes) references.emplace_back(from, dims, results);
  return references;
}

}  // namespace

std::vector<Case> exposures(const Case& from) {
  std::vector<Case> cases;
  for (const Exposed& set : exposed_sets(from)) cases.push_back(exposing(from, set));
  return cases;
}

Complaint exposed(const Case& from) {
  const auto run = [&](const ir::Graph& graph, auto check) -> Complaint {
    const CompileOptions options{.threads = 1, .cache = &compiled_kernels(), .poison = true};
    Executable executable = compile(graph, options);
    test::GuardedProgram guarded(graph, executable, options);
    for (std::size_t i = 0; i < from.sizes.size(); ++i) {
      const Tensors arguments = arguments_of(from, from.sizes[i]);
      const Outcome found = outcome([&] { return test::run_with_states(executable, arguments); });
      if (const Complaint wrong = check(i, found)) return test::to_string(from.sizes[i]) + ": " + *wrong;
      if (const Complaint wrong = check(i, outcome([&] { return guarded.run(arguments); })))
        return test::to_string(from.sizes[i]) + ": between inaccessible pages: " + *wrong;
      if (const Complaint wrong = interpret_new_kernels(graph, executable, from.sizes[i], arguments))
        return test::to_string(from.sizes[i]) + ": " + *wrong;
    }
    return std::nullopt;
  };
  const auto as_given = [&](std::size_t i, const Outcome& found) {
    return Reference(from, from.sizes[i], true).complaint(found);
  };
  if (const Complaint wrong = run(from.graph, as_given)) return wrong;
  const std::vector<Exposed> sets = exposed_sets(from);
  std::vector<Reference> references = references_of(from, sets);
  for (const Exposed& set : sets) {
    const std::vector<Output> results = results_of(from.graph, set);
    const auto check = [&](std::size_t i, const Outcome& found) -> Complaint {
      // If only values of another set cause an error, check this set by itself.
      if (references[i].ends_with_error()) return Reference(from, from.sizes[i], results).complaint(found);
      return references[i].complaint(found, names_of(results));
    };
    if (const Complaint wrong = run(exposing(from, set).graph, check))
      return fmt::format("only {}{}, {}", fmt::join(names_of(results_of(from.graph, {set.values, false})), " "),
                         set.updates ? " and the updates" : "", *wrong);
  }
  return std::nullopt;
}

}  // namespace lathe::fuzz
