#pragma once

#include <cstdint>
#include <vector>

#include "ir/tensor/graph.h"

namespace lathe {

/// A tree of longest paths: the parent of each value is the deepest value that it depends on. For many pairs it shows
/// immediately whether one value depends on the other.
class PathTree {
 public:
  /// Values must be added in topological order: sources(i, f) calls f(ValueId) for each value that value i depends
  /// on, all of them less than i.
  template <class Sources>
  PathTree(std::size_t size, Sources&& sources) : depth_(size, 0), parent_(size) {
    for (std::size_t i = 0; i < size; ++i) sources(i, [&](ir::ValueId source) { hang(i, source); });
    number();
  }

  /// Returns the length of the longest path to a value; 0 for a value without sources.
  std::int32_t depth(ir::ValueId id) const { return depth_[at(id)]; }
  /// Whether `source` is on the longest path to `value`, which then depends on it; it may be the value itself. If
  /// false, the value may still depend on it.
  bool on_path(ir::ValueId source, ir::ValueId value) const {
    return first_[at(source)] <= first_[at(value)] && first_[at(value)] < first_[at(source)] + count_[at(source)];
  }

 private:
  static std::size_t at(ir::ValueId id) { return static_cast<std::size_t>(id.index); }
  void hang(std::size_t i, ir::ValueId source);
  void number();

  std::vector<std::int32_t> depth_;
  std::vector<ir::ValueId> parent_;          // the deepest source; invalid for a root
  std::vector<std::int32_t> first_, count_;  // the numbers of a value and its descendants: first, first + 1, ...
};

}  // namespace lathe
