#pragma once

#include <memory>
#include <vector>

#include "runtime/text/tokenizer/finish/draft.h"
#include "runtime/text/tokenizer/pipeline/fields.h"

namespace lathe::text {

/// A post-processor of tokenizer.json: it adds special tokens, sets type ids and trims offsets.
class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  /// How many special tokens one text gets, or two.
  virtual std::size_t added(bool is_pair) const = 0;
  /// Whether offsets are trimmed, for which drafts need edges.
  virtual bool trims() const { return false; }
  /// Whether drafts are put together by a template, after which they are no longer one for each text.
  virtual bool is_template() const { return false; }
  /// `drafts`: one, or two for a pair; what it leaves is appended in order.
  virtual void apply(std::vector<Draft>& drafts, bool adds_special) const = 0;
};

/// UserError [tokenizer_kind], [tokenizer_field], [tokenizer_template].
std::unique_ptr<const PostProcessor> read_post_processor(const JsonNode& place);

}  // namespace lathe::text
