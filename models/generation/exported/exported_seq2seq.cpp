#include "models/generation/exported/exported_seq2seq.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "ir/tensor/op/op.h"
#include "models/import/import.h"
#include "models/import/onnx/import_model.h"

namespace lathe {

namespace {

/// The sizes of the inputs. "none" is that of inputs that a branch does not read.
struct Sizes {
  Dim batch{"B"}, source{"S"}, past{"past"}, none{"none"};
};

bool is_of_encoder(const std::string& input) { return input.find(".encoder.") != std::string::npos; }

/// Adds an input of past keys or values [B, heads, rows, size] to the import of a decoder. Without `with_cache` it is
/// an input of the branch that is not taken.
void add_past(importing::ImportOptions& options, const onnx::ModelInput& input, bool with_cache) {
  const Sizes sizes;
  const bool is_source = is_of_encoder(input.name);
  const Dim rows = !with_cache ? sizes.none : is_source ? sizes.source : sizes.past;
  options.shapes[input.name] = {sizes.batch, Dim(*input.sizes[1]), rows, Dim(*input.sizes[3])};
  if (!with_cache) return;
  if (is_source)
    options.states.insert(input.name);
  else
    options.caches[input.name] = {present_of(input.name), 2};
}

/// Returns the import of a decoder for one new token, which reads cached rows, or none yet.
importing::ImportOptions decoder_options(const std::filesystem::path& file, bool with_cache) {
  const Sizes sizes;
  importing::ImportOptions options;
  options.declares_outputs = false;
  for (const onnx::ModelInput& input : onnx::model_inputs(file)) {
    if (input.name == "input_ids") {
      options.shapes[input.name] = {sizes.batch, 1};
    } else if (input.name == "encoder_attention_mask") {
      options.shapes[input.name] = {sizes.batch, sizes.source};
    } else if (input.name == "encoder_hidden_states" && input.sizes.size() == 3) {
      options.shapes[input.name] = {sizes.batch, sizes.source, input.sizes[2] ? Dim(*input.sizes[2]) : Dim("hidden")};
    } else if (input.name == "use_cache_branch") {
      options.inputs.set(input.name, HostTensor::from_ints({1}, {with_cache ? 1 : 0}, boolean));
    } else if (input.name.starts_with(past_prefix) && input.sizes.size() == 4 && input.sizes[1] && input.sizes[3]) {
      add_past(options, input, with_cache);
    } else {
      throw UserError(fmt::format("{}: the input '{}' is not that of a decoder with an encoder",
                                  file.filename().string(), input.name),
                      "exported_inputs",
                      "give input_ids, encoder_attention_mask, encoder_hidden_states and past_key_values.*.decoder.* "
                      "and past_key_values.*.encoder.* [batch, heads, rows, size], as optimum exports them");
    }
  }
  return options;
}

/// Returns an output of a file. Throws UserError [exported_inputs] if it has none of this name.
const Tensor& output_of(const importing::ImportedGraph& imported, const std::filesystem::path& file,
                        const std::string& name, std::string_view shape, int rank) {
  const auto found = imported.outputs.find(name);
  if (found != imported.outputs.end() && found->second.rank() == rank) return found->second;
  throw UserError(fmt::format("{} has no output '{}' {}", file.filename().string(), name, shape), "exported_inputs",
                  "export the model with its cache, such as by the task text2text-generation-with-past");
}

}  // namespace

ExportedSeq2Seq::ExportedSeq2Seq(const ExportedFiles& files, const Tokens& tokens, std::int64_t most_positions,
                                 const SequenceModelOptions& options)
    : options_(options), tokens_(tokens), most_positions_(most_positions) {
  check_exported_options(options);
  import_encoder(files.encoder);
  import_step(files.decoder);
  import_first(files.first);
}

void ExportedSeq2Seq::import_encoder(const std::filesystem::path& file) {
  const Sizes sizes;
  importing::ImportOptions how;
  how.declares_outputs = false;
  for (const onnx::ModelInput& input : onnx::model_inputs(file)) {
    if (input.name != "input_ids" && input.name != "attention_mask")
      throw UserError(
          fmt::format("{}: the input '{}' is not that of an encoder of texts", file.filename().string(), input.name),
          "exported_inputs", "give an encoder with the inputs input_ids and attention_mask");
    how.shapes[input.name] = {sizes.batch, sizes.source};
  }
  has_masks_ = how.shapes.contains("attention_mask");
  const importing::ImportedGraph imported = importing::import_graph(file, how);
  imported.graph.output("last_hidden_state",
                        output_of(imported, file, "last_hidden_state", "[batch, length, size]", 3));
  encoder_ = {{imported.graph.finish(), imported.parameters}};
}

void ExportedSeq2Seq::import_step(const std::filesystem::path& file) {
  const importing::ImportOptions how = decoder_options(file, true);
  if (!how.shapes.contains("input_ids") || how.caches.empty() || how.states.empty())
    throw UserError(
        fmt::format("{} has no input input_ids, past_key_values.*.decoder.* or past_key_values.*.encoder.*",
                    file.filename().string()),
        "exported_inputs", "export the model with its cache, such as by the task text2text-generation-with-past");
  kept_.assign(how.states.begin(), how.states.end());
  has_masks_ = has_masks_ && how.shapes.contains("encoder_attention_mask");
  const importing::ImportedGraph imported = importing::import_graph(file, how);
  const Tensor& logits = output_of(imported, file, "logits", "[batch, length, vocabulary]", 3);
  if (!logits.size(2).value())
    throw UserError(fmt::format("{}: the size of the vocabulary is not known", file.filename().string()),
                    "exported_inputs", "export the model with the size of its output layer");
  vocabulary_ = *logits.size(2).value();
  imported.graph.output("logits", logits.select(1, 0).to(at_least_f32(logits.dtype())));
  step_ = {{imported.graph.finish(), imported.parameters}};
  states_.learn(step_.graph.graph());
  const std::vector<std::string> unbound = ir::dims_without_argument(step_.graph.graph());
  takes_past_ = std::ranges::find(unbound, "past") != unbound.end();
}

void ExportedSeq2Seq::import_first(const std::filesystem::path& file) {
  const importing::ImportedGraph imported = importing::import_graph(file, decoder_options(file, false));
  for (const std::string& past : kept_)
    imported.graph.output(past, output_of(imported, file, present_of(past), "[batch, heads, length, size]", 4));
  first_ = {{imported.graph.finish(), imported.parameters}};
}

void ExportedSeq2Seq::run(Part& part, const HostTensor& ids, const DimBindings& dims) {
  const ir::Graph& graph = part.graph.graph();
  InputRefs inputs;
  Tensors empty;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    if (node.op->name.value != "input") continue;
    const std::string& name = node.name;
    if (name == "input_ids")
      inputs.emplace(name, ids);
    else if (name.ends_with("attention_mask"))
      inputs.emplace(name, mask_);
    else if (name == "encoder_hidden_states")
      inputs.emplace(name, hidden_);
    else
      inputs.emplace(
          name, empty.set(name, HostTensor(node.type.dtype, node.type.shape.evaluate({{"B", batch_}, {"none", 0}}))));
  }
  part.graph.compiled(batch_, {}, options_).run(inputs, part.results, dims);
}

const HostTensor& ExportedSeq2Seq::start(std::span<const std::vector<TokenId>> prompts) {
  check_prompts(prompts);
  std::int64_t longest = 0;
  for (const std::vector<TokenId>& prompt : prompts) longest = std::max(longest, std::ssize(prompt));
  const bool differ = std::ranges::any_of(prompts, [&](const auto& prompt) { return std::ssize(prompt) != longest; });
  if (differ && !has_masks_)
    throw UserError("prompts of different lengths", "exported_inputs",
                    "the model has no attention_mask or no encoder_attention_mask: give one prompt at a time");
  batch_ = std::ssize(prompts);
  length_ = 0;
  HostTensor ids(i64, {batch_, longest});
  mask_ = HostTensor(i64, {batch_, longest});
  for (std::int64_t b = 0; b < batch_; ++b) {
    const std::vector<TokenId>& prompt = prompts[static_cast<std::size_t>(b)];
    for (std::int64_t s = 0; s < longest; ++s) {
      const bool is_token = s < std::ssize(prompt);
      ids.set_int(b * longest + s, is_token ? prompt[static_cast<std::size_t>(s)] : tokens_.padding);
      mask_.set_int(b * longest + s, is_token ? 1 : 0);
    }
  }
  run(encoder_, ids);
  hidden_ = std::move(encoder_.results.at("last_hidden_state"));
  encoder_.results.clear();
  Parameters& other = step_.graph.store(batch_ == 1 ? 2 : 1);  // of the sequences before
  states_.erase(other);
  for (const std::string& name : kept_)
    if (other.contains(name)) other.erase(name);
  const std::vector<TokenId> starts(prompts.size(), tokens_.start);
  run(first_, HostTensor::from_ints({batch_, 1}, starts));
  for (const std::string& name : kept_) step_.graph.store(batch_).set(name, std::move(first_.results.at(name)));
  first_.results.clear();
  return next(starts);
}

/// Adds a token to each sequence and computes the logits of the next one.
const HostTensor& ExportedSeq2Seq::next(std::span<const TokenId> tokens) {
  if (length_ + 1 > most_positions_)
    throw UserError(
        fmt::format("{} tokens are more than the {} positions that the model has", length_ + 1, most_positions_),
        "generation_length", "ask for fewer tokens");
  capacity_ = CacheStates::capacity(capacity_, length_ + 1, most_positions_);
  states_.fit(step_.graph.store(batch_), {{"B", batch_}, {"capacity", capacity_}}, length_ > 0);
  const HostTensor ids = HostTensor::from_ints({batch_, 1}, {tokens.begin(), tokens.end()});
  run(step_, ids, takes_past_ ? DimBindings{{"past", length_}} : DimBindings{});
  ++length_;
  return logits();
}

const HostTensor& ExportedSeq2Seq::step(std::span<const TokenId> tokens, const std::vector<bool>& done) {
  if (batch_ == 0 || std::ssize(tokens) != batch_ || (!done.empty() && done.size() != tokens.size()))
    throw UserError(fmt::format("{} tokens and {} marks for {} sequences", tokens.size(), done.size(), batch_),
                    "generation_batch", "give one token for each sequence that was started");
  return next(tokens);
}

std::vector<Beam> ExportedSeq2Seq::beams(const std::vector<TokenId>& /*prompt*/, const BeamOptions& /*options*/) {
  throw UserError("beam search with a decoder from an ONNX file", "exported_options",
                  "choose one token at a time: --beams 1");
}

}  // namespace lathe
