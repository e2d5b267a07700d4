#include "ir/kernel/verify/access_binding.h"

#include <optional>

namespace lathe::kernel {

namespace {

using Step = AccessSite::Step;
using Kind = Step::Kind;
using Steps = std::span<const Step>;

class Binder {
 public:
  Binder(const AccessSite& site, std::span<const std::int64_t> dims) : site_(site) {
    bound_.slots = site.slots;
    bound_.element = site.element;
    for (const auto& [slot, dim] : site.dims) {
      const std::int64_t n = dims[dim];
      range(slot) = {n, n};
    }
  }

  AccessSite run() {
    std::vector<bool> varies(bound_.slots.size(), false), kept;
    const auto depends = [&](int slot) { return slot >= 0 && varies[slot]; };
    for (const Step& step : site_.steps) {
      kept.push_back(step.counts() || depends(step.a) || depends(step.b) || depends(step.c) || step.is_condition());
      if (!kept.back())
        range(step.out) = result_of(step, bound_.slots);
      else if (step.out >= 0)
        varies[step.out] = true;
    }
    made_.assign(bound_.slots.size(), false);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const Step& step = site_.steps[i];
      if (kept[i] && (step.out < 0 || !made_[step.out])) add(step, Steps(site_.steps).subspan(i + 1));
    }
    return std::move(bound_);
  }

 private:
  Range& range(int slot) { return bound_.slots[slot]; }
  int number(std::int64_t n) {
    bound_.slots.push_back({n, n});
    return static_cast<int>(bound_.slots.size()) - 1;
  }

  void add(const Step& step, Steps later) {
    if (step.kind == Kind::count) return count(step.out, range(step.a).lo, later);
    const bool from_zero = step.kind == Kind::loop && range(step.a) == Range{0, 0} && range(step.c) == Range{1, 1} &&
                           range(step.b).is_one();
    from_zero ? count(step.out, range(step.b).lo, later) : bound_.steps.push_back(step);
  }

  /// Returns the divisor of the first step in `later` that divides the slot, if it is below n.
  std::optional<std::int64_t> divisor(int slot, std::int64_t n, Steps later) {
    for (const Step& step : later) {
      const bool divides = step.kind == Kind::apply && (step.op == ScalarOp::div || step.op == ScalarOp::rem);
      if (divides && step.a == slot && range(step.b).is_one() && range(step.b).lo > 1 && range(step.b).lo < n)
        return range(step.b).lo;
    }
    return std::nullopt;
  }

  /// Returns the slot of a digit: the slot of the first step in `later` that computes it, now marked as computed;
  /// otherwise a new slot.
  int digit(ScalarOp op, int slot, std::int64_t by, Steps later) {
    for (const Step& step : later)
      if (step.kind == Kind::apply && step.op == op && step.a == slot && range(step.b) == Range{by, by}) {
        made_[step.out] = true;
        return step.out;
      }
    return number(0);
  }

  /// slot = 0 .. n.
  void count(int slot, std::int64_t n, Steps later) {
    const auto by = divisor(slot, n, later);
    if (!by) return bound_.steps.push_back({.kind = Kind::count, .out = slot, .a = number(n)});
    const int high = digit(ScalarOp::div, slot, *by, later), low = digit(ScalarOp::rem, slot, *by, later);
    count(high, (n + *by - 1) / *by, later);
    count(low, *by, later);
    const int start = number(0), inside = number(0);
    bound_.steps.push_back({.op = ScalarOp::mul, .out = start, .a = high, .b = number(*by)});
    bound_.steps.push_back({.op = ScalarOp::add, .out = slot, .a = start, .b = low});
    if (n % *by == 0) return;
    bound_.steps.push_back({.op = ScalarOp::lt, .out = inside, .a = slot, .b = number(n)});
    bound_.steps.push_back({.kind = Kind::holds, .a = inside});
  }

  const AccessSite& site_;
  AccessSite bound_;
  std::vector<bool> made_;  // by slot of the site: already computed by a count
};

}  // namespace

AccessSite bind(const AccessSite& site, std::span<const std::int64_t> dims) { return Binder(site, dims).run(); }

}  // namespace lathe::kernel
