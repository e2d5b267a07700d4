#include "tests/fuzz/reference.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "passes/check/results.h"
#include "passes/compile/compilation.h"
#include "passes/transforms/expand.h"

namespace lathe::fuzz {

using namespace ir;
using test::Outcome;
using test::outcome;

namespace {

/// Whether any float that the graph computes overflows its dtype.
bool overflows(const ir::Graph& primitives, const Tensors& arguments) {
  std::vector<ValueId> floats;
  for (const ValueId id : all_values(primitives))
    if (is_float(primitives[id].type.dtype)) floats.push_back(id);
  const auto rounded = interpret_values(primitives, arguments, floats);
  const auto plain = interpret_values(primitives, arguments, floats, {.round = false});
  for (std::size_t v = 0; v < floats.size(); ++v)
    for (std::int64_t i = 0; i < plain[v].numel(); ++i)
      if (!std::isfinite(rounded[v].get(i)) && std::isfinite(plain[v].get(i))) return true;
  return false;
}

}  // namespace

Reference::Reference(const Case& from, const DimBindings& dims, bool round)
    : Reference(from, dims, named_results(from.graph), round) {}

Reference::Reference(const Case& from, const DimBindings& dims, const std::vector<Output>& results, bool round)
    : dims_(dims), arguments_(arguments_of(from, dims)) {
  std::vector<ValueId> values;
  for (const Output& result : results) {
    names_.push_back(result.name);
    values.push_back(result.value);
  }
  label_ = outcome([&] {
             expected_.emplace(from.graph, arguments_, values,
                               ExpectOptions{.interpret = {.round = round}, .rewrite = as_fused});
             if (from.scaled && overflows(expand(from.graph), arguments_)) expected_.reset();
             return Tensors();
           }).label;
}

std::optional<std::string> Reference::complaint(const Outcome& found) { return complaint(found, names_); }

std::optional<std::string> Reference::complaint(const Outcome& found, const std::vector<std::string>& names) {
  if (found.label != label_)
    return fmt::format("ends with [{}] where the interpreter says [{}]", found.label, label_);
  if (!expected_) return std::nullopt;
  for (const std::string& name : names)
    if (auto wrong = complaint(name, found.results)) return wrong;
  return std::nullopt;
}

std::optional<std::string> Reference::complaint(const std::string& name, const Tensors& results) {
  const auto i = static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  const auto at = results.find(name);
  if (at == results.end()) return fmt::format("gives no {}", name);
  const HostTensor &found = at->second, &expected = (*expected_)[i];
  if (found.dtype() != expected.dtype())
    return fmt::format("{} is {} instead of {}", name, lathe::name(found.dtype()), lathe::name(expected.dtype()));
  const Nearness nearness = expected_->compare(i, found);
  if (nearness.near()) return std::nullopt;
  return fmt::format("{} is wrong by {:.3g} (allowed {:.3g}, largest {:.3g}) at {}\n  expected {}\n  found    {}",
                     name, nearness.difference.largest, nearness.allowed, nearness.largest,
                     describe(nearness.difference, found, expected), expected.to_string(), found.to_string());
}

}  // namespace lathe::fuzz
