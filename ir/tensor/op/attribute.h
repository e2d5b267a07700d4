#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/support/containers/shared_list.h"
#include "ir/support/dtype.h"
#include "ir/support/error.h"
#include "ir/support/numbers/number.h"
#include "ir/support/shape.h"
#include "ir/tensor/op/body.h"

namespace lathe::ir {

/// A parameter of an op. Text forms: true, 3, 0.5, "ij,jk->ik", f32, n_seq, [1, 2], [0.5], and for a shape [nbatches,
/// h=8]. The op's spec defines the kind of each name. A number has the dtype of an operand or of another attribute:
/// unlike a real, it can hold every i64. A body is printed before the first node that has it; @step refers to it.
using Attribute = std::variant<bool, std::int64_t, double, std::string, DType, Dim, std::vector<std::int64_t>,
                               std::vector<double>, Shape, Number, NumberList, Body>;
/// The alternatives of Attribute, in the same order.
enum class AttrKind { boolean, integer, real, text, dtype, dim, integers, reals, shape, number, numbers, body };

/// Named attributes, in the order of the op's schema. Copies share entries until one is set.
class Attributes {
 public:
  using Entry = std::pair<std::string, Attribute>;
  // Members that need the definition of Attribute are compiled once: they would take long in every program.
  Attributes();
  Attributes(std::initializer_list<Entry> entries);
  Attributes(const Attributes&);
  Attributes(Attributes&&) noexcept;
  Attributes& operator=(const Attributes&);
  Attributes& operator=(Attributes&&) noexcept;
  ~Attributes();

  /// Returns the attribute `name` or null.
  const Attribute* find(std::string_view name) const;
  /// Returns the attribute `name` as T. Throws InternalError if it is missing or of another kind (the builder checks
  /// the schema).
  template <class T>
  const T& get(std::string_view name) const {
    const Attribute* found = find(name);
    LATHE_ASSERT(found && std::holds_alternative<T>(*found));
    return std::get<T>(*found);
  }
  void set(std::string_view name, Attribute value);
  const std::vector<Entry>& entries() const;
  /// Returns whether both share one list in memory.
  bool is_same(const Attributes& other) const { return entries_.is_same(other.entries_); }
  /// Returns a hash; equal values have equal hashes.
  std::size_t hash() const;
  bool operator==(const Attributes& other) const;

 private:
  SharedList<Entry> entries_;
};

}  // namespace lathe::ir
