#include "models/generation/exported/exported_graph.h"

#include <fmt/core.h>

#include "frontend/ops/derived_ops.h"
#include "ir/support/error.h"
#include "ir/tensor/op/op.h"

namespace lathe {

void ExportedGraph::check_sequences(std::int64_t sequences) const {
  for (const ir::ValueId id : graph_.arguments()) {
    const ir::Node& node = graph_[id];
    if (node.op->name.value != "input" || node.type.rank() == 0) continue;
    const std::optional<std::int64_t> batch = node.type.shape[0].value();
    if (batch && *batch != sequences)
      throw UserError(
          fmt::format("{}: the input '{}' has a fixed batch of {}, and there are {} sequences", file_, node.name,
                      *batch, sequences),
          "exported_inputs",
          "export the model with a batch of any size, as optimum does; a file with a batch of 1 takes one "
          "prompt at a time, without --beams");
  }
}

Executable& ExportedGraph::compiled(Kind kind, std::int64_t sequences, DimBindings sizes,
                                    const SequenceModelOptions& options) {
  Side& of = side(sequences);
  if (sequences == 1) sizes["B"] = 1;
  const std::pair key(kind, std::move(sizes));
  const auto found = of.compiled.find(key);
  if (found != of.compiled.end()) return found->second;
  const ir::Graph& graph = kind == Kind::beams ? beams_ : graph_;
  return of.compiled.emplace(key, compile_over(of.store, graph, options, key.second)).first->second;
}

importing::ImportedGraph import_logits(const std::filesystem::path& file, const importing::ImportOptions& how) {
  importing::ImportedGraph imported = importing::import_graph(file, how);
  auto found = imported.outputs.find("logits");
  if (imported.outputs.size() == 1) found = imported.outputs.begin();
  const bool is_found = found != imported.outputs.end() && found->second.rank() == 3 && found->second.size(2).value();
  if (!is_found)
    throw UserError(fmt::format("{} has no output logits [batch, length, vocabulary] with a known vocabulary",
                                file.filename().string()),
                    "exported_inputs", "export a model for text generation with the size of its output layer");
  Tensor& logits = found->second;
  logits = logits.select(1, logits.size(1).unnamed() - Dim(1));
  logits = logits.to(at_least_f32(logits.dtype()));
  imported.graph.output("logits", logits);
  return imported;
}

}  // namespace lathe
