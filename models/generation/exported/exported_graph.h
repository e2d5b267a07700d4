#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "models/generation/sequence_model.h"
#include "models/import/import.h"
#include "runtime/parameters/parameters.h"

namespace lathe {

/// A graph from an ONNX file with the dim B of its sequences, compiled for one sequence and for any number. One
/// sequence has code of its own, because its products read the weights only once, and a store of its own, because its
/// states have other shapes. Both stores share the weights. The same graph with parents (ImportOptions::parents), for
/// beams of a search, has the same states.
class ExportedGraph {
 public:
  enum class Kind : std::uint8_t { plain, beams };

  ExportedGraph() = default;
  ExportedGraph(std::string file, ir::Graph graph, const Parameters& weights)
      : file_(std::move(file)), graph_(std::move(graph)), one_{weights.borrowed()}, several_{weights} {}

  const ir::Graph& graph() const { return graph_; }
  bool has_beams() const { return !beams_.nodes.empty(); }
  void set_beams(ir::Graph graph) { beams_ = std::move(graph); }

  /// Throws UserError [exported_inputs] if the file has a fixed number of sequences other than this one.
  void check_sequences(std::int64_t sequences) const;
  /// Returns the store with the states of this many sequences. It has all weights.
  Parameters& store(std::int64_t sequences) { return side(sequences).store; }
  /// Returns the store with the states of other numbers of sequences.
  Parameters& other_store(std::int64_t sequences) { return side(sequences == 1 ? 2 : 1).store; }
  const Parameters& weights() const { return several_.store; }
  /// Returns the code for this many sequences and for other sizes that are known. Compiles it at its first use.
  /// Throws UserErrors of compile().
  Executable& compiled(Kind kind, std::int64_t sequences, DimBindings sizes, const SequenceModelOptions& options);

 private:
  struct Side {
    Parameters store = {};
    std::map<std::pair<Kind, DimBindings>, Executable> compiled = {};
  };
  Side& side(std::int64_t sequences) { return sequences == 1 ? one_ : several_; }

  std::string file_;
  ir::Graph graph_, beams_;
  Side one_, several_;
};

/// Imports a decoder with an output [B, length, vocabulary], which is called logits or is the only one. The only
/// output of the graph is the last row of each sequence, logits [B, vocabulary], in f32 or f64. Throws UserError
/// [exported_inputs] for other outputs, and those of importing::import_graph().
importing::ImportedGraph import_logits(const std::filesystem::path& file, const importing::ImportOptions& how);

}  // namespace lathe
