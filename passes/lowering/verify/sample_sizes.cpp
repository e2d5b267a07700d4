#include "passes/lowering/verify/sample_sizes.h"

#include <algorithm>
#include <optional>
#include <set>

namespace lathe {

namespace {

using Relation = ir::DimCheck::Relation;

std::set<std::string> unknowns_of(const Program& program) {
  std::set<std::string> names;
  const auto add = [&](const Dim& dim) {
    for (std::string& name : dim.unknowns()) names.insert(std::move(name));
  };
  for (const ProgramBuffer& buffer : program.buffers) {
    add(buffer.elements);
    if (buffer.slice) add(buffer.slice->stride);
  }
  for (const ProgramLoop& loop : program.loops) add(loop.trips);
  for (const Launch& launch : program.launches)
    for (const Dim& dim : launch.dims) add(dim);
  for (const ir::DimCheck& check : program.checks) add(check.left), add(check.right);
  return names;
}

bool holds(const ir::DimCheck& check, const DimBindings& sizes) {
  const std::int64_t left = check.left.evaluate(sizes), right = check.right.evaluate(sizes);
  return check.relation == Relation::equal ? left == right : left <= right;
}

/// Returns the size of one dim that satisfies a check while the others stay fixed. Returns nullopt if there is no
/// such size >= 1, or if the check is not linear in it.
std::optional<std::int64_t> size_for(const ir::DimCheck& check, const std::string& name, DimBindings sizes) {
  const auto gap = [&](std::int64_t size) {
    sizes[name] = size;
    return check.left.evaluate(sizes) - check.right.evaluate(sizes);
  };
  const std::int64_t start = gap(0), step = gap(1) - start;
  if (step == 0) return std::nullopt;
  const std::int64_t size = -start / step;
  return size >= 1 && holds(check, (gap(size), sizes)) ? std::optional(size) : std::nullopt;
}

/// Adjusts one dim at a time until all checks hold.
bool satisfy_checks(const Program& program, DimBindings& sizes) {
  constexpr int rounds = 16;
  for (int round = 0; round < rounds; ++round) {
    const auto broken = std::find_if(program.checks.begin(), program.checks.end(),
                                     [&](const ir::DimCheck& check) { return !holds(check, sizes); });
    if (broken == program.checks.end()) return true;
    bool moved = false;
    for (const auto& [name, size] : sizes)
      if (const auto found = moved ? std::nullopt : size_for(*broken, name, sizes)) {
        sizes[name] = *found;
        moved = true;
      }
    if (!moved) return false;
  }
  return false;
}

}  // namespace

std::vector<DimBindings> sample_sizes(const Program& program) {
  const std::set<std::string> names = unknowns_of(program);
  if (names.empty()) return {DimBindings{}};
  std::vector<DimBindings> found;
  for (const std::int64_t least : {3, 67}) {
    DimBindings sizes;
    std::int64_t next = least;
    for (const std::string& name : names) sizes[name] = next, next += 2;
    if (satisfy_checks(program, sizes)) found.push_back(std::move(sizes));
  }
  return found;
}

}  // namespace lathe
