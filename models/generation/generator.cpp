#include "models/generation/generator.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "ir/support/error.h"
#include "models/generation/beam_texts.h"
#include "models/generation/cached_lm.h"
#include "models/generation/cached_seq2seq.h"
#include "models/generation/exported/exported_files.h"
#include "models/generation/exported/exported_lm.h"
#include "models/generation/exported/exported_seq2seq.h"
#include "models/generation/exported/static_cache_lm.h"
#include "models/generation/stop_strings.h"
#include "models/pretrained/language_model.h"

namespace lathe {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<Generation::TokenId> tokens_of(const Tokenizer& tokenizer, std::string_view text, bool special) {
  const Encoding encoding = tokenizer.encode(text, {.special_tokens = special, .offsets = false});
  return {encoding.ids.begin(), encoding.ids.end()};
}

}  // namespace

std::string_view name(Finish finish) {
  switch (finish) {
    case Finish::none: return "none";
    case Finish::length: return "length";
    case Finish::stop_token: return "stop_token";
    case Finish::stop_string: return "stop_string";
  }
  throw InternalError("a finish out of range");
}

struct Generation::Text {
  std::vector<TokenId> prompt, tokens;
  std::vector<TokenId> sequence;  ///< the opening and the new tokens
  std::int64_t opening, longest;  ///< initial and maximum length of `sequence`
  Tokenizer::Stream stream;
  StopStrings stops;
  Sampler sampler;
  std::string text, piece;
  Finish finish = Finish::none;
};

Generation::Generation(SequenceModel& model, const Tokenizer& tokenizer, std::vector<std::vector<TokenId>> prompts,
                       const GenerationOptions& options)
    : model_(&model), tokenizer_(tokenizer), options_(options) {
  check(options, model.vocabulary_size());
  check_prompts(prompts);
  if (options.beams.results > 1)
    throw UserError(fmt::format("{} results of a beam search are asked for", options.beams.results),
                    "generation_beams", "Generator::beams gives several; a Generation gives the best one");
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<TokenId> opening = model.opening(prompts[i]);
    texts_.push_back({.prompt = prompts[i],
                      .tokens = {},
                      .sequence = opening,
                      .opening = std::ssize(opening),
                      .longest = longest_sequence(options, std::ssize(opening), model.most_positions()),
                      .stream = tokenizer.stream(),
                      .stops = StopStrings(options.stop_strings),
                      .sampler = Sampler(options.sampling, options.seed + i),
                      .text = {},
                      .piece = {}});
  }
  if (options.beams.width > 1) return;
  const Clock::time_point start = Clock::now();
  model.start(prompts);
  prompt_seconds_ = seconds_since(start);
}

Generation::~Generation() = default;
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;

std::size_t Generation::size() const { return texts_.size(); }
const std::string& Generation::piece(std::size_t i) const { return texts_.at(i).piece; }
const std::string& Generation::text(std::size_t i) const { return texts_.at(i).text; }
const std::vector<Generation::TokenId>& Generation::tokens(std::size_t i) const { return texts_.at(i).tokens; }
const std::vector<Generation::TokenId>& Generation::prompt(std::size_t i) const { return texts_.at(i).prompt; }
Finish Generation::finish(std::size_t i) const { return texts_.at(i).finish; }

void Generation::run() {
  while (step()) {
  }
}

std::int64_t Generation::new_tokens() const {
  std::size_t sum = 0;
  for (const Text& text : texts_) sum += text.tokens.size();
  return static_cast<std::int64_t>(sum);
}

void Generation::end(Text& text, Finish finish) {
  text.finish = finish;
  if (finish == Finish::stop_string) return;
  const std::string rest = text.stops.push(text.stream.finish()) + text.stops.finish();
  text.piece += rest;
  text.text += rest;
}

void Generation::add(Text& text, TokenId token) {
  text.tokens.push_back(token);
  text.sequence.push_back(token);
  const auto& stops = options_.stop_tokens;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) return end(text, Finish::stop_token);
  const std::string piece = text.stops.push(text.stream.push(static_cast<lathe::TokenId>(token)));
  text.piece += piece;
  text.text += piece;
  if (text.stops.met()) return end(text, Finish::stop_string);
  if (std::ssize(text.sequence) >= text.longest) end(text, Finish::length);
}

PartialSequence Generation::partial(const Text& text) const {
  return {
      .tokens = text.sequence, .prompt = text.opening, .longest = text.longest, .end_tokens = options_.stop_tokens};
}

/// Generates the whole text by beam search.
void Generation::search(Text& text) {
  const Clock::time_point start = Clock::now();
  const std::vector<Beam> found =
      model_->beams(text.prompt, beam_options(options_, text.opening, text.longest, tokenizer_));
  prompt_seconds_ += seconds_since(start);
  const std::vector<TokenId>& tokens = found.front().tokens;
  for (auto token = tokens.begin() + text.opening; token != tokens.end() && text.finish == Finish::none; ++token)
    add(text, *token);
}

bool Generation::step() {
  const auto ended = [](const Text& text) { return text.finish != Finish::none; };
  for (Text& text : texts_) text.piece.clear();
  const auto open = std::find_if_not(texts_.begin(), texts_.end(), ended);
  if (open == texts_.end()) return false;
  if (options_.beams.width > 1) {
    search(*open);
    return true;
  }
  if (!has_logits_) {
    const Clock::time_point start = Clock::now();
    std::vector<TokenId> tokens;
    std::vector<bool> done;
    for (const Text& text : texts_) {
      tokens.push_back(text.tokens.back());
      done.push_back(ended(text));
    }
    model_->step(tokens, done);
    step_seconds_ += seconds_since(start);
  }
  has_logits_ = false;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    Text& text = texts_[i];
    if (ended(text)) continue;
    std::vector<double> logits = logits_row(model_->logits(), static_cast<std::int64_t>(i));
    adjust_logits(options_, partial(text), logits);
    add(text, text.sampler.next(logits));
  }
  return true;
}

std::vector<Generation::TokenId> prompt_tokens(const Tokenizer& tokenizer, std::string_view text) {
  return tokens_of(tokenizer, text, true);
}

std::vector<Generation::TokenId> chat_tokens(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                             const std::vector<ChatMessage>& messages) {
  // The template emits the special tokens itself.
  ChatOptions options;
  options.add_generation_prompt = true;
  return tokens_of(tokenizer, chat.render(messages, options).text, false);
}

namespace {

/// Returns the model of a directory's exported files. `files` gets its weights.
std::unique_ptr<SequenceModel> open_exported(const ExportedFiles& exported, pretrained::ModelFiles& files,
                                             const SequenceModelOptions& options) {
  const pretrained::Config& config = files.config;
  const auto limit = [](std::int64_t most) { return most > 0 ? most : std::numeric_limits<std::int64_t>::max(); };
  const std::int64_t most = config.integer("max_position_embeddings", 0);
  const auto with_weights = [&](auto model) {
    files.weights = model->weights();
    return model;
  };
  if (exported.encoder.empty()) {
    const std::int64_t positions = limit(most > 0 ? most : config.integer("n_positions", 0));
    if (exported.decoder.extension() == ".pt2")
      return with_weights(std::make_unique<StaticCacheLm>(exported.decoder, positions, options));
    return with_weights(std::make_unique<ExportedLm>(exported.decoder, positions, options));
  }
  const std::int64_t padding = config.integer("pad_token_id", 0);
  const ExportedSeq2Seq::Tokens tokens{.start = config.integer("decoder_start_token_id", padding),
                                       .padding = padding};
  return with_weights(std::make_unique<ExportedSeq2Seq>(exported, tokens, limit(most), options));
}

Generator load_exported(const std::filesystem::path& folder, const ExportedFiles& exported,
                        const SequenceModelOptions& options) {
  pretrained::ModelFiles files = pretrained::read_config(folder);
  std::unique_ptr<SequenceModel> model = open_exported(exported, files, options);
  Generator generator(std::move(model), std::move(files), Tokenizer::load(folder));
  generator.set_defaults(load_generation_options(folder, folder));
  return generator;
}

}  // namespace

Generator Generator::load(const std::filesystem::path& folder, const SequenceModelOptions& options,
                          const pretrained::LoadOptions& weights, const std::filesystem::path& adapter) {
  if (const std::optional<ExportedFiles> exported = find_exported(folder)) {
    if (!adapter.empty() || weights.weights != pretrained::WeightFormat::stored)
      throw UserError("an adapter or quantized weights for an exported decoder", "exported_options",
                      "give a directory with .safetensors files");
    return load_exported(folder, *exported, options);
  }
  const auto made = [&](auto model, const std::filesystem::path& texts) {
    if (fits_in_memory(model.weights)) model.weights.copy_to_memory();
    const std::filesystem::path base = model.folder;
    Generator generator(std::move(model), Tokenizer::load(texts), options);
    generator.text_folder_ = texts;
    generator.set_defaults(load_generation_options(texts, base));
    return generator;
  };
  return pretrained::with_language_model(pretrained::find_adapted(folder, adapter), weights, [&](auto loaded) {
    return made(std::move(loaded.model), loaded.text_folder);
  });
}

Generator::Generator(pretrained::Pretrained model, const Tokenizer& tokenizer, const SequenceModelOptions& options)
    : tokenizer_(tokenizer.for_embeddings(model.model->vocabulary_size())), text_folder_(model.folder) {
  const auto kept = std::make_shared<pretrained::Pretrained>(std::move(model));
  files_ = kept;
  sequences_ = std::make_unique<CachedLm>(*kept->model, kept->weights, options);
}

Generator::Generator(pretrained::PretrainedSeq2SeqLm model, const Tokenizer& tokenizer,
                     const SequenceModelOptions& options)
    : tokenizer_(tokenizer.for_embeddings(model.model->vocabulary_size())), text_folder_(model.folder) {
  const auto kept = std::make_shared<pretrained::PretrainedSeq2SeqLm>(std::move(model));
  files_ = kept;
  sequences_ = std::make_unique<CachedSeq2Seq>(*kept->model, kept->weights, options);
}

Generator::Generator(std::unique_ptr<SequenceModel> model, pretrained::ModelFiles files, const Tokenizer& tokenizer)
    : files_(std::make_shared<const pretrained::ModelFiles>(std::move(files))),
      tokenizer_(tokenizer.for_embeddings(model->vocabulary_size())),
      text_folder_(files_->folder),
      sequences_(std::move(model)) {}

void Generator::set_defaults(const GenerationOptions& options) { defaults_ = options; }

Generation Generator::start(std::vector<std::vector<Generation::TokenId>> prompts, const GenerationOptions& options) {
  return Generation(*sequences_, tokenizer_, std::move(prompts), options);
}

Generation Generator::start(std::span<const std::string> prompts, const GenerationOptions& options) {
  std::vector<std::vector<Generation::TokenId>> tokens;
  for (const std::string& prompt : prompts) tokens.push_back(prompt_tokens(tokenizer_, prompt));
  return start(std::move(tokens), options);
}

TextPieces Generator::generate(std::string_view prompt, const GenerationOptions& options) {
  const std::string text(prompt);
  return TextPieces(start(std::span(&text, 1), options));
}

std::vector<Generator::BeamText> Generator::beams(std::string_view prompt, const GenerationOptions& options) {
  return beams(prompt_tokens(tokenizer_, prompt), options);
}

std::vector<Generator::BeamText> Generator::beams(const std::vector<Generation::TokenId>& prompt,
                                                  const GenerationOptions& options) {
  check(options, sequences_->vocabulary_size());
  const std::int64_t opening = std::ssize(sequences_->opening(prompt)),
                     longest = longest_sequence(options, opening, sequences_->most_positions());
  std::vector<BeamText> texts;
  for (Beam& beam : sequences_->beams(prompt, beam_options(options, opening, longest, tokenizer_))) {
    beam.tokens.erase(beam.tokens.begin(), beam.tokens.begin() + opening);
    texts.push_back({text_of(tokenizer_, beam.tokens, options), std::move(beam.tokens), beam.score});
  }
  return texts;
}

std::vector<Generation::TokenId> Generator::chat_tokens(const std::vector<ChatMessage>& messages) {
  if (!templates_) templates_ = ChatTemplates::load(text_folder_);
  return lathe::chat_tokens(templates_->get(), tokenizer_, messages);
}

TextPieces Generator::chat(const std::vector<ChatMessage>& messages, const GenerationOptions& options) {
  std::vector<std::vector<Generation::TokenId>> prompts;
  prompts.push_back(chat_tokens(messages));
  return TextPieces(start(std::move(prompts), options));
}

}  // namespace lathe
