#pragma once

#include <vector>

#include "ir/kernel/build/integer_range.h"
#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// A statement that stores to a parameter or loads from it, and where: a program over ranges, without loops, that
/// gives the range of the element for ranges of what counts around it. Whatever data decide, loads and variables
/// among them, may be anything.
struct AccessSite {
  struct Step {
    enum class Kind : std::uint8_t {
      apply,    ///< out = op of a, b and c
      boolean,  ///< out = a cast to a condition
      loop,     ///< out: the index of a loop from a up to below b in steps of c
      count,    ///< out: a lane, row or column, from 0 up to below a
      holds,    ///< only where a holds
      fails,    ///< only where it does not
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

  std::vector<Step> steps;  ///< operands and results are slots; loops come from the outside in
  std::vector<Range> slots;
  std::vector<DimSlot> dims;  ///< slots that hold run-time arguments
  int element = -1;           ///< the slot that ends with the element
};

/// What a step of kind apply or boolean gives.
inline Range result_of(const AccessSite::Step& step, const std::vector<Range>& slots) {
  const auto at = [&](int slot) { return slot >= 0 ? slots[static_cast<std::size_t>(slot)] : Range{}; };
  if (step.kind == AccessSite::Step::Kind::boolean) return range_of(ScalarOp::ne, at(step.a), Range{0, 0});
  if (!step.in_32_bits && step.op == ScalarOp::add) return add(at(step.a), at(step.b));
  if (!step.in_32_bits && step.op == ScalarOp::mul) return mul(at(step.a), at(step.b));
  const Range args[] = {at(step.a), at(step.b), at(step.c)};
  const Range result = range_of(step.op, args);
  return step.in_32_bits && !result.fits_32_bits() ? Range{} : result;
}

/// Everything that stores to a parameter of a kernel, or loads from it, in the order of its statements; not the
/// copies to shared memory, nor what the threads that only copy load for them.
enum class AccessKind : std::uint8_t { load, store };
std::vector<AccessSite> access_sites(const Kernel& kernel, BufferId parameter, AccessKind kind);

}  // namespace lathe::kernel
