#include "frontend/generation/generator.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "frontend/pretrained/language_model.h"
#include "ir/support/error.h"

namespace lathe {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void check(const GenerationOptions& options) {
  check(options.sampling);
  if (options.max_new_tokens < 1)
    throw UserError(fmt::format("{} new tokens are asked for", options.max_new_tokens), "generation_length",
                    "give 1 or more");
}

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

Generation::Generation(SequenceModel& model, const Tokenizer& tokenizer, std::vector<std::vector<TokenId>> prompts,
                       const GenerationOptions& options)
    : model_(&model), options_(options), most_positions_(model.most_positions()) {
  check(options);
  const Clock::time_point start = Clock::now();
  model.start(prompts);
  prompt_seconds_ = seconds_since(start);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    texts_.push_back({.prompt = prompts[i],
                      .opening = model.opening(prompts[i]),
                      .tokens = {},
                      .stream = tokenizer.stream(),
                      .stops = StopStrings(options.stop_strings),
                      .sampler = Sampler(options.sampling, options.seed + i),
                      .text = {},
                      .piece = {}});
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
  const auto& stops = options_.stop_tokens;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) return end(text, Finish::stop_token);
  text.piece = text.stops.push(text.stream.push(static_cast<lathe::TokenId>(token)));
  text.text += text.piece;
  const std::int64_t count = std::ssize(text.tokens);
  if (text.stops.met()) return end(text, Finish::stop_string);
  if (count >= options_.max_new_tokens || std::ssize(text.opening) + count >= most_positions_)
    end(text, Finish::length);
}

bool Generation::step() {
  const auto ended = [](const Text& text) { return text.finish != Finish::none; };
  for (Text& text : texts_) text.piece.clear();
  if (std::all_of(texts_.begin(), texts_.end(), ended)) return false;
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
  std::vector<TokenId> seen;
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    Text& text = texts_[i];
    if (ended(text)) continue;
    if (options_.sampling.repetition_penalty != 1) {
      seen = text.opening;
      seen.insert(seen.end(), text.tokens.begin(), text.tokens.end());
    }
    add(text, text.sampler.next(logits_row(model_->logits(), static_cast<std::int64_t>(i)), seen));
  }
  return true;
}

std::vector<Generation::TokenId> prompt_tokens(const Tokenizer& tokenizer, std::string_view text) {
  return tokens_of(tokenizer, text, true);
}

std::vector<Generation::TokenId> chat_tokens(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                             const std::vector<ChatMessage>& messages) {
  // The template writes the special tokens itself.
  ChatOptions options;
  options.add_generation_prompt = true;
  return tokens_of(tokenizer, chat.render(messages, options).text, false);
}

Generator Generator::load(const std::filesystem::path& folder, const SequenceModelOptions& options,
                          const pretrained::LoadOptions& weights, const std::filesystem::path& adapter) {
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
  auto cached = std::make_unique<CachedSeq2Seq>(*kept->model, kept->weights, options);
  seq2seq_ = cached.get();
  sequences_ = std::move(cached);
}

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

std::vector<Generator::BeamText> Generator::beams(std::string_view prompt, const BeamOptions& options) {
  if (!seq2seq_)
    throw UserError(fmt::format("{} has no encoder", files_->folder.string()), "generation_beams",
                    "beam search is for models of an encoder and a decoder, such as T5");
  std::vector<BeamText> texts;
  for (Beam& beam : seq2seq_->beams(prompt_tokens(tokenizer_, prompt), options)) {
    beam.tokens.erase(beam.tokens.begin());
    const std::vector<lathe::TokenId> ids(beam.tokens.begin(), beam.tokens.end());
    texts.push_back({tokenizer_.decode(ids), std::move(beam.tokens), beam.score});
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
