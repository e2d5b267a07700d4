#include "ir/tensor/op/inferred_types.h"

#include <algorithm>
#include <bit>

#include "ir/support/hash.h"
#include "ir/tensor/op/op.h"

namespace lathe::ir {

namespace {

std::size_t hash_of(const TensorType& type) {
  constexpr std::size_t factor = 0x9e3779b97f4a7c15;  // the caller mixes the hash
  std::size_t hash = static_cast<std::size_t>(type.dtype);
  for (const auto* dims : {&type.shape.dims(), &type.strides.items()})
    for (const Dim& dim : *dims) hash = hash * factor + static_cast<std::size_t>(dim.value().value_or(-1));
  return hash;
}

/// Returns whether two attributes are identical, including names of dims and the sign of zero.
struct LooksLike {
  const Attribute& other;

  bool operator()(double v) const { return bits(v) == bits(std::get<double>(other)); }
  bool operator()(const Dim& v) const { return v.looks_like(std::get<Dim>(other)); }
  bool operator()(const Shape& v) const { return v.looks_like(std::get<Shape>(other)); }
  bool operator()(const std::vector<double>& v) const { return alike(v, std::get<std::vector<double>>(other)); }
  bool operator()(const Number& v) const {
    const auto& number = std::get<Number>(other);
    return bits(v.real()) == bits(number.real()) && v.integer_rest() == number.integer_rest();
  }
  bool operator()(const NumberList& v) const {
    const auto& numbers = std::get<NumberList>(other);
    return alike(v.reals(), numbers.reals()) && v.integer_rests() == numbers.integer_rests();
  }
  bool operator()(const Body& v) const { return v.looks_like(std::get<Body>(other)); }
  template <class T>
  bool operator()(const T& v) const {
    return v == std::get<T>(other);
  }

 private:
  static std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v); }
  static bool alike(const std::vector<double>& a, const std::vector<double>& b) {
    return std::ranges::equal(a, b, {}, bits, bits);
  }
};

bool look_alike(const Attributes& a, const Attributes& b) {
  return a.is_same(b) || std::ranges::equal(a.entries(), b.entries(), [](const auto& x, const auto& y) {
           return x.first == y.first && x.second.index() == y.second.index() &&
                  std::visit(LooksLike{y.second}, x.second);
         });
}

}  // namespace

InferredTypes::Inferred* InferredTypes::find(const Graph& graph, const Op& op, const Attributes& given,
                                             std::span<const ValueId> operands) {
  hash_ = mix_hash(std::hash<const void*>{}(&op), given.hash());
  for (const ValueId operand : operands) hash_ = mix_hash(hash_, hash_of(graph[operand].type));
  const auto known = by_hash_.find(hash_);
  if (known == by_hash_.end()) return nullptr;
  for (Inferred& each : known->second)
    if (each.op == &op && look_alike(each.given, given) &&
        std::ranges::equal(each.operands, operands, [&](const TensorType& type, ValueId operand) {
          return type.looks_like(graph[operand].type);
        }))
      return &each;
  return nullptr;
}

InferredTypes::Inferred& InferredTypes::keep(const Graph& graph, std::span<const ValueId> operands,
                                             Inferred inferred) {
  constexpr std::size_t most = 16;  // per hash
  std::vector<Inferred>& known = by_hash_[hash_];
  if (known.size() == most) return other_ = std::move(inferred);
  for (const ValueId operand : operands) inferred.operands.push_back(graph[operand].type);
  return known.emplace_back(std::move(inferred));
}

}  // namespace lathe::ir
