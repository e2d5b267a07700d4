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

#include "models/generation/generation_options.h"
#include "models/generation/sequence_model.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
#include "models/text/chat/chat_template.h"
#include "models/text/tokenizer/tokenizer.h"

namespace lathe {

enum class Finish : std::uint8_t { none, length, stop_token, stop_string };
/// Returns "length", "stop_token" or "stop_string"; "none" while the text is not finished.
std::string_view name(Finish finish);

/// Generates several texts together, one token per step. With beam search it generates one whole text per step. It
/// uses its model exclusively: starting another generation on the model ends this one.
class Generation {
 public:
  using TokenId = SequenceModel::TokenId;

  Generation(SequenceModel& model, const Tokenizer& tokenizer, std::vector<std::vector<TokenId>> prompts,
             const GenerationOptions& options);
  ~Generation();
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;

  /// Adds a token to every unfinished text, or generates the next text by beam search. Returns false if all texts are
  /// finished.
  bool step();
  /// Runs step() until all texts are finished.
  void run();

  std::size_t size() const;
  /// Returns the text that the last step added to text i, in whole characters. The last piece may hold more than one
  /// token.
  const std::string& piece(std::size_t i = 0) const;
  /// Returns text i so far, without its prompt, and its tokens, including the one that ended it.
  const std::string& text(std::size_t i = 0) const;
  const std::vector<TokenId>& tokens(std::size_t i = 0) const;
  const std::vector<TokenId>& prompt(std::size_t i = 0) const;
  Finish finish(std::size_t i = 0) const;

  /// Seconds from the start to the logits of the first token, including compilation, and of all steps since then.
  double prompt_seconds() const { return prompt_seconds_; }
  double step_seconds() const { return step_seconds_; }
  std::int64_t new_tokens() const;

 private:
  struct Text;
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

/// Returns the tokens of a prompt, including the tokenizer's special tokens.
std::vector<Generation::TokenId> prompt_tokens(const Tokenizer& tokenizer, std::string_view text);
/// Returns the tokens of a conversation, up to the start of the assistant's answer.
std::vector<Generation::TokenId> chat_tokens(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                             const std::vector<ChatMessage>& messages);

/// A language model and its tokenizer from a Hugging Face directory. The model is decoder-only or encoder-decoder:
///
///   Generator llama = Generator::load("Llama-3.2-1B");
///   for (const std::string& piece : llama.generate("Once upon a time", {.max_new_tokens = 40})) std::cout << piece;
///
/// Weights are used in the dtype that they are stored in. Only one generation can run at a time.
class Generator {
 public:
  /// Loads a model's or an adapter's directory; see load_adapted(). Copies the weights from the mapped files to
  /// memory if there is plenty of it: fits_in_memory(). A directory with the files of find_exported() has an
  /// ExportedLm, a StaticCacheLm or an ExportedSeq2Seq. Throws UserErrors of load_adapted(), Tokenizer::load,
  /// load_generation_options, find_exported(), these two; [exported_options] for an adapter or quantized weights of
  /// an exported file.
  static Generator load(const std::filesystem::path& folder, const SequenceModelOptions& options = {},
                        const pretrained::LoadOptions& weights = {}, const std::filesystem::path& adapter = {});
  Generator(pretrained::Pretrained model, const Tokenizer& tokenizer, const SequenceModelOptions& options = {});
  Generator(pretrained::PretrainedSeq2SeqLm model, const Tokenizer& tokenizer,
            const SequenceModelOptions& options = {});
  /// A model from the ONNX files of a directory, whose other files are `files`.
  Generator(std::unique_ptr<SequenceModel> model, pretrained::ModelFiles files, const Tokenizer& tokenizer);

  /// Returns the directory's generation options, which can be changed and passed to generate().
  const GenerationOptions& defaults() const { return defaults_; }
  void set_defaults(const GenerationOptions& options);

  /// Generates the continuation of a prompt, or the output of an encoder-decoder model for it. The tokenizer adds its
  /// special tokens to the prompt.
  TextPieces generate(std::string_view prompt) { return generate(prompt, defaults_); }
  TextPieces generate(std::string_view prompt, const GenerationOptions& options);
  /// Generates the answer to a conversation with the directory's chat template. Throws UserErrors of ChatTemplates.
  TextPieces chat(const std::vector<ChatMessage>& messages) { return chat(messages, defaults_); }
  TextPieces chat(const std::vector<ChatMessage>& messages, const GenerationOptions& options);
  /// Starts several texts at once; their lengths may differ.
  Generation start(std::span<const std::string> prompts, const GenerationOptions& options);
  Generation start(std::vector<std::vector<Generation::TokenId>> prompts, const GenerationOptions& options);

  /// A text found by beam search.
  struct BeamText {
    std::string text;
    std::vector<Generation::TokenId> tokens;  ///< without the prompt or the decoder's start token
    double score;
  };
  /// Returns the `results` most likely texts that beam search with `options.beams` finds, best first. Throws
  /// UserErrors of beam_search().
  std::vector<BeamText> beams(std::string_view prompt) { return beams(prompt, defaults_); }
  std::vector<BeamText> beams(std::string_view prompt, const GenerationOptions& options);
  std::vector<BeamText> beams(const std::vector<Generation::TokenId>& prompt, const GenerationOptions& options);

  /// Returns the tokens of a conversation, up to the start of the assistant's answer.
  std::vector<Generation::TokenId> chat_tokens(const std::vector<ChatMessage>& messages);

  /// The model's configuration, weights and other files.
  const pretrained::ModelFiles& files() const { return *files_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  SequenceModel& sequences() { return *sequences_; }

 private:
  std::shared_ptr<const pretrained::ModelFiles> files_;  ///< with the model
  Tokenizer tokenizer_;
  std::filesystem::path text_folder_;
  std::optional<ChatTemplates> templates_;  ///< loaded on first use
  GenerationOptions defaults_;
  std::unique_ptr<SequenceModel> sequences_;
};

}  // namespace lathe
