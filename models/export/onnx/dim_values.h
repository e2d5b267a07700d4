#pragma once

#include <map>
#include <string>

#include "ir/tensor/graph.h"
#include "models/export/onnx/model_builder.h"

namespace lathe::onnx {

/// The sizes of a graph as values of the model: a size with a name is computed from the shapes of inputs at run time.
/// Each size is computed once, around the bodies of loops.
class DimValues {
 public:
  /// The inputs of `graph` are values of the model. Throws UserError [export_size] at the first node with a size that
  /// follows from no input's size.
  DimValues(ModelBuilder& to, const ir::Graph& graph);

  Text vector(const Dim& size);    ///< i64[1]
  Text scalar(const Dim& size);    ///< i64[]
  Text shape(const Shape& shape);  ///< i64[rank]

 private:
  /// Dim `axis` of the input `name` is `scale * unknown + rest`.
  struct Source {
    std::string name;
    int axis;
    std::int64_t scale;
    Dim rest;
  };

  void find_sources(const ir::Graph& graph);
  void require_sources(const ir::Graph& graph) const;
  bool knows(const Dim& size) const;
  Text unknown(const std::string& name);
  Text term(const Dim::Term& term);

  ModelBuilder& to_;
  std::map<std::string, Source, std::less<>> sources_;  ///< by unknown
  std::map<std::string, Text, std::less<>> unknowns_;   ///< values of unknowns, i64[1]
  std::map<std::string, Text, std::less<>> vectors_;    ///< values of sizes, i64[1]
};

}  // namespace lathe::onnx
