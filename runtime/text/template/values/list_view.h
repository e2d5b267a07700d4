#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/text/template/values/value.h"

namespace lathe::jinja {

/// The items of a list that are some of the first `total` items of a longer one, which it shares. One of the items of
/// the longer list may be replaced.
struct ListView {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  std::shared_ptr<const std::vector<Value>> source;
  std::size_t total = 0;  ///< items of `source` that views of this one may have
  std::int64_t start = 0, step = 1;
  std::size_t count = 0;
  std::size_t replaced = none;  ///< index in `source`
  Value replacement = {};

  const Value& item(std::size_t at) const;
  std::vector<Value> items() const;
  /// Every `stride`-th item, from item `first` on.
  ListView slice(std::int64_t first, std::int64_t stride, std::int64_t size) const;
  /// Whether these are all items from `start` up to `total`.
  bool reaches_end() const;
};

}  // namespace lathe::jinja
