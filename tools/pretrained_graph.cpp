#include "tools/pretrained_graph.h"

#include "frontend/generation/cached_lm.h"
#include "ir/support/error.h"

namespace lathe::tools {

bool is_model_folder(const std::filesystem::path& path) {
  std::error_code failed;
  return std::filesystem::is_directory(path, failed) && std::filesystem::exists(path / "config.json", failed);
}

const std::map<std::string, GraphPart>& graph_parts() {
  static const std::map<std::string, GraphPart> parts{{"logits", GraphPart::logits},
                                                      {"loss", GraphPart::loss},
                                                      {"prompt", GraphPart::prompt},
                                                      {"ragged", GraphPart::ragged},
                                                      {"step", GraphPart::step}};
  return parts;
}

ir::Graph pretrained_graph(const pretrained::Pretrained& loaded, GraphPart part, DType dtype) {
  const pretrained::CausalLm& model = *loaded.model;
  switch (part) {
    case GraphPart::prompt: return CachedLm::graph(model, CachedLm::Kind::prompt, dtype);
    case GraphPart::ragged: return CachedLm::graph(model, CachedLm::Kind::ragged, dtype);
    case GraphPart::step: return CachedLm::graph(model, CachedLm::Kind::step, dtype);
    case GraphPart::logits:
    case GraphPart::loss: break;
  }
  const Dim B("B"), T("T");
  Graph g(loaded.config.text("model_type"));
  const pretrained::TokenInputs inputs{.ids = g.input("input_ids", i64, {B, T}), .dtype = dtype};
  if (part == GraphPart::loss)
    g.output("loss", model.loss(inputs, g.input("labels", i64, {B, T})));
  else
    g.output("logits", model.logits(inputs));
  return g.finish();
}

}  // namespace lathe::tools
