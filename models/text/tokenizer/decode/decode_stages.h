#pragma once

#include <string>
#include <utility>

#include "models/text/tokenizer/decode/decoder.h"

namespace lathe::text {

/// A stage that processes whole tokens.
class TokenStage : public DecodeStage {
 public:
  explicit TokenStage(std::unique_ptr<DecodeStage> next) : next_(std::move(next)) {}

  void push(std::string_view fragment) final { token_.append(fragment); }
  void end_token() final {
    take(std::exchange(token_, {}));
    is_first_ = false;
  }
  void finish() final {
    end();
    next_->finish();
  }

 protected:
  virtual void take(std::string token) = 0;
  /// Called before finish() is passed on.
  virtual void end() {}

  void put(std::string_view token) {
    next_->push(token);
    next_->end_token();
  }
  bool is_first() const { return is_first_; }
  DecodeStage& next() { return *next_; }

 private:
  std::unique_ptr<DecodeStage> next_;
  std::string token_;
  bool is_first_ = true;
};

/// A decoder whose stage is constructed from its settings.
template <class Stage, class Settings>
class StageDecoder : public Decoder {
 public:
  StageDecoder(Settings settings, double growth) : settings_(std::move(settings)), growth_(growth) {}
  std::unique_ptr<DecodeStage> start(std::unique_ptr<DecodeStage> next) const override {
    return std::make_unique<Stage>(std::move(next), settings_);
  }
  DecoderCost cost() const override { return {.growth = growth_}; }

 private:
  Settings settings_;
  double growth_;
};

/// Returns `text` with each `from` replaced. An empty `from` matches before each character and at the end.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

/// Returns a stage that removes spaces before punctuation and in English contractions from the whole text, like
/// transformers with clean_up_tokenization_spaces. Its output goes to `next`.
std::unique_ptr<DecodeStage> start_clean_up(std::unique_ptr<DecodeStage> next);

}  // namespace lathe::text
