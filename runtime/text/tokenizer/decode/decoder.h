#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/text/tokenizer/pipeline/fields.h"

namespace lathe::text {

/// Takes tokens' texts in fragments: push() for each part of a token, end_token() after its last. Fragments are whole
/// characters, but for decoders that say otherwise.
class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  virtual void push(std::string_view fragment) = 0;
  virtual void end_token() = 0;
  /// No token follows.
  virtual void finish() = 0;
};

/// Limits of what a decoder may do, so that no tokenizer.json fills the memory.
struct DecoderCost {
  double growth = 1;  ///< the most that the text becomes longer by
  int stages = 1;
};

/// A decoder of tokenizer.json. Whole texts are decoded as streams are, so that both give the same.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Starts a stream: what goes into the stage comes out at `next`, as soon as nothing can change it.
  virtual std::unique_ptr<DecodeStage> start(std::unique_ptr<DecodeStage> next) const = 0;
  virtual DecoderCost cost() const = 0;
};

/// UserError [tokenizer_kind], [tokenizer_field], [tokenizer_regex]; [tokenizer_limit] for a sequence that may make a
/// text many times as long, or has very many parts.
std::unique_ptr<const Decoder> read_decoder(const JsonNode& place);
/// For a tokenizer without a decoder: tokens with spaces between them.
std::unique_ptr<const Decoder> make_spaced_decoder();

}  // namespace lathe::text
