#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/text/template/values/value.h"

namespace lathe::jinja {

/// A view of the first `total` items of a longer list, or of some of them. One item may be replaced.
struct ListView {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  std::shared_ptr<const std::vector<Value>> source;
  std::size_t total = 0;  ///< number of items of `source` that views of this view may reach
  std::int64_t start = 0, step = 1;
  std::size_t count = 0;
  std::size_t replaced = none;  ///< index in `source`
  Value replacement = {};

  const Value& item(std::size_t at) const;
  std::vector<Value> items() const;
  /// Returns the view of `size` items from item `first` on, `stride` apart.
  ListView slice(std::int64_t first, std::int64_t stride, std::int64_t size) const;
  /// Returns whether the view has all items from `start` up to `total`.
  bool reaches_end() const;
};

}  // namespace lathe::jinja
