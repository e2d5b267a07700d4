#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "models/text/tokenizer/pipeline/fields.h"

namespace lathe::text {

/// Receives the texts of tokens in fragments: push() for each part of a token, then end_token(). Fragments are whole
/// characters, unless a decoder documents otherwise.
class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  virtual void push(std::string_view fragment) = 0;
  virtual void end_token() = 0;
  /// Ends the stream.
  virtual void finish() = 0;
};

/// Cost of a decoder, which is limited so that no tokenizer.json exhausts memory.
struct DecoderCost {
  double growth = 1;  ///< maximum growth factor of the text
  int stages = 1;
};

/// A decoder of tokenizer.json. Whole texts are decoded as streams too, so that both give the same result.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Starts a stream. Output goes to `next` as soon as later input cannot change it.
  virtual std::unique_ptr<DecodeStage> start(std::unique_ptr<DecodeStage> next) const = 0;
  virtual DecoderCost cost() const = 0;
};

/// Throws UserError [tokenizer_kind], [tokenizer_field], [tokenizer_regex]; [tokenizer_limit] for a sequence that may
/// grow a text too much or has too many parts.
std::unique_ptr<const Decoder> read_decoder(const JsonNode& place);
/// Returns the decoder of a tokenizer that specifies none: joins tokens with spaces.
std::unique_ptr<const Decoder> make_spaced_decoder();

}  // namespace lathe::text
