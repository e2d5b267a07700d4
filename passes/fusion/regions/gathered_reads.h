#pragma once

#include "passes/fusion/fusion.h"
#include "passes/fusion/reads.h"

namespace lathe {

/// Limits the reads that the rows of a region gather. A row that folds several dims, such as a mean over an image,
/// covers them by one index. If a read does not advance by one fixed stride along them, as in the window of a
/// convolution, its vectors contain elements of several lines of the image. If the length of a line is unknown, a CPU
/// loads each element by itself, at an address that takes divisions. To compute the values line by line, store them,
/// and read them back takes a fraction of the time.
class GatheredReads {
 public:
  /// `most` is FusionOptions::most_gathers. The other arguments must outlive this object.
  GatheredReads(const ir::Graph& graph, const FusionPlan& plan, const NodeReads& reads, std::optional<int> most)
      : graph_(graph), plan_(plan), reads_(reads), most_(most) {}

  /// Whether a region may fold the last `inner` dims of its domain.
  bool allow(int region, int inner) const;
  /// Whether it may also have a member whose dims have these domain dims.
  bool allow(int region, ir::ValueId member, const std::vector<int>& space) const;
  /// Whether it may have all members of another one, which reads it.
  bool allow_all(int region, int reader) const;

 private:
  std::vector<int> gathered_dims(const Region& region, int inner) const;
  int count(int region, const std::vector<int>& inner) const;
  int count(ir::ValueId member, const std::vector<int>& space, int region, const std::vector<int>& inner) const;

  const ir::Graph& graph_;
  const FusionPlan& plan_;
  const NodeReads& reads_;
  std::optional<int> most_;
};

}  // namespace lathe
