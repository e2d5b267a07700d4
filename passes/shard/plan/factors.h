#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/tensor/graph.h"
#include "ir/tensor/node_map.h"

namespace lathe::shard {

/// A factor of the sizes of dims, as a position in Factors. Dims that ops tie together have the same factors.
using Factor = int;
/// A dim as a row-major product of factors, the outermost first: 3*d_model, from which h and d_k are split off, is
/// (3, h, d_k). A size of 1 has none.
using FactorList = std::vector<Factor>;

/// Why a factor cannot be split: an op needs all of a dim that holds it.
struct Obstacle {
  ir::ValueId node;
  std::string why;  ///< "it takes elements 1 to 5 of 8"
};

/// The factors of a graph: which ones are the same, and which are products of others.
class Factors {
 public:
  /// Returns the factors of a new dim.
  FactorList make(const Dim& size);
  /// Returns a list in which no factor is a product of others or the same as another one.
  FactorList resolve(const FactorList& list) const;
  /// Declares that two dims have the same elements in the same order. If the sizes of their factors do not divide
  /// each other, the rest of both gets an obstacle: `node` ties them.
  void tie(const FactorList& a, const FactorList& b, ir::ValueId node);
  /// Declares that no factor of the list may be split.
  void block(const FactorList& list, const Obstacle& obstacle);

  Factor find(Factor factor) const;
  const Dim& size(Factor factor) const { return at(factor).size; }
  const std::optional<Obstacle>& obstacle(Factor factor) const { return at(factor).obstacle; }
  int count() const { return static_cast<int>(entries_.size()); }

 private:
  struct Entry {
    Dim size;
    Factor same = -1;  ///< the factor that it is the same as
    FactorList parts;  ///< the factors whose product it is
    std::optional<Obstacle> obstacle = {};
  };
  const Entry& at(Factor factor) const { return entries_[find(factor)]; }
  Entry& entry(Factor factor) { return entries_[factor]; }
  void unite(Factor a, Factor b);
  /// Makes `factor` the product of `parts`.
  void part(Factor factor, const FactorList& parts);
  bool make_comparable(Factor a, Factor b);

  std::vector<Entry> entries_;
};

/// A dim of a value that an op computes or reads only as a whole.
struct Blocked {
  ir::ValueId node, value;
  int dim;
  std::string why;
};

/// The dims of every value of a graph as factors, and those of the bodies of its loops.
struct GraphDims {
  ir::NodeMap<std::vector<FactorList>> dims;  ///< by node, then by dim; resolve() before use
  /// By loop node. The results of one loop share its body.
  std::map<ir::ValueId, std::shared_ptr<GraphDims>> bodies = {};
  /// By loop node: the factors that its body adds up into the result. If one is split, each process has a share of
  /// the sum (passes/shard/plan/body_sums.h).
  std::map<ir::ValueId, FactorList> sums = {};

  const FactorList& dim(ir::ValueId id, int d) const { return dims[id][d]; }
};

/// A graph of primitives. Its bodies use the same factors.
struct FactoredGraph : GraphDims {
  Factors factors;
  std::vector<Blocked> blocked;
};

struct Cut;  // passes/shard/plan/sequence_cuts.h

/// Expands the composites of a graph and of the bodies of its loops, and removes dead nodes.
ir::Graph primitives_of(const ir::Graph& graph);

/// Ties the dims of the values of a graph of primitives as its ops do, except the dim of a cut. An update ties a
/// state's dims to those of its new value.
///
/// A loop ties the dims of its operands and results as its body does. Iterations do not communicate: a dim is blocked
/// if an op of the body looks at all of it, or folds it (passes/shard/plan/body_sums.h has the exceptions).
FactoredGraph factor_dims(const ir::Graph& graph, const std::map<ir::ValueId, Cut>& cuts);

}  // namespace lathe::shard
