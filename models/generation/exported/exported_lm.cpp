#include "models/generation/exported/exported_lm.h"

#include <fmt/core.h>

#include <algorithm>

#include "frontend/ops/derived_ops.h"
#include "ir/support/error.h"
#include "models/generation/exported/exported_files.h"
#include "models/import/import.h"
#include "models/import/onnx/import_model.h"

namespace lathe {

namespace {

const Dim& batch_dim() {
  static const Dim batch{"B"};
  return batch;
}
const Dim& past_dim() {
  static const Dim past{"past"};
  return past;
}

/// Throws UserError [exported_inputs] for an input that a decoder with a cache does not have.
[[noreturn]] void refuse_input(const std::string& file, const std::string& input) {
  const bool has_encoder = input.starts_with("encoder_") || input.find(".encoder.") != std::string::npos;
  if (has_encoder)
    throw UserError(fmt::format("{}: the input '{}' is that of a decoder with cross attention", file, input),
                    "exported_inputs",
                    "add the encoder to the directory: encoder_model.onnx, with decoder_model_merged.onnx, or with "
                    "decoder_model.onnx and decoder_with_past_model.onnx");
  throw UserError(fmt::format("{}: the input '{}' is not that of a decoder with a cache", file, input),
                  "exported_inputs",
                  "give input_ids, attention_mask, position_ids and past_key_values.* [batch, heads, past, size], as "
                  "optimum exports them");
}

/// Returns the import of a decoder that reads `length` new tokens.
importing::ImportOptions import_options(const std::filesystem::path& file, const Dim& length) {
  importing::ImportOptions options;
  options.declares_outputs = false;
  for (const onnx::ModelInput& input : onnx::model_inputs(file)) {
    if (input.name == "input_ids" || input.name == "position_ids") {
      options.shapes[input.name] = {batch_dim(), length};
    } else if (input.name == "attention_mask") {
      options.shapes[input.name] = {batch_dim(), past_dim() + length};
    } else if (input.name == "use_cache_branch") {
      options.inputs.set(input.name, HostTensor::from_ints({1}, {1}, boolean));
    } else if (input.name.starts_with(past_prefix) && input.name.find(".encoder.") == std::string::npos &&
               input.sizes.size() == 4 && input.sizes[1] && input.sizes[3]) {
      options.shapes[input.name] = {batch_dim(), Dim(*input.sizes[1]), past_dim(), Dim(*input.sizes[3])};
      options.caches[input.name] = {present_of(input.name), 2};
    } else {
      refuse_input(file.filename().string(), input.name);
    }
  }
  if (!options.shapes.contains("input_ids") || options.caches.empty())
    throw UserError(fmt::format("{} has no input input_ids, or no past_key_values.*", file.filename().string()),
                    "exported_inputs",
                    "export the decoder with its cache, such as the task text-generation-with-past");
  return options;
}

}  // namespace

ExportedLm::ExportedLm(const std::filesystem::path& file, std::int64_t most_positions,
                       const SequenceModelOptions& options)
    : file_(file), options_(options), most_positions_(most_positions) {
  check_exported_options(options);
  import();
}

void ExportedLm::import() {
  const Dim length("T");
  const importing::ImportOptions how = import_options(file_, length);
  has_mask_ = how.shapes.contains("attention_mask");
  has_positions_ = how.shapes.contains("position_ids");
  importing::ImportedGraph imported = importing::import_graph(file_, how);
  const auto found = imported.outputs.find("logits");
  const bool is_found = found != imported.outputs.end() && found->second.rank() == 3 && found->second.size(2).value();
  if (!is_found)
    throw UserError(fmt::format("{} has no output logits [batch, length, vocabulary]", file_.filename().string()),
                    "exported_inputs", "export a model for text generation");
  const Tensor last = found->second.select(1, length.unnamed() - Dim(1));
  vocabulary_ = *found->second.size(2).value();
  imported.graph.output("logits", last.to(at_least_f32(last.dtype())));
  graph_ = {imported.graph.finish(), imported.parameters};
  states_.learn(graph_.graph());
  const std::vector<std::string> unbound = ir::dims_without_argument(graph_.graph());
  takes_past_ = std::ranges::find(unbound, "past") != unbound.end();
}

void ExportedLm::make_room(std::int64_t length, bool keep) {
  if (length > most_positions_)
    throw UserError(
        fmt::format("{} tokens are more than the {} positions that the model has", length, most_positions_),
        "generation_length", "give a shorter prompt, or ask for fewer tokens");
  capacity_ = CacheStates::capacity(capacity_, length, most_positions_);
  const std::int64_t B = std::ssize(padding_);
  states_.fit(graph_.store(B), {{"B", B}, {"capacity", capacity_}}, keep);
}

/// Reads `count` new tokens of each sequence, ids [B, count], and computes the logits after them. `sizes` are known
/// to the code.
void ExportedLm::read(const DimBindings& sizes, const std::vector<TokenId>& ids, std::int64_t count) {
  const std::int64_t B = std::ssize(padding_), all = length_ + count;
  const HostTensor tokens = HostTensor::from_ints({B, count}, ids);
  HostTensor mask(i64, {B, all}), positions(i64, {B, count});
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int64_t padding = padding_[static_cast<std::size_t>(b)];
    for (std::int64_t t = 0; t < all; ++t) mask.set_int(b * all + t, t < padding ? 0 : 1);
    for (std::int64_t t = 0; t < count; ++t)
      positions.set_int(b * count + t, std::max<std::int64_t>(length_ + t - padding, 0));
  }
  InputRefs inputs{{"input_ids", tokens}};
  if (has_mask_) inputs.emplace("attention_mask", mask);
  if (has_positions_) inputs.emplace("position_ids", positions);
  Executable& code = graph_.compiled(B, sizes, options_);
  code.run(inputs, {{"logits", logits_}}, takes_past_ ? DimBindings{{"past", length_}} : DimBindings{});
  length_ = all;
}

const HostTensor& ExportedLm::start(std::span<const std::vector<TokenId>> prompts) {
  check_prompts(prompts);
  const auto size = [](const auto& prompt) { return std::ssize(prompt); };
  const std::int64_t longest = size(*std::ranges::max_element(prompts, {}, size));
  const bool differ = std::ranges::any_of(prompts, [&](const auto& prompt) { return size(prompt) != longest; });
  if (differ && !(has_mask_ && has_positions_))
    throw UserError("prompts of different lengths", "exported_inputs",
                    "the model has no attention_mask or no position_ids: give one prompt at a time");
  padding_.clear();
  for (const auto& prompt : prompts) padding_.push_back(longest - size(prompt));
  length_ = 0;
  states_.erase(graph_.store(prompts.size() == 1 ? 2 : 1));  // of the sequences before
  make_room(longest, false);
  const std::vector<std::int64_t> shape{std::ssize(prompts), vocabulary_};
  if (logits_.shape() != shape)
    logits_ = HostTensor(graph_.graph()[graph_.graph().outputs[0].value].type.dtype, shape);
  for (std::int64_t first = 0; first < longest; first += options_.chunk) {
    const std::int64_t count = std::min(options_.chunk, longest - first);
    std::vector<TokenId> ids;
    for (std::size_t b = 0; b < prompts.size(); ++b)
      for (std::int64_t t = first; t < first + count; ++t)
        ids.push_back(t < padding_[b] ? prompts[b][0] : prompts[b][static_cast<std::size_t>(t - padding_[b])]);
    read({}, ids, count);
  }
  return logits_;
}

const HostTensor& ExportedLm::step(std::span<const TokenId> tokens, const std::vector<bool>& done) {
  if (tokens.size() != padding_.size() || padding_.empty() || (!done.empty() && done.size() != tokens.size()))
    throw UserError(
        fmt::format("{} tokens and {} marks for {} sequences", tokens.size(), done.size(), padding_.size()),
        "generation_batch", "give one token for each sequence that was started");
  make_room(length_ + 1, true);
  read({{"T", 1}}, {tokens.begin(), tokens.end()}, 1);
  return logits_;
}

std::vector<Beam> ExportedLm::beams(const std::vector<TokenId>&, const BeamOptions&) {
  throw UserError("beam search with a decoder from an ONNX file", "exported_options",
                  "choose one token at a time: --beams 1");
}

}  // namespace lathe
