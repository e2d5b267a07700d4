#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "passes/lowering/elementwise/elementwise_program.h"
#include "passes/lowering/kernel_context.h"

namespace lathe {

/// Adjacent domain dims covered by one loop index, row-major over their sizes. At most one group runs along the lanes
/// of a vector.
struct IndexGroup {
  std::vector<int> dims;
  kernel::Value base;  ///< i64 scalar: the index of lane 0
  int lanes = 1;       ///< consecutive indices
};

/// A point of the domain, or a vector of points, at which linear forms are evaluated.
class LoopIndices {
 public:
  LoopIndices(KernelContext& context, const Shape& domain, std::vector<IndexGroup> groups)
      : context_(context), domain_(domain), groups_(std::move(groups)) {}

  /// The lanes of a vector before `end` that are in no earlier run. The element of lane i is at base + i * stride.
  struct Run {
    kernel::Value base, end;  ///< i64; `end` may be outside of the vector
    std::int64_t stride = 1;
  };
  /// Value of a linear form: `base + lane * stride`, or a vector of positions if the dims of the lane group do not
  /// merge into one stride.
  struct Position {
    kernel::Value base;
    Dim stride = 0;                       ///< between lanes
    bool differs_by_vector = false;       ///< base is valid only if a lane of this vector is inside the domain
    std::optional<kernel::Value> vector;  ///< i64, one per lane; replaces base and stride
    /// Set with `vector` if the lanes are at most a few runs of elements at a small stride, which are faster to load
    /// than single elements. The lanes of a vector continue in the next line if they pass the end of one.
    std::vector<Run> runs = {};
  };
  Position position(const Linear& form);
  /// Same as one value: a scalar if it does not vary along the lanes, otherwise a vector.
  kernel::Value value(const Linear& form);
  int lanes() const;
  /// Domain dims that the lanes run over, one bit each.
  std::uint64_t lane_dims() const;

  /// Returns the stride of the form along dims that merge(): the stride of the innermost dim whose size is not 1.
  static Dim merged_stride(const Linear& form, const std::vector<int>& dims, const Shape& domain);

 private:
  bool stay_in_one_run(const IndexGroup& group) const;
  kernel::Value component(std::size_t group, std::size_t which, bool of_lanes);
  bool is_outermost(const IndexGroup& group, std::size_t which) const;
  bool wraps_once(const IndexGroup& group) const;
  /// Elements of a form at one stride: the dims of a group from `first` on, `size` elements.
  struct Line {
    std::size_t first;
    std::int64_t size, stride;
  };
  Line line(const Linear& form, const IndexGroup& group) const;
  int most_runs(std::size_t group, std::int64_t stride) const;
  std::vector<Run> runs(const Linear& form, std::size_t group, kernel::Value base);
  const std::vector<std::vector<kernel::Value>>& lines(std::size_t group, std::size_t dims, int count);
  void add_wrapped_components(std::size_t group);
  bool is_one_of_many(const Linear& form) const;
  kernel::Value offset(const Linear& form);
  KernelContext& context_;
  const Shape& domain_;
  std::vector<IndexGroup> groups_;
  std::map<std::tuple<std::size_t, std::size_t, bool>, kernel::Value> components_;
  /// By the first dim of a line of the lane group: the indices along the dims before it, for each line of a vector.
  std::map<std::size_t, std::vector<std::vector<kernel::Value>>> lines_;
};

}  // namespace lathe
