#include "models/generation/exported/static_cache_lm.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "ir/tensor/op/op.h"
#include "models/generation/exported/exported_files.h"
#include "models/generation/exported/exported_graph.h"
#include "models/import/import.h"

namespace lathe {

namespace {

constexpr const char* how_to_export =
    "export the decoder with its cache, as transformers.integrations.executorch.convert_and_export_with_cache does";

bool is_input(const ir::Node& node, std::string_view name) {
  return node.op->name.value == "input" && node.name == name;
}

}  // namespace

StaticCacheLm::StaticCacheLm(const std::filesystem::path& file, std::int64_t most_positions,
                             const SequenceModelOptions& options)
    : file_(file.filename().string()), options_(options), most_positions_(most_positions) {
  check_exported_options(options);
  const importing::ImportedGraph imported = import_logits(file, {.declares_outputs = false});
  vocabulary_ = *imported.outputs.begin()->second.size(-1).value();
  graph_ = imported.graph.finish();
  store_ = imported.parameters;
  check_inputs();
  learn_caches();
}

void StaticCacheLm::check_inputs() {
  bool has_ids = false, has_positions = false;
  for (const ir::ValueId id : graph_.arguments()) {
    const ir::Node& node = graph_[id];
    if (is_input(node, "input_ids") && node.type.rank() == 2 && node.type.shape[0].value()) {
      batch_ = *node.type.shape[0].value();
      new_tokens_ = node.type.shape[1].unnamed();
      has_ids = true;
    } else if (is_input(node, "cache_position") && node.type.rank() == 1) {
      has_positions = true;
    } else if (node.op->name.value == "input") {
      throw UserError(fmt::format("{}: the input '{}' {} is not that of a decoder with a static cache", file_,
                                  node.name, node.type.shape.to_string()),
                      "exported_inputs",
                      "give input_ids [batch, length] with a fixed batch, and cache_position [length]");
    }
  }
  if (!has_ids || !has_positions)
    throw UserError(fmt::format("{} has no input {}", file_, has_ids ? "cache_position" : "input_ids"),
                    "exported_inputs", how_to_export);
  if (new_tokens_.value() && !new_tokens_.is(1))
    throw UserError(fmt::format("{} reads exactly {} tokens in each run", file_, new_tokens_.to_string()),
                    "exported_inputs", "export it with a length of 1, or of any number");
}

void StaticCacheLm::learn_caches() {
  std::int64_t rows = 0;
  for (const ir::Update& update : graph_.updates) {
    const ir::Node& state = graph_[update.state];
    empty_.set(state.name, store_.snapshot(state.name));
    if (state.type.rank() == 4) rows = std::max(rows, state.type.shape[2].value().value_or(0));
  }
  if (rows == 0)
    throw UserError(fmt::format("{} writes to no buffer [batch, heads, rows, size], so it has no cache", file_),
                    "exported_inputs", how_to_export);
  most_positions_ = std::min(most_positions_, rows);
}

/// Reads `count` new tokens of each sequence, ids [B, count], and computes the logits after them.
void StaticCacheLm::read(const std::vector<TokenId>& ids, std::int64_t count) {
  const HostTensor tokens = HostTensor::from_ints({batch_, count}, ids);
  HostTensor positions(i64, {count});
  for (std::int64_t t = 0; t < count; ++t) positions.set_int(t, length_ + t);
  const std::vector<std::string> unknown = new_tokens_.unknowns();
  const bool is_known = count == 1 && unknown.size() == 1 && new_tokens_ == Dim(unknown[0]);
  const std::int64_t key = is_known ? 1 : 0;
  auto found = compiled_.find(key);
  if (found == compiled_.end()) {
    const DimBindings sizes = is_known ? DimBindings{{unknown[0], 1}} : DimBindings{};
    found = compiled_.emplace(key, compile_over(store_, graph_, options_, sizes)).first;
  }
  found->second.run({{"input_ids", tokens}, {"cache_position", positions}}, {{"logits", logits_}});
  length_ += count;
}

const HostTensor& StaticCacheLm::start(std::span<const std::vector<TokenId>> prompts) {
  check_prompts(prompts);
  if (std::ssize(prompts) != batch_)
    throw UserError(
        fmt::format("{}: the cache has a batch of {}, and there are {} sequences", file_, batch_, prompts.size()),
        "exported_inputs", "export the model with this batch, or give as many prompts as it has");
  const std::int64_t length = std::ssize(prompts[0]);
  if (std::ranges::any_of(prompts, [&](const auto& prompt) { return std::ssize(prompt) != length; }))
    throw UserError("prompts of different lengths", "exported_inputs",
                    "a static cache has one length for all sequences: give prompts of one length");
  check_positions(length, most_positions_);
  for (const auto& [name, value] : empty_) store_.set(name, value);
  length_ = 0;
  is_started_ = true;
  const std::vector<std::int64_t> shape{batch_, vocabulary_};
  if (logits_.shape() != shape) logits_ = HostTensor(graph_[graph_.outputs[0].value].type.dtype, shape);
  const std::int64_t chunk = new_tokens_.value() ? 1 : options_.chunk;
  for (std::int64_t first = 0; first < length; first += chunk) {
    const std::int64_t count = std::min(chunk, length - first);
    std::vector<TokenId> ids;
    for (const auto& prompt : prompts) ids.insert(ids.end(), prompt.begin() + first, prompt.begin() + first + count);
    read(ids, count);
  }
  return logits_;
}

const HostTensor& StaticCacheLm::step(std::span<const TokenId> tokens, const std::vector<bool>& done) {
  check_step(tokens, done, is_started_ ? batch_ : 0);
  check_positions(length_ + 1, most_positions_);
  read({tokens.begin(), tokens.end()}, 1);
  return logits_;
}

std::vector<Beam> StaticCacheLm::beams(const std::vector<TokenId>& prompt, const BeamOptions& options) {
  check(options);
  if (options.width > 1)
    throw UserError(fmt::format("{}: beam search with {} beams of a static cache", file_, options.width),
                    "exported_inputs", "leave out --beams, or export the decoder as an ONNX file with its cache");
  std::vector<Beam> found = search_beams(prompt, &start({&prompt, 1}), options,
                                         [&](auto tokens, auto) -> const HostTensor& { return step(tokens); });
  is_started_ = false;
  return found;
}

}  // namespace lathe
