#include "passes/shard/plan/factors.h"

#include <deque>
#include <numeric>

#include "ir/support/error.h"

namespace lathe::shard {

FactorList Factors::make(const Dim& size) {
  if (size.is(1)) return {};
  entries_.push_back({.size = size.unnamed(), .parts = {}});
  return {count() - 1};
}

Factor Factors::find(Factor factor) const {
  while (entries_[factor].same >= 0) factor = entries_[factor].same;
  return factor;
}

FactorList Factors::resolve(const FactorList& list) const {
  FactorList result;
  for (const Factor each : list) {
    const Entry& entry = at(each);
    if (entry.parts.empty()) {
      result.push_back(find(each));
      continue;
    }
    const FactorList parts = resolve(entry.parts);
    result.insert(result.end(), parts.begin(), parts.end());
  }
  return result;
}

void Factors::unite(Factor a, Factor b) {
  if (a == b) return;
  if (b < a) std::swap(a, b);
  entry(b).same = a;
  if (!entry(a).obstacle) entry(a).obstacle = entry(b).obstacle;
}

void Factors::part(Factor factor, const FactorList& parts) {
  for (const Factor each : parts)
    if (!entry(each).obstacle) entry(each).obstacle = entry(factor).obstacle;
  entry(factor).parts = parts;
}

namespace {

/// Returns the greatest common divisor of two known sizes, if it is greater than 1.
std::optional<std::int64_t> common_divisor(const Dim& a, const Dim& b) {
  if (!a.value() || !b.value()) return std::nullopt;
  const std::int64_t divisor = std::gcd(*a.value(), *b.value());
  return divisor > 1 ? std::optional(divisor) : std::nullopt;
}

}  // namespace

/// Divides a, b or both into parts, so that they start with factors of the same size. Returns false if no such parts
/// are known.
bool Factors::make_comparable(Factor a, Factor b) {
  const Dim size_a = entry(a).size, size_b = entry(b).size;
  if (size_a.is(0) || size_b.is(0)) return false;
  if (const auto rest = size_a.divided_by(size_b)) {
    part(a, {b, make(*rest).front()});
    return true;
  }
  if (const auto rest = size_b.divided_by(size_a)) {
    part(b, {a, make(*rest).front()});
    return true;
  }
  const auto common = common_divisor(size_a, size_b);
  if (!common) return false;
  const Factor first = make(*common).front();
  part(a, {first, make(*size_a.divided_by(*common)).front()});
  part(b, {first, make(*size_b.divided_by(*common)).front()});
  return true;
}

void Factors::tie(const FactorList& a, const FactorList& b, ir::ValueId node) {
  const FactorList from_a = resolve(a), from_b = resolve(b);
  std::deque<Factor> left(from_a.begin(), from_a.end()), right(from_b.begin(), from_b.end());
  // Replaces a factor by its parts; a factor that occurs twice is replaced again when it is reached again.
  const auto expose = [this](std::deque<Factor>& list) {
    const FactorList parts = resolve({list.front()});
    list.pop_front();
    list.insert(list.begin(), parts.begin(), parts.end());
  };
  while (!left.empty() && !right.empty()) {
    expose(left);
    expose(right);
    const Factor x = left.front(), y = right.front();
    if (x != y && entry(x).size != entry(y).size) {
      if (!make_comparable(x, y)) break;
      continue;
    }
    unite(x, y);
    left.pop_front();
    right.pop_front();
  }
  const Obstacle obstacle{node, "it parts the elements in another way"};
  block({left.begin(), left.end()}, obstacle);
  block({right.begin(), right.end()}, obstacle);
}

void Factors::block(const FactorList& list, const Obstacle& obstacle) {
  for (const Factor each : resolve(list))
    if (!entry(each).obstacle) entry(each).obstacle = obstacle;
}

}  // namespace lathe::shard
