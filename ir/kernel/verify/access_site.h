#pragma once

#include <vector>

#include "ir/kernel/build/integer_range.h"
#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// A statement that stores to or loads from a parameter, as a loop-free program over ranges. It maps the ranges of
/// the surrounding counters to the range of the accessed element. Values that depend on data, including loads and
/// variables, have the full range.
struct AccessSite {
  struct Step {
    enum class Kind : std::uint8_t {
      apply,    ///< out = op of a, b and c
      boolean,  ///< out = a != 0
      loop,     ///< out: the index of a loop from a to b (exclusive) with step c
      count,    ///< out: a lane, row or column, from 0 to a (exclusive)
      holds,    ///< continues only if a is true
      fails,    ///< continues only if a is false
    };
    Kind kind = Kind::apply;
    ScalarOp op = ScalarOp::add;
    bool in_32_bits = false;  ///< of apply
    int out = -1, a = -1, b = -1, c = -1;

    bool counts() const { return kind == Kind::loop || kind == Kind::count; }
    bool is_condition() const { return kind == Kind::holds || kind == Kind::fails; }
  };
  struct DimSlot {
    int slot, dim;
  };

  std::vector<Step> steps;  ///< operands and results are slots; loops are outermost first
  std::vector<Range> slots;
  std::vector<DimSlot> dims;  ///< slots that hold run-time arguments
  int element = -1;           ///< the slot that holds the element at the end
};

/// Returns the result of a step of kind apply or boolean.
inline Range result_of(const AccessSite::Step& step, const std::vector<Range>& slots) {
  const auto at = [&](int slot) { return slot >= 0 ? slots[slot] : Range{}; };
  if (step.kind == AccessSite::Step::Kind::boolean) return range_of(ScalarOp::ne, at(step.a), Range{0, 0});
  if (!step.in_32_bits && step.op == ScalarOp::add) return add(at(step.a), at(step.b));
  if (!step.in_32_bits && step.op == ScalarOp::mul) return mul(at(step.a), at(step.b));
  const Range args[] = {at(step.a), at(step.b), at(step.c)};
  const Range result = range_of(step.op, args);
  return step.in_32_bits && !result.fits_32_bits() ? Range{} : result;
}

/// Returns all stores to, or loads from, a parameter of a kernel, in statement order. Excludes copies to shared
/// memory and the loads of threads that only copy.
enum class AccessKind : std::uint8_t { load, store };
std::vector<AccessSite> access_sites(const Kernel& kernel, BufferId parameter, AccessKind kind);

}  // namespace lathe::kernel
