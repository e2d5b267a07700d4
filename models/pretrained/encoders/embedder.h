#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "models/pretrained/encoders/sentence_encoder.h"
#include "models/text/tokenizer/tokenizer.h"
#include "runtime/compile.h"

namespace lathe::pretrained {

struct EmbedderOptions {
  DType dtype = f32;             ///< compute dtype; weights stay in their stored dtype
  std::int64_t batch = 32;       ///< texts per batch
  int threads = 0;               ///< 0: one per CPU
  ObjectStore* cache = nullptr;  ///< of compiled code
  Target target = Target::host();
};

/// Computes embedding vectors of texts with a sentence-transformers model:
///
///   auto minilm = pretrained::Embedder::load("all-MiniLM-L6-v2");
///   const std::vector<std::string> texts{"a cat", "a kitten", "a train"};
///   const HostTensor vectors = minilm.embed(texts);       // f32[3, 384]
///   const HostTensor close = pretrained::cosine_similarities(vectors);  // f64[3, 3]
class Embedder {
 public:
  /// Loads the directory of a model or of an adapter; see find_adapted(). Throws UserErrors of that,
  /// load_pretrained(), load_lora() and Tokenizer::load.
  static Embedder load(const std::filesystem::path& folder, const EmbedderOptions& options = {},
                       const std::filesystem::path& adapter = {});
  Embedder(PretrainedSentenceEncoder model, Tokenizer tokenizer, const EmbedderOptions& options = {});

  /// Returns vectors [texts, width], in f64 if the compute dtype is f64, else f32. Each text is prefixed with
  /// `prompt`, or else with the model's default prompt. White space around the result is stripped, and tokens beyond
  /// texts().longest are cut. Texts of similar length are batched with masked padding, so a vector does not depend on
  /// the other texts. Throws UserErrors of Tokenizer::encode.
  HostTensor embed(std::span<const std::string> texts, const std::optional<std::string>& prompt = {});

  const SentenceEncoder& model() const { return *model_.model; }
  const Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  std::vector<TokenId> tokens_of(const std::string& text) const;

  PretrainedSentenceEncoder model_;
  Tokenizer tokenizer_;
  EmbedderOptions options_;
  Executable embed_;
};

/// Returns the similarities of all pairs of vectors [n, d]: f64 [n, n].
HostTensor similarities(const HostTensor& vectors, Similarity how);
HostTensor cosine_similarities(const HostTensor& vectors);

}  // namespace lathe::pretrained
