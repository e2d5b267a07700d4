#pragma once

#include <memory>
#include <vector>

#include "models/text/tokenizer/finish/draft.h"
#include "models/text/tokenizer/pipeline/fields.h"

namespace lathe::text {

/// A post-processor of tokenizer.json. It adds special tokens, sets type ids and trims offsets.
class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  /// Returns the number of special tokens that a text or a pair gets.
  virtual std::size_t added(bool is_pair) const = 0;
  /// Returns whether offsets are trimmed, which needs Draft::edges.
  virtual bool trims() const { return false; }
  /// Returns whether a template combines the drafts. Then there is no longer one draft per text.
  virtual bool is_template() const { return false; }
  /// `drafts` has one element, or two for a pair. The resulting drafts are appended in order.
  virtual void apply(std::vector<Draft>& drafts, bool adds_special) const = 0;
};

/// Throws UserError [tokenizer_kind], [tokenizer_field], [tokenizer_template].
std::unique_ptr<const PostProcessor> read_post_processor(const JsonNode& place);

}  // namespace lathe::text
