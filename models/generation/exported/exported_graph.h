#pragma once

#include <map>

#include "models/generation/sequence_model.h"
#include "runtime/parameters/parameters.h"

namespace lathe {

/// A graph from an ONNX file with the dim B of its sequences, compiled for one sequence and for any number. One
/// sequence has code of its own, because its products read the weights only once, and a store of its own, because its
/// states have other shapes. Both stores share the weights.
class ExportedGraph {
 public:
  ExportedGraph() = default;
  ExportedGraph(ir::Graph graph, const Parameters& weights)
      : graph_(std::move(graph)), one_{weights.borrowed()}, several_{weights} {}

  const ir::Graph& graph() const { return graph_; }
  /// Returns the store with the states of this many sequences. It has all weights.
  Parameters& store(std::int64_t sequences) { return side(sequences).store; }
  const Parameters& weights() const { return several_.store; }
  /// Returns the code for this many sequences and for other sizes that are known. Compiles it at its first use.
  /// Throws UserErrors of compile().
  Executable& compiled(std::int64_t sequences, DimBindings sizes, const SequenceModelOptions& options);

 private:
  struct Side {
    Parameters store = {};
    std::map<DimBindings, Executable> compiled = {};
  };
  Side& side(std::int64_t sequences) { return sequences == 1 ? one_ : several_; }

  ir::Graph graph_;
  Side one_, several_;
};

}  // namespace lathe
