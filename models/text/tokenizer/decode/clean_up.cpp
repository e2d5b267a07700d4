#include "models/text/tokenizer/decode/decode_stages.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace lathe::text {

namespace {

/// Replaces all occurrences of a text, also across tokens.
class TextReplacement : public DecodeStage {
 public:
  TextReplacement(std::unique_ptr<DecodeStage> next, std::string_view from, std::string_view to)
      : next_(std::move(next)), from_(from), to_(to) {}

  void push(std::string_view fragment) override {
    held_.append(fragment);
    std::string out;
    std::size_t done = 0;
    for (std::size_t at = held_.find(from_); at != std::string::npos; at = held_.find(from_, done)) {
      out.append(held_, done, at - done).append(to_);
      done = at + from_.size();
    }
    // The end may be a prefix of a match.
    std::size_t kept = std::min(from_.size() - 1, held_.size() - done);
    while (kept > 0 && !std::string_view(held_).ends_with(from_.substr(0, kept))) --kept;
    out.append(held_, done, held_.size() - done - kept);
    held_.erase(0, held_.size() - kept);
    next_->push(out);
  }
  void end_token() override { next_->end_token(); }
  void finish() override {
    next_->push(held_);
    next_->finish();
  }

 private:
  std::unique_ptr<DecodeStage> next_;
  std::string_view from_, to_;
  std::string held_;
};

}  // namespace

std::unique_ptr<DecodeStage> start_clean_up(std::unique_ptr<DecodeStage> next) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 10> replacements{{{" .", "."},
                                                                                               {" ?", "?"},
                                                                                               {" !", "!"},
                                                                                               {" ,", ","},
                                                                                               {" ' ", "'"},
                                                                                               {" n't", "n't"},
                                                                                               {" 'm", "'m"},
                                                                                               {" 's", "'s"},
                                                                                               {" 've", "'ve"},
                                                                                               {" 're", "'re"}}};
  for (auto rule = replacements.rbegin(); rule != replacements.rend(); ++rule)
    next = std::make_unique<TextReplacement>(std::move(next), rule->first, rule->second);
  return next;
}

}  // namespace lathe::text
