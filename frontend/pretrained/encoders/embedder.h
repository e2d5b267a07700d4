#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "frontend/pretrained/encoders/sentence_encoder.h"
#include "runtime/executable.h"
#include "runtime/text/tokenizer/tokenizer.h"

namespace lathe::pretrained {

struct EmbedderOptions {
  DType dtype = f32;             ///< to compute in; weights stay as they are stored
  std::int64_t batch = 32;       ///< texts that are computed at once
  int threads = 0;               ///< 0: one a CPU
  ObjectStore* cache = nullptr;  ///< of compiled code
  Target target = Target::host();
};

/// Vectors of texts, by a directory of sentence-transformers:
///
///   auto minilm = pretrained::Embedder::load("all-MiniLM-L6-v2");
///   const std::vector<std::string> texts{"a cat", "a kitten", "a train"};
///   const HostTensor vectors = minilm.embed(texts);       // f32[3, 384]
///   const HostTensor close = pretrained::cosine_similarities(vectors);  // f64[3, 3]
class Embedder {
 public:
  /// The directory of a model or of an adapter, as find_adapted() takes them. UserErrors of that,
  /// load_sentence_encoder(), load_lora() and Tokenizer::load.
  static Embedder load(const std::filesystem::path& folder, const EmbedderOptions& options = {},
                       const std::filesystem::path& adapter = {});
  Embedder(PretrainedSentenceEncoder model, Tokenizer tokenizer, const EmbedderOptions& options = {});

  /// [texts, width], f64 where that is computed in, else f32. Each text comes after the prompt; without one, after
  /// the model's default prompt. White space around both together does not count; what is longer than texts().longest
  /// tokens loses its end. Texts of like length are computed together, padding masked, so
  /// that a vector does not depend on the others. UserErrors of Tokenizer::encode.
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

/// Of all pairs of vectors [n, d]: f64 [n, n].
HostTensor similarities(const HostTensor& vectors, Similarity how);
HostTensor cosine_similarities(const HostTensor& vectors);

}  // namespace lathe::pretrained
