#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/support/dtype.h"
#include "ir/support/error.h"
#include "ir/tensor/shape.h"

namespace lathe::ir {

/// What an op is told besides its operands. Text forms: true, 3, 0.5, "ij,jk->ik", f32, n_seq, [1, 2], [0.5], and
/// for a shape [nbatches, h=8]. The spec of the op says which kind each name has.
using Attribute = std::variant<bool, std::int64_t, double, std::string, DType, Dim, std::vector<std::int64_t>,
                               std::vector<double>, Shape>;
/// The alternatives of Attribute, in its order.
enum class AttrKind { boolean, integer, real, text, dtype, dim, integers, reals, shape };

/// Named attributes, in the order of the op's schema. Copies share the entries until one is set.
class Attributes {
 public:
  using Entry = std::pair<std::string, Attribute>;
  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) : entries_(std::make_shared<std::vector<Entry>>(entries)) {}

  const Attribute* find(std::string_view name) const {
    for (const auto& [key, value] : entries())
      if (key == name) return &value;
    return nullptr;
  }
  /// The attribute `name` as T; InternalError where it is missing or of another kind (the builder checks the schema).
  template <class T>
  const T& get(std::string_view name) const {
    const Attribute* found = find(name);
    LATHE_ASSERT(found && std::holds_alternative<T>(*found));
    return std::get<T>(*found);
  }
  void set(std::string_view name, Attribute value) {
    if (!entries_)
      entries_ = std::make_shared<std::vector<Entry>>();
    else if (entries_.use_count() > 1)
      entries_ = std::make_shared<std::vector<Entry>>(*entries_);
    for (auto& [key, old] : *entries_)
      if (key == name) {
        old = std::move(value);
        return;
      }
    entries_->emplace_back(std::string(name), std::move(value));
  }
  const std::vector<Entry>& entries() const {
    static const std::vector<Entry> none;
    return entries_ ? *entries_ : none;
  }
  /// Equal values have equal hashes.
  std::size_t hash() const;
  bool operator==(const Attributes& other) const {
    return entries_ == other.entries_ || entries() == other.entries();
  }

 private:
  std::shared_ptr<std::vector<Entry>> entries_;  // null where there are none
};

}  // namespace lathe::ir
