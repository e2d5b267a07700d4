#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ir/mesh/placement.h"
#include "passes/shard/plan/factors.h"
#include "passes/shard/plan/sequence_cuts.h"

namespace lathe::shard {

/// Which factors of a graph's dims are split over which axis of a mesh, and the resulting local sizes.
///
///   B:data, data=4:   f32[B, T, d_model=512]  ->  f32[B@data, T, d_model=512], and B is 4*B@data elsewhere
///   h:model, model=2: f32[d_model=512, 1536]  ->  f32[d_model=512, _@model=768], 1536 being (3, h=8, d_k=64)
class SplitPlan {
 public:
  /// Splits every dim with a name of `splits` on its outermost factor that can be split, and with it all dims that
  /// the ops of the graph tie to it. A dim that is named with several axes is split over the first, each shard over
  /// the next. Throws UserError [shard_name] if no dim has the name, [shard_divide] for a size that the axis does not
  /// divide, [shard_gather] if an op needs all of a dim, [shard_axis] for tied dims with different names that are
  /// named with axes, [shard_repeat] for a value with two dims over one axis.
  SplitPlan(const CutGraph& graph, const FactoredGraph& factored, const Mesh& mesh, std::span<const Split> splits);

  /// Returns the plan of the body of a loop.
  SplitPlan body(ir::ValueId loop) const;

  const Mesh& mesh() const { return mesh_; }
  /// Returns the cut at a node; null for any other node.
  const Cut* cut(ir::ValueId id) const;
  /// Returns the axes along which a cut is split on one side only, the outermost first.
  std::vector<int> axes_of_cut(ir::ValueId id) const;
  /// Returns the axes over which a factor is split, the outermost first.
  const std::vector<int>& axes_of(Factor factor) const;
  /// The name by which a split factor was first found, and the value with that name in its type.
  struct Origin {
    std::string name;
    ir::ValueId at;
  };
  const Origin& origin(Factor factor) const { return origins_.at(factors_.find(factor)); }
  /// Whether a dim of a value is split over the axis.
  bool is_split(ir::ValueId id, int dim, int axis) const;
  bool is_split(ir::ValueId id, int axis) const;
  bool is_split_dim(ir::ValueId id, int dim) const;
  /// Whether the result of a loop is each process's share of a sum along the axis.
  bool adds_up_split(ir::ValueId loop, int axis) const;
  /// Returns the placement of the value; never partial.
  Placement placement(ir::ValueId id) const;
  /// Returns a size of the global graph in terms of local dims.
  Dim whole(const Dim& size) const;
  /// Returns how many processes share dim `dim` of the value.
  std::int64_t ranks(ir::ValueId id, int dim) const;
  /// Returns the local size, with a name such as B@data or d_ff@model.
  Dim local(ir::ValueId id, int dim) const;
  Shape local_shape(ir::ValueId id) const;

 private:
  SplitPlan(const SplitPlan& outer, const ir::Graph& body, const GraphDims& dims);
  void seed(const Split& split);
  std::set<Factor> whole_sides() const;
  void assign(Factor factor, int axis, const std::string& name, ir::ValueId at, int dim);
  void require_free(Factor factor, int axis, const std::string& name, ir::ValueId at, int dim) const;
  bool substitute(const Dim& size, std::int64_t ranks, const std::string& axis, const std::string& preferred);
  std::vector<int> axes_of(ir::ValueId id, int dim) const;
  void check_repeats() const;
  FactorList factors(ir::ValueId id, int dim) const { return factors_.resolve(dims_.dim(id, dim)); }
  std::string describe(ir::ValueId id) const;

  const ir::Graph& graph_;
  const std::map<ir::ValueId, Cut>& cuts_;
  const GraphDims& dims_;
  const Factors& factors_;
  Mesh mesh_;
  std::vector<std::vector<int>> axes_of_;   ///< by factor
  std::map<Factor, Origin> origins_;        ///< of each split factor
  std::map<std::string, Dim> substituted_;  ///< unknowns of the global graph in terms of local ones
};

}  // namespace lathe::shard
