#include "models/generation/exported/exported_seq2seq.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "ir/support/error.h"
#include "ir/tensor/op/op.h"
#include "models/import/import.h"
#include "models/import/onnx/import_model.h"

namespace lathe {

namespace {

/// The sizes of an input. "none" is that of inputs that a branch does not read. The batch is B, unless the file fixes
/// it.
struct Sizes {
  explicit Sizes(const onnx::ModelInput& input) {
    if (!input.sizes.empty() && input.sizes[0]) batch = Dim(*input.sizes[0]);
  }
  Dim batch{"B"}, source{"S"}, past{"past"}, none{"none"};
};

bool is_of_encoder(const std::string& input) { return input.find(".encoder.") != std::string::npos; }

/// Adds an input of past keys or values [B, heads, rows, size] to the import of a decoder. Without `with_cache` it is
/// an input of the branch that is not taken.
void add_past(importing::ImportOptions& options, const onnx::ModelInput& input, bool with_cache) {
  const Sizes sizes(input);
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
  importing::ImportOptions options;
  options.declares_outputs = false;
  for (const onnx::ModelInput& input : onnx::model_inputs(file)) {
    const Sizes sizes(input);
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

/// Returns `count` copies of rows [1, ..]: [count, ..].
HostTensor repeated(const HostTensor& rows, std::int64_t count) {
  std::vector<std::int64_t> shape = rows.shape();
  shape.front() = count;
  HostTensor copies(rows.dtype(), shape);
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(copies.data() + static_cast<std::size_t>(i) * rows.bytes(), rows.data(), rows.bytes());
  return copies;
}

}  // namespace

ExportedSeq2Seq::ExportedSeq2Seq(const ExportedFiles& files, const Tokens& tokens, std::int64_t most_positions,
                                 const SequenceModelOptions& options)
    : step_file_(files.decoder), options_(options), tokens_(tokens), most_positions_(most_positions) {
  check_exported_options(options);
  import_encoder(files.encoder);
  import_step(files.decoder);
  import_first(files.first);
}

void ExportedSeq2Seq::import_encoder(const std::filesystem::path& file) {
  importing::ImportOptions how;
  how.declares_outputs = false;
  for (const onnx::ModelInput& input : onnx::model_inputs(file)) {
    if (input.name != "input_ids" && input.name != "attention_mask")
      throw UserError(
          fmt::format("{}: the input '{}' is not that of an encoder of texts", file.filename().string(), input.name),
          "exported_inputs", "give an encoder with the inputs input_ids and attention_mask");
    const Sizes sizes(input);
    how.shapes[input.name] = {sizes.batch, sizes.source};
  }
  has_masks_ = how.shapes.contains("attention_mask");
  const importing::ImportedGraph imported = importing::import_graph(file, how);
  imported.graph.output("last_hidden_state",
                        output_of(imported, file, "last_hidden_state", "[batch, length, size]", 3));
  encoder_ = {{file.filename().string(), imported.graph.finish(), imported.parameters}};
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
  const importing::ImportedGraph imported = import_logits(file, how);
  vocabulary_ = *imported.outputs.at("logits").size(1).value();
  step_ = {{file.filename().string(), imported.graph.finish(), imported.parameters}};
  states_.learn(step_.graph.graph());
  const std::vector<std::string> unbound = ir::dims_without_argument(step_.graph.graph());
  takes_past_ = std::ranges::find(unbound, "past") != unbound.end();
}

void ExportedSeq2Seq::import_first(const std::filesystem::path& file) {
  const importing::ImportedGraph imported = importing::import_graph(file, decoder_options(file, false));
  for (const std::string& past : kept_)
    imported.graph.output(past, output_of(imported, file, present_of(past), "[batch, heads, length, size]", 4));
  first_ = {{file.filename().string(), imported.graph.finish(), imported.parameters}};
}

void ExportedSeq2Seq::run(Part& part, const HostTensor& ids, const DimBindings& dims,
                          std::span<const std::int64_t> parents) {
  const ir::Graph& graph = part.graph.graph();
  InputRefs inputs;
  Tensors others;
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
      inputs.emplace(name, others.set(name, HostTensor(node.type.dtype,
                                                       node.type.shape.evaluate({{"B", batch_}, {"none", 0}}))));
  }
  const auto kind = parents.empty() ? ExportedGraph::Kind::plain : ExportedGraph::Kind::beams;
  if (!parents.empty())
    inputs.emplace("parents",
                   others.set("parents", HostTensor::from_ints({batch_}, {parents.begin(), parents.end()})));
  part.graph.compiled(kind, batch_, {}, options_).run(inputs, part.results, dims);
}

void ExportedSeq2Seq::read(std::span<const std::vector<TokenId>> prompts, std::int64_t copies) {
  check_prompts(prompts);
  const std::int64_t count = std::ssize(prompts), sequences = count * copies;
  for (const Part* part : {&encoder_, &first_}) part->graph.check_sequences(count);
  step_.graph.check_sequences(sequences);
  std::int64_t longest = 0;
  for (const std::vector<TokenId>& prompt : prompts) longest = std::max(longest, std::ssize(prompt));
  const bool differ = std::ranges::any_of(prompts, [&](const auto& prompt) { return std::ssize(prompt) != longest; });
  if (differ && !has_masks_)
    throw UserError("prompts of different lengths", "exported_inputs",
                    "the model has no attention_mask or no encoder_attention_mask: give one prompt at a time");
  batch_ = count;
  length_ = 0;
  HostTensor ids(i64, {count, longest});
  mask_ = HostTensor(i64, {count, longest});
  for (std::int64_t b = 0; b < count; ++b) {
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
  run(first_, HostTensor::from_ints({count, 1}, std::vector<TokenId>(prompts.size(), tokens_.start)));
  Parameters& other = step_.graph.other_store(sequences);  // of the sequences before
  states_.erase(other);
  for (const std::string& name : kept_)
    if (other.contains(name)) other.erase(name);
  Parameters& store = step_.graph.store(sequences);
  for (const std::string& name : kept_) {
    HostTensor& rows = first_.results.at(name);
    store.set(name, copies == 1 ? std::move(rows) : repeated(rows, copies));
  }
  first_.results.clear();
  batch_ = sequences;
  if (copies == 1) return;
  mask_ = repeated(mask_, copies);
  hidden_ = repeated(hidden_, copies);
}

const HostTensor& ExportedSeq2Seq::start(std::span<const std::vector<TokenId>> prompts) {
  read(prompts, 1);
  return next(std::vector<TokenId>(prompts.size(), tokens_.start));
}

/// Adds a token to each sequence and computes the logits of the next one.
const HostTensor& ExportedSeq2Seq::next(std::span<const TokenId> tokens, std::span<const std::int64_t> parents) {
  check_positions(length_ + 1, most_positions_);
  capacity_ = CacheStates::capacity(capacity_, length_ + 1, most_positions_);
  states_.fit(step_.graph.store(batch_), {{"B", batch_}, {"capacity", capacity_}}, length_ > 0);
  const HostTensor ids = HostTensor::from_ints({batch_, 1}, {tokens.begin(), tokens.end()});
  run(step_, ids, takes_past_ ? DimBindings{{"past", length_}} : DimBindings{}, parents);
  ++length_;
  return logits();
}

const HostTensor& ExportedSeq2Seq::step(std::span<const TokenId> tokens, const std::vector<bool>& done) {
  check_step(tokens, done, batch_);
  return next(tokens);
}

std::vector<Beam> ExportedSeq2Seq::beams(const std::vector<TokenId>& prompt, const BeamOptions& options) {
  check(options);
  step_.graph.check_sequences(options.width);
  if (!step_.graph.has_beams()) {
    importing::ImportOptions how = decoder_options(step_file_, true);
    how.parents = "parents";
    step_.graph.set_beams(import_logits(step_file_, how).graph.finish());
  }
  read({&prompt, 1}, options.width);
  std::vector<Beam> found =
      search_beams({tokens_.start}, nullptr, options,
                   [&](auto tokens, auto parents) -> const HostTensor& { return next(tokens, parents); });
  batch_ = 0;
  return found;
}

}  // namespace lathe
