#include "frontend/generation/generator.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <limits>

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

Generation::Generation(CachedLm& model, const Tokenizer& tokenizer, std::vector<std::vector<TokenId>> prompts,
                       const GenerationOptions& options)
    : model_(&model), options_(options), most_positions_(model.most_positions()) {
  check(options);
  const Clock::time_point start = Clock::now();
  model.start(prompts);
  prompt_seconds_ = seconds_since(start);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    texts_.push_back({.prompt = std::move(prompts[i]),
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
  const auto count = static_cast<std::int64_t>(text.tokens.size());
  if (text.stops.met()) return end(text, Finish::stop_string);
  if (count >= options_.max_new_tokens || static_cast<std::int64_t>(text.prompt.size()) + count >= most_positions_)
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
      seen = text.prompt;
      seen.insert(seen.end(), text.tokens.begin(), text.tokens.end());
    }
    add(text, text.sampler.next(logits_row(model_->logits(), static_cast<std::int64_t>(i)), seen));
  }
  return true;
}

Generator Generator::load(const std::filesystem::path& folder, const CachedLmOptions& options,
                          const pretrained::LoadOptions& weights) {
  pretrained::Pretrained model = pretrained::load(folder, weights);
  if (fits_in_memory(model.weights)) model.weights.copy_to_memory();
  Generator made(std::move(model), Tokenizer::load(folder), options);
  made.set_defaults(load_generation_options(folder));
  return made;
}

Generator::Generator(pretrained::Pretrained model, Tokenizer tokenizer, const CachedLmOptions& options)
    : model_(std::make_unique<pretrained::Pretrained>(std::move(model))),
      tokenizer_(std::move(tokenizer)),
      cached_(std::make_unique<CachedLm>(*model_->model, model_->weights, options)) {}

Generation Generator::start(std::vector<std::vector<Generation::TokenId>> prompts, const GenerationOptions& options) {
  return Generation(*cached_, tokenizer_, std::move(prompts), options);
}

Generation Generator::start(std::span<const std::string> prompts, const GenerationOptions& options) {
  std::vector<std::vector<Generation::TokenId>> tokens;
  for (const std::string& prompt : prompts) tokens.push_back(tokens_of(tokenizer_, prompt, true));
  return start(std::move(tokens), options);
}

TextPieces Generator::generate(std::string_view prompt, const GenerationOptions& options) {
  const std::string text(prompt);
  return TextPieces(start(std::span(&text, 1), options));
}

std::vector<Generation::TokenId> Generator::chat_tokens(const std::vector<ChatMessage>& messages) const {
  const ChatTemplates templates = ChatTemplates::load(model_->folder);
  // The template writes the special tokens itself.
  ChatOptions options;
  options.add_generation_prompt = true;
  return tokens_of(tokenizer_, templates.get().render(messages, options).text, false);
}

TextPieces Generator::chat(const std::vector<ChatMessage>& messages, const GenerationOptions& options) {
  std::vector<std::vector<Generation::TokenId>> prompts;
  prompts.push_back(chat_tokens(messages));
  return TextPieces(start(std::move(prompts), options));
}

}  // namespace lathe
