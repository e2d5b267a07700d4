#include "tools/pretrained/graph_part.h"

#include "models/generation/cached_lm.h"
#include "models/generation/cached_seq2seq.h"
#include "models/pretrained/language_model.h"
#include "passes/transforms/evaluation.h"

namespace lathe::tools {

namespace {

ir::Graph graph_of(const pretrained::PretrainedSeq2SeqLm& loaded, GraphPart part, const PartOptions& options) {
  const pretrained::Seq2SeqLm& model = *loaded.model;
  const Dim &B = options.batch, S("S"), T("T");
  switch (part) {
    case GraphPart::prompt: return CachedSeq2Seq::graph(model, CachedSeq2Seq::Kind::encode, options.dtype, false, B);
    case GraphPart::ragged: return CachedSeq2Seq::graph(model, CachedSeq2Seq::Kind::encode, options.dtype, true, B);
    case GraphPart::step: return CachedSeq2Seq::graph(model, CachedSeq2Seq::Kind::step, options.dtype, false, B);
    case GraphPart::logits:
    case GraphPart::loss: break;
  }
  Graph g(loaded.config.text("model_type"));
  pretrained::Seq2SeqInputs inputs{
      .ids = g.input("input_ids", i64, {B, S}), .decoder_ids = {}, .dtype = options.dtype};
  if (part == GraphPart::loss) {
    const Tensor labels = g.input("labels", i64, {B, T});
    inputs.decoder_ids = model.shifted(labels);
    g.output("loss", model.loss(inputs, labels));
  } else {
    inputs.decoder_ids = g.input("decoder_input_ids", i64, {B, T});
    g.output("logits", model.logits(inputs));
  }
  return g.finish();
}

ir::Graph graph_of(const pretrained::Pretrained& loaded, GraphPart part, const PartOptions& options) {
  const pretrained::CausalLm& model = *loaded.model;
  const Dim &B = options.batch, T("T");
  switch (part) {
    case GraphPart::prompt: return CachedLm::graph(model, CachedLm::Kind::prompt, options.dtype, B);
    case GraphPart::ragged: return CachedLm::graph(model, CachedLm::Kind::ragged, options.dtype, B);
    case GraphPart::step: return CachedLm::graph(model, CachedLm::Kind::step, options.dtype, B);
    case GraphPart::logits:
    case GraphPart::loss: break;
  }
  Graph g(loaded.config.text("model_type"));
  const pretrained::TokenInputs inputs{.ids = g.input("input_ids", i64, {B, T}), .dtype = options.dtype};
  if (part == GraphPart::loss)
    g.output("loss", model.loss(inputs, g.input("labels", i64, {B, T})));
  else
    g.output("logits", model.logits(inputs));
  return g.finish();
}

}  // namespace

bool is_model_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::file_type type = std::filesystem::status(path, ignored).type();
  return type == std::filesystem::file_type::directory || type == std::filesystem::file_type::none ||
         path.extension() == ".gguf";
}

const std::map<std::string, GraphPart>& graph_parts() {
  static const std::map<std::string, GraphPart> parts{{"logits", GraphPart::logits},
                                                      {"loss", GraphPart::loss},
                                                      {"prompt", GraphPart::prompt},
                                                      {"ragged", GraphPart::ragged},
                                                      {"step", GraphPart::step}};
  return parts;
}

ir::Graph pretrained_graph(const std::filesystem::path& folder, GraphPart part, const PartOptions& options) {
  return pretrained::with_language_model(
      pretrained::find_adapted(folder, options.adapter), options.load,
      [&](const auto& loaded) { return ir::evaluation(graph_of(loaded.model, part, options)); });
}

Parameters pretrained_weights(const std::filesystem::path& folder) {
  return pretrained::with_language_model(pretrained::find_adapted(folder), {},
                                         [](const auto& loaded) { return loaded.model.weights; });
}

}  // namespace lathe::tools
