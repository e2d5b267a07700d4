#include <fmt/core.h>

#include <algorithm>

#include "ir/tensor/binding.h"
#include "tests/fuzz/oracles/oracles.h"
#include "tests/fuzz/reference.h"
#include "tests/support/library/library_runner.h"
#include "tests/support/programs/run_with_states.h"

namespace lathe::fuzz {

using test::Outcome;
using test::outcome;

namespace {

/// Returns the largest size of each dim of the graph.
DimBindings largest_sizes(const Case& from) {
  DimBindings most;
  for (const std::string& name : ir::unbound_dims(from.graph, {})) {
    std::int64_t& largest = most[name] = 1;
    for (const DimBindings& sizes : from.sizes) largest = std::max(largest, sizes.at(name));
  }
  return most;
}

/// Returns whether a library cannot be planned for these sizes together: their product may not fit 63 bits, although
/// no run has all of them.
bool are_too_large(const DimBindings& most) {
  constexpr std::int64_t large = std::int64_t{1} << 20;
  return std::ranges::any_of(most, [](const auto& dim) { return dim.second > large; });
}

Tensors run_library(test::LibraryRunner& library, const Reference& reference, int workers) {
  library.set_states(reference.arguments());
  Tensors results = library.run("lib", reference.arguments(), reference.dims(), workers);
  for (const auto& [name, value] : library.states()) results.emplace(name, value);
  return results;
}

Complaint difference(const Outcome& expected, const Outcome& found) {
  if (expected.label.empty() != found.label.empty())
    return fmt::format("ends with [{}] instead of [{}]", found.label, expected.label);
  for (const auto& [name, value] : expected.results)
    if (!test::same_bits(value, found.results.at(name)))
      return fmt::format("{} has other bits:\n  {}\n  {}", name, value.to_string(),
                         found.results.at(name).to_string());
  return std::nullopt;
}

}  // namespace

Complaint in_library(const Case& from) {
  const std::string target = "x86-64-v3";
  const DimBindings most = largest_sizes(from);
  if (are_too_large(most)) return std::nullopt;
  test::LibraryRunner library({{"", from.graph}}, {.prefix = "lib", .targets = {target}, .most = most, .threads = 1});
  Executable executable =
      compile(from.graph, {.target = Target::named(target), .threads = 1, .cache = &compiled_kernels()});
  for (const DimBindings& dims : from.sizes) {
    const Reference reference(from, dims, true);
    const Outcome expected = outcome([&] { return test::run_with_states(executable, reference.arguments()); });
    for (const int workers : {0, 3}) {
      const Outcome found = outcome([&] { return run_library(library, reference, workers); });
      if (const auto wrong = difference(expected, found))
        return fmt::format("{}, {} workers: {}", test::to_string(dims), workers, *wrong);
    }
  }
  return std::nullopt;
}

}  // namespace lathe::fuzz
