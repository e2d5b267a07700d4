#include <fmt/core.h>

#include <algorithm>

#include "tests/fuzz/oracles/oracles.h"
#include "tests/fuzz/reference.h"
#include "tests/support/library/library_runner.h"
#include "tests/support/programs/run_with_states.h"

namespace lathe::fuzz {

using test::Outcome;
using test::outcome;

namespace {

DimBindings largest_sizes(const Case& from) {
  DimBindings most;
  for (const DimBindings& sizes : from.sizes)
    for (const auto& [name, size] : sizes) {
      std::int64_t& largest = most.try_emplace(name, 1).first->second;
      largest = std::max(largest, size);
    }
  return most;
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
  test::LibraryRunner library({{"", from.graph}},
                              {.prefix = "lib", .targets = {target}, .most = largest_sizes(from), .threads = 1});
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
