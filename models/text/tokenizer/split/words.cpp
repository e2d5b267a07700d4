#include "models/text/tokenizer/split/words.h"

#include <algorithm>

namespace lathe::text {

namespace {

/// Merges each part into the previous one if joins(part, previous part is a match).
template <class Joins>
void join(std::vector<Part>& parts, const Joins& joins) {
  std::size_t kept = 0;
  bool was_match = false;
  for (const Part part : parts) {
    if (kept > 0 && joins(part.is_match, was_match)) {
      parts[kept - 1].begin = std::min(parts[kept - 1].begin, part.begin);
      parts[kept - 1].end = std::max(parts[kept - 1].end, part.end);
    } else {
      parts[kept++] = part;
    }
    was_match = part.is_match;
  }
  parts.resize(kept);
}

}  // namespace

void append_parts(std::vector<Word>& words, std::vector<Part>& parts, SplitBehavior behavior, std::uint32_t shift) {
  const auto is_first_match = [](bool is_match, bool was_match) { return is_match && !was_match; };
  switch (behavior) {
    case SplitBehavior::removed:
    case SplitBehavior::isolated: break;
    case SplitBehavior::contiguous:
      join(parts, [](bool is_match, bool was_match) { return is_match == was_match; });
      break;
    case SplitBehavior::merged_with_previous: join(parts, is_first_match); break;
    case SplitBehavior::merged_with_next:
      std::reverse(parts.begin(), parts.end());
      join(parts, is_first_match);
      std::reverse(parts.begin(), parts.end());
      break;
  }
  for (const Part& part : parts)
    if (part.begin != part.end) words.push_back({shift + part.begin, shift + part.end});
}

}  // namespace lathe::text
