#include "tools/pretrained/graph_part.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "ir/support/error.h"
#include "models/generation/cached_lm.h"
#include "models/generation/cached_seq2seq.h"
#include "models/pretrained/encoders/encoder.h"
#include "models/pretrained/families.h"
#include "models/pretrained/image_models/image_model.h"
#include "models/pretrained/language_model.h"
#include "passes/transforms/evaluation.h"

namespace lathe::tools {

namespace {

const std::string& part_name(GraphPart part) {
  return std::ranges::find(graph_parts(), part, [](const auto& named) { return named.second; })->first;
}

[[noreturn]] void no_part(GraphPart part, std::string_view kind) {
  const bool is_of_encoders = part == GraphPart::states || part == GraphPart::pooled;
  throw UserError(
      fmt::format("--part {} is not a part of {}", part_name(part), kind), "usage",
      is_of_encoders ? "give logits, loss, prompt, ragged or step" : "give logits, loss, states or pooled");
}

/// Rejects inputs that the kind of model does not take.
void require_inputs(const PartOptions& options, const std::set<std::string>& known, std::string_view kind) {
  for (const std::string& input : options.inputs)
    if (!known.contains(input))
      throw UserError(fmt::format("--inputs {}: {} has no such input", input, kind), "usage",
                      known.empty() ? "leave it out" : fmt::format("its inputs are {}", fmt::join(known, ", ")));
}

std::optional<Tensor> input_if(Graph& g, const PartOptions& options, const std::string& input, const Shape& shape) {
  static const std::map<std::string, std::string_view> names{
      {"mask", "attention_mask"}, {"positions", "position_ids"}, {"types", "token_type_ids"}};
  if (!options.inputs.contains(input)) return std::nullopt;
  return g.input(names.at(input), i64, shape);
}

/// Rejects inputs for a part of generation, whose inputs are fixed.
void require_no_inputs(const PartOptions& options, GraphPart part) {
  if (part == GraphPart::prompt || part == GraphPart::ragged || part == GraphPart::step)
    require_inputs(options, {}, fmt::format("--part {}", part_name(part)));
}

ir::Graph graph_of(const pretrained::PretrainedModel<pretrained::Encoder>& loaded, GraphPart part,
                   const PartOptions& options) {
  require_inputs(options, {"mask", "positions", "types"}, "an encoder");
  const pretrained::Encoder& model = *loaded.model;
  Graph g(loaded.config.text("model_type"));
  const Shape shape{options.batch, Dim("T")};
  const pretrained::EncoderInputs inputs{.ids = g.input("input_ids", i64, shape),
                                         .mask = input_if(g, options, "mask", shape),
                                         .types = input_if(g, options, "types", shape),
                                         .positions = input_if(g, options, "positions", shape),
                                         .dtype = options.dtype};
  if (part == GraphPart::loss)
    g.output("loss", model.loss(inputs, g.input("labels", i64, shape)));
  else if (part == GraphPart::pooled)
    g.output("pooler_output", model.pool(model.hidden_states(inputs).back()));
  else if (part == GraphPart::states || (part == GraphPart::logits && !model.has_head()))
    g.output("last_hidden_state", model.hidden_states(inputs).back());
  else if (part == GraphPart::logits)
    g.output("logits", model.logits(inputs));
  else
    no_part(part, "an encoder");
  return g.finish();
}

ir::Graph graph_of(const pretrained::PretrainedModel<pretrained::ImageModel>& loaded, GraphPart part,
                   const PartOptions& options) {
  require_inputs(options, {}, "an image model");
  const pretrained::ImageModel& model = *loaded.model;
  Graph g(loaded.config.text("model_type"));
  const Tensor images = g.input("pixel_values", options.dtype, model.image_shape(options.batch));
  if (part == GraphPart::loss)
    g.output("loss", model.loss(images, g.input("labels", i64, {options.batch})));
  else if (part == GraphPart::pooled)
    g.output("pooler_output", model.pool(images));
  else if (part == GraphPart::states || (part == GraphPart::logits && !model.has_classes()))
    g.output("last_hidden_state", model.states(images));
  else if (part == GraphPart::logits)
    g.output("logits", model.logits(images));
  else
    no_part(part, "an image model");
  return g.finish();
}

/// Loads a model of any kind with its adapter, and returns the result of `use`.
template <class Use>
auto with_model(const pretrained::AdaptedFolders& folders, const pretrained::LoadOptions& options, const Use& use) {
  using pretrained::ModelKind;
  const std::optional<ModelKind> kind = pretrained::kind_of(pretrained::read_config(folders.model).config);
  if (kind == ModelKind::encoder) return use(pretrained::load_adapted<pretrained::Encoder>(folders, options));
  if (kind == ModelKind::image) return use(pretrained::load_adapted<pretrained::ImageModel>(folders, options));
  return pretrained::with_language_model(folders, options, use);
}

ir::Graph graph_of(const pretrained::PretrainedSeq2SeqLm& loaded, GraphPart part, const PartOptions& options) {
  const pretrained::Seq2SeqLm& model = *loaded.model;
  const Dim &B = options.batch, S("S"), T("T");
  require_no_inputs(options, part);
  switch (part) {
    case GraphPart::prompt: return CachedSeq2Seq::graph(model, CachedSeq2Seq::Kind::encode, options.dtype, false, B);
    case GraphPart::ragged: return CachedSeq2Seq::graph(model, CachedSeq2Seq::Kind::encode, options.dtype, true, B);
    case GraphPart::step: return CachedSeq2Seq::graph(model, CachedSeq2Seq::Kind::step, options.dtype, false, B);
    case GraphPart::logits:
    case GraphPart::loss: break;
    case GraphPart::states:
    case GraphPart::pooled: no_part(part, "an encoder-decoder model");
  }
  require_inputs(options, {}, "an encoder-decoder model");
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
  require_no_inputs(options, part);
  switch (part) {
    case GraphPart::prompt: return CachedLm::graph(model, CachedLm::Kind::prompt, options.dtype, B);
    case GraphPart::ragged: return CachedLm::graph(model, CachedLm::Kind::ragged, options.dtype, B);
    case GraphPart::step: return CachedLm::graph(model, CachedLm::Kind::step, options.dtype, B);
    case GraphPart::logits:
    case GraphPart::loss: break;
    case GraphPart::states:
    case GraphPart::pooled: no_part(part, "a decoder-only model");
  }
  require_inputs(options, {"mask", "positions"}, "a decoder-only model");
  Graph g(loaded.config.text("model_type"));
  const pretrained::TokenInputs inputs{.ids = g.input("input_ids", i64, {B, T}),
                                       .mask = input_if(g, options, "mask", {B, T}),
                                       .positions = input_if(g, options, "positions", {B, T}),
                                       .dtype = options.dtype};
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
  static const std::map<std::string, GraphPart> parts{{"logits", GraphPart::logits}, {"loss", GraphPart::loss},
                                                      {"prompt", GraphPart::prompt}, {"ragged", GraphPart::ragged},
                                                      {"step", GraphPart::step},     {"states", GraphPart::states},
                                                      {"pooled", GraphPart::pooled}};
  return parts;
}

std::set<std::string> parse_inputs(const std::string& text) {
  std::set<std::string> inputs;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::string input = text.substr(at, end - at);
    at = end + 1;
    if (input != "mask" && input != "positions" && input != "types")
      throw UserError(fmt::format("--inputs {}: there is no input '{}'", text, input), "usage",
                      "give mask, positions or types, such as --inputs mask,positions");
    inputs.insert(std::move(input));
  }
  return inputs;
}

ir::Graph pretrained_graph(const std::filesystem::path& folder, GraphPart part, const PartOptions& options) {
  return with_model(pretrained::find_adapted(folder, options.adapter), options.load,
                    [&](const auto& loaded) { return ir::evaluation(graph_of(loaded.model, part, options)); });
}

Parameters pretrained_weights(const std::filesystem::path& folder) {
  return with_model(pretrained::find_adapted(folder), {}, [](const auto& loaded) { return loaded.model.weights; });
}

}  // namespace lathe::tools
