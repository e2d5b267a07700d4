#include "models/generation/exported/exported_lm.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "models/generation/exported/exported_files.h"
#include "models/import/import.h"
#include "models/import/onnx/import_model.h"

namespace lathe {

namespace {

/// Returns the batch of an input: B, unless the file fixes it.
Dim batch_of(const onnx::ModelInput& input) {
  const bool is_fixed = !input.sizes.empty() && input.sizes[0];
  return is_fixed ? Dim(*input.sizes[0]) : Dim("B");
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

/// Returns the import of a decoder that reads T new tokens after `past` cached ones.
importing::ImportOptions import_options(const std::filesystem::path& file, ExportedGraph::Kind kind) {
  const Dim length("T"), past("past");
  importing::ImportOptions options;
  options.declares_outputs = false;
  if (kind == ExportedGraph::Kind::beams) options.parents = "parents";
  for (const onnx::ModelInput& input : onnx::model_inputs(file)) {
    if (input.name == "input_ids" || input.name == "position_ids") {
      options.shapes[input.name] = {batch_of(input), length};
    } else if (input.name == "attention_mask") {
      options.shapes[input.name] = {batch_of(input), past + length};
    } else if (input.name == "use_cache_branch") {
      options.inputs.set(input.name, HostTensor::from_ints({1}, {1}, boolean));
    } else if (input.name.starts_with(past_prefix) && input.name.find(".encoder.") == std::string::npos &&
               input.sizes.size() == 4 && input.sizes[1] && input.sizes[3]) {
      options.shapes[input.name] = {batch_of(input), Dim(*input.sizes[1]), past, Dim(*input.sizes[3])};
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
  const importing::ImportOptions how = import_options(file, ExportedGraph::Kind::plain);
  has_mask_ = how.shapes.contains("attention_mask");
  has_positions_ = how.shapes.contains("position_ids");
  const importing::ImportedGraph imported = import_logits(file, how);
  vocabulary_ = *imported.outputs.at("logits").size(1).value();
  graph_ = {file.filename().string(), imported.graph.finish(), imported.parameters};
  states_.learn(graph_.graph());
  const std::vector<std::string> unbound = ir::dims_without_argument(graph_.graph());
  takes_past_ = std::ranges::find(unbound, "past") != unbound.end();
}

void ExportedLm::make_room(std::int64_t length, bool keep) {
  check_positions(length, most_positions_);
  capacity_ = CacheStates::capacity(capacity_, length, most_positions_);
  const std::int64_t B = std::ssize(padding_);
  states_.fit(graph_.store(B), {{"B", B}, {"capacity", capacity_}}, keep);
}

/// Reads `count` new tokens of each sequence, ids [B, count], and computes the logits after them. `sizes` are known
/// to the code. With `parents`, each sequence continues the cached rows of another.
void ExportedLm::read(const DimBindings& sizes, const std::vector<TokenId>& ids, std::int64_t count,
                      std::span<const std::int64_t> parents) {
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
  HostTensor from;
  if (!parents.empty()) {
    from = HostTensor::from_ints({B}, {parents.begin(), parents.end()});
    inputs.emplace("parents", from);
  }
  const auto kind = parents.empty() ? ExportedGraph::Kind::plain : ExportedGraph::Kind::beams;
  Executable& code = graph_.compiled(kind, B, sizes, options_);
  code.run(inputs, {{"logits", logits_}}, takes_past_ ? DimBindings{{"past", length_}} : DimBindings{});
  length_ = all;
}

const HostTensor& ExportedLm::start(std::span<const std::vector<TokenId>> prompts) {
  check_prompts(prompts);
  graph_.check_sequences(std::ssize(prompts));
  const auto size = [](const auto& prompt) { return std::ssize(prompt); };
  const std::int64_t longest = size(*std::ranges::max_element(prompts, {}, size));
  const bool differ = std::ranges::any_of(prompts, [&](const auto& prompt) { return size(prompt) != longest; });
  if (differ && !(has_mask_ && has_positions_))
    throw UserError("prompts of different lengths", "exported_inputs",
                    "the model has no attention_mask or no position_ids: give one prompt at a time");
  padding_.clear();
  for (const auto& prompt : prompts) padding_.push_back(longest - size(prompt));
  length_ = 0;
  states_.erase(graph_.other_store(std::ssize(prompts)));  // of the sequences before
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
  check_step(tokens, done, std::ssize(padding_));
  return advance(tokens, {});
}

/// Adds a token to each sequence. With `parents`, sequence i continues sequence parents[i] of the step before.
const HostTensor& ExportedLm::advance(std::span<const TokenId> tokens, std::span<const std::int64_t> parents) {
  make_room(length_ + 1, true);
  read({{"T", 1}}, {tokens.begin(), tokens.end()}, 1, parents);
  return logits_;
}

/// Turns the single started sequence into `count` copies.
void ExportedLm::repeat_sequence(std::int64_t count) {
  Parameters& one = graph_.store(1);
  states_.repeat(one, graph_.store(count), count);
  states_.erase(one);
  padding_.assign(static_cast<std::size_t>(count), padding_.front());
  logits_ = HostTensor(logits_.dtype(), {count, vocabulary_});
}

std::vector<Beam> ExportedLm::beams(const std::vector<TokenId>& prompt, const BeamOptions& options) {
  check(options);
  graph_.check_sequences(options.width);
  if (!graph_.has_beams())
    graph_.set_beams(import_logits(file_, import_options(file_, ExportedGraph::Kind::beams)).graph.finish());
  std::vector<Beam> found =
      search_beams(prompt, &start({&prompt, 1}), options, [&](auto tokens, auto parents) -> const HostTensor& {
        if (std::ssize(padding_) != options.width) repeat_sequence(options.width);
        return advance(tokens, parents);
      });
  padding_.clear();
  return found;
}

}  // namespace lathe
