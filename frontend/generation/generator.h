#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/generation/cached_lm.h"
#include "frontend/generation/cached_seq2seq.h"
#include "frontend/generation/generation_options.h"
#include "frontend/generation/stop_strings.h"
#include "frontend/pretrained/pretrained.h"
#include "runtime/text/chat/chat_template.h"
#include "runtime/text/tokenizer/tokenizer.h"

namespace lathe {

enum class Finish : std::uint8_t { none, length, stop_token, stop_string };
/// "length", "stop_token", "stop_string"; "none" while it goes on.
std::string_view name(Finish finish);

/// Texts that are generated together, token by token; with a beam search one after the other, a whole text at a step.
/// It works on its model, and ends where that starts another.
class Generation {
 public:
  using TokenId = SequenceModel::TokenId;

  Generation(SequenceModel& model, const Tokenizer& tokenizer, std::vector<std::vector<TokenId>> prompts,
             const GenerationOptions& options);

  /// Adds a token to every text that has not ended, or finds the next text by a beam search; false where all have
  /// ended.
  bool step();
  /// step() to the end.
  void run() {
    while (step()) {
    }
  }

  std::size_t size() const { return texts_.size(); }
  /// What the last step made known of text i: whole characters. At the end it may be more than a token's text.
  const std::string& piece(std::size_t i = 0) const { return texts_.at(i).piece; }
  /// All of text i so far, without its prompt, and its tokens, the one that ended it among them.
  const std::string& text(std::size_t i = 0) const { return texts_.at(i).text; }
  const std::vector<TokenId>& tokens(std::size_t i = 0) const { return texts_.at(i).tokens; }
  const std::vector<TokenId>& prompt(std::size_t i = 0) const { return texts_.at(i).prompt; }
  Finish finish(std::size_t i = 0) const { return texts_.at(i).finish; }

  /// Seconds from the start to the logits of the first token, compilation included, and of all steps since.
  double prompt_seconds() const { return prompt_seconds_; }
  double step_seconds() const { return step_seconds_; }
  std::int64_t new_tokens() const;

 private:
  struct Text {
    std::vector<TokenId> prompt, tokens;
    std::vector<TokenId> sequence;  ///< with what stands before the new tokens
    std::int64_t opening, longest;  ///< lengths of `sequence` at the start and at most
    Tokenizer::Stream stream;
    StopStrings stops;
    Sampler sampler;
    std::string text, piece;
    Finish finish = Finish::none;
  };
  void add(Text& text, TokenId token);
  void end(Text& text, Finish finish);
  PartialSequence partial(const Text& text) const;
  void search(Text& text);

  SequenceModel* model_;
  Tokenizer tokenizer_;
  GenerationOptions options_;
  std::vector<Text> texts_;
  bool has_logits_ = true;
  double prompt_seconds_ = 0, step_seconds_ = 0;
};

/// The pieces of one text, as a range.
class TextPieces {
 public:
  explicit TextPieces(Generation generation) : generation_(std::make_unique<Generation>(std::move(generation))) {}

  class Iterator {
   public:
    using value_type = std::string;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(Generation& generation) : generation_(&generation) { ++*this; }
    const std::string& operator*() const { return generation_->piece(); }
    Iterator& operator++() {
      if (!generation_->step()) generation_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return generation_ == nullptr; }

   private:
    Generation* generation_ = nullptr;
  };
  Iterator begin() { return Iterator(*generation_); }
  std::default_sentinel_t end() const { return {}; }
  const Generation& generation() const { return *generation_; }

 private:
  std::unique_ptr<Generation> generation_;
};

/// The tokens of a text to go on with, special ones of the tokenizer included.
std::vector<Generation::TokenId> prompt_tokens(const Tokenizer& tokenizer, std::string_view text);
/// The tokens of a conversation up to where the assistant begins to speak.
std::vector<Generation::TokenId> chat_tokens(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                             const std::vector<ChatMessage>& messages);

/// A language model with its tokenizer, as a Hugging Face directory holds them, of a decoder alone or of an encoder
/// and a decoder:
///
///   Generator llama = Generator::load("Llama-3.2-1B");
///   for (const std::string& piece : llama.generate("Once upon a time", {.max_new_tokens = 40})) std::cout << piece;
///
/// Weights are computed with as they are stored. One generation runs at a time.
class Generator {
 public:
  /// A model's directory, or an adapter's, as load_adapted() takes them. Weights are copied out of the mapped files
  /// where there is plenty of memory: fits_in_memory(). UserErrors of load_adapted(), load_seq2seq_lm(),
  /// Tokenizer::load, load_generation_options.
  static Generator load(const std::filesystem::path& folder, const SequenceModelOptions& options = {},
                        const pretrained::LoadOptions& weights = {}, const std::filesystem::path& adapter = {});
  Generator(pretrained::Pretrained model, const Tokenizer& tokenizer, const SequenceModelOptions& options = {});
  Generator(pretrained::PretrainedSeq2SeqLm model, const Tokenizer& tokenizer,
            const SequenceModelOptions& options = {});

  /// What the directory says of generation: to be changed and passed on.
  const GenerationOptions& defaults() const { return defaults_; }
  void set_defaults(const GenerationOptions& options) { defaults_ = options; }

  /// Goes on with a text, or writes what a decoder says of it. Its tokens are those of the tokenizer, special ones
  /// included.
  TextPieces generate(std::string_view prompt) { return generate(prompt, defaults_); }
  TextPieces generate(std::string_view prompt, const GenerationOptions& options);
  /// The answer to a conversation, by the directory's chat template. UserErrors of ChatTemplates.
  TextPieces chat(const std::vector<ChatMessage>& messages) { return chat(messages, defaults_); }
  TextPieces chat(const std::vector<ChatMessage>& messages, const GenerationOptions& options);
  /// Several texts at once, of any lengths.
  Generation start(std::span<const std::string> prompts, const GenerationOptions& options);
  Generation start(std::vector<std::vector<Generation::TokenId>> prompts, const GenerationOptions& options);

  /// A text that beam search has found.
  struct BeamText {
    std::string text;
    std::vector<Generation::TokenId> tokens;  ///< without the prompt, or the token that a decoder begins with
    double score;
  };
  /// The texts that a beam search of `options.beams` finds most likely, `results` of them, the best first. UserErrors
  /// of beam_search().
  std::vector<BeamText> beams(std::string_view prompt) { return beams(prompt, defaults_); }
  std::vector<BeamText> beams(std::string_view prompt, const GenerationOptions& options);
  std::vector<BeamText> beams(const std::vector<Generation::TokenId>& prompt, const GenerationOptions& options);

  /// The tokens of a conversation up to where the assistant begins to speak.
  std::vector<Generation::TokenId> chat_tokens(const std::vector<ChatMessage>& messages);

  /// The model's configuration, weights and other files.
  const pretrained::ModelFiles& files() const { return *files_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  SequenceModel& sequences() { return *sequences_; }

 private:
  std::shared_ptr<const pretrained::ModelFiles> files_;  ///< with the model
  Tokenizer tokenizer_;
  std::filesystem::path text_folder_;
  std::optional<ChatTemplates> templates_;  ///< once they are asked for
  GenerationOptions defaults_;
  std::unique_ptr<SequenceModel> sequences_;
};

}  // namespace lathe
