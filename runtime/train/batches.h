#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "ir/support/tensors/tensor_ref.h"
#include "ir/support/tensors/tensors.h"

namespace lathe {

/// Makes `refs` refer to these tensors. Does not allocate if `refs` already has tensors with the same names and
/// ranks.
void refer_to(const Tensors& tensors, InputRefs& refs);

/// Returns the inputs of step `step`, or of batch `step` of an evaluation, counted from 0. They depend only on that
/// number, so that a resumed run sees the same batches as an uninterrupted one.
///
/// It is constructed from any function of the number. A function that returns new Tensors is the shortest. A function
/// that returns `const Tensors&` or `const InputRefs&` to memory that it reuses copies and allocates nothing:
///
///   Batches by_value = [&](std::int64_t step) { return Tensors{{"tokens", sampler.random(step)}}; };
///   Batches in_place = [&, rows = Tensors{{"tokens", HostTensor()}}](std::int64_t step) mutable -> const Tensors& {
///     sampler.random(step, rows.at("tokens"));
///     return rows;
///   };
///
/// The returned inputs are read until the next call.
class Batches {
 public:
  /// Creates an empty function.
  Batches() = default;
  template <class Function>
    requires(!std::same_as<std::remove_cvref_t<Function>, Batches> && std::invocable<Function&, std::int64_t>)
  Batches(Function function)  // NOLINT(google-explicit-constructor)
      : refs_(giving_refs(std::move(function))) {}

  explicit operator bool() const { return static_cast<bool>(refs_); }
  const InputRefs& operator()(std::int64_t step) const { return refs_(step); }

 private:
  using GivesRefs = std::function<const InputRefs&(std::int64_t)>;
  template <class Function>
  static GivesRefs giving_refs(Function function) {
    using Given = std::invoke_result_t<Function&, std::int64_t>;
    constexpr bool keeps = std::is_lvalue_reference_v<Given>;
    if constexpr (std::same_as<std::remove_cvref_t<Given>, InputRefs>) {
      if constexpr (keeps)
        return function;
      else
        return [function = std::move(function), refs = InputRefs()](std::int64_t step) mutable -> const InputRefs& {
          return refs = function(step);
        };
    } else {
      static_assert(std::convertible_to<Given, Tensors>, "batches are Tensors or InputRefs");
      return [function = std::move(function), tensors = std::conditional_t<keeps, std::nullptr_t, Tensors>(),
              refs = InputRefs()](std::int64_t step) mutable -> const InputRefs& {
        if constexpr (keeps)
          refer_to(function(step), refs);
        else
          refer_to(tensors = function(step), refs);
        return refs;
      };
    }
  }

  GivesRefs refs_;
};

}  // namespace lathe
