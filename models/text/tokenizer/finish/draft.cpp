#include "models/text/tokenizer/finish/draft.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "ir/support/error.h"

namespace lathe::text {

namespace {

constexpr std::string_view label = "tokenizer_truncation";

/// Calls visit(list of a, list of b) for each per-token list.
template <class A, class B, class Visit>
void for_each_list(A& a, B& b, const Visit& visit) {
  visit(a.encoding.ids, b.encoding.ids);
  visit(a.encoding.type_ids, b.encoding.type_ids);
  visit(a.encoding.offsets, b.encoding.offsets);
  visit(a.encoding.words, b.encoding.words);
  visit(a.encoding.special_mask, b.encoding.special_mask);
  visit(a.encoding.attention_mask, b.encoding.attention_mask);
  visit(a.edges, b.edges);
}

void append_tokens(Draft& to, const Draft& from) {
  for_each_list(to, from, [](auto& list, const auto& more) { list.insert(list.end(), more.begin(), more.end()); });
}

/// `tokens` is the total number of tokens in all parts that truncation makes from `size` tokens.
void check_overflow(std::size_t tokens, std::size_t size) {
  constexpr std::size_t least = std::size_t{1} << 22, per_token = 64;
  if (tokens > least + per_token * size)
    throw UserError(fmt::format("truncation makes parts of {} tokens of a text of {}", tokens, size), label,
                    "give a smaller stride, or a larger length");
}

Draft joined(Draft first, const Draft& second) {
  first.overflow.clear();
  append_tokens(first, second);
  return first;
}

}  // namespace

Draft slice(const Draft& draft, std::size_t begin, std::size_t end) {
  Draft part;
  for_each_list(part, draft, [&](auto& list, const auto& all) {
    if (!all.empty())
      list.assign(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end));
  });
  return part;
}

void append(Draft& to, const Draft& from) {
  const std::size_t parts = (to.overflow.size() + 1) * (from.overflow.size() + 1) - 1;
  if (parts > 0) check_overflow(parts * (to.size() + from.size()), to.size() + from.size());
  std::vector<Draft> overflow;
  for (const Draft& part : to.overflow) {
    overflow.push_back(joined(part, from));
    for (const Draft& other : from.overflow) overflow.push_back(joined(part, other));
  }
  for (const Draft& other : from.overflow) overflow.push_back(joined(to, other));
  append_tokens(to, from);
  to.overflow = std::move(overflow);
}

void cut(Draft& draft, std::size_t length, const Truncation& how) {
  const std::size_t size = draft.size();
  if (length >= size) return;
  if (length == 0) {
    Draft rest = std::exchange(draft, {});
    draft.overflow.push_back(std::move(rest));
    return;
  }
  if (how.stride >= length)
    throw UserError(fmt::format("the stride {} is not below the {} tokens that a part has", how.stride, length),
                    label);
  std::vector<Draft> parts;
  const std::size_t step = length - how.stride;
  check_overflow(((size - length) / step + 1) * length, size);
  if (how.side == Side::right) {
    for (std::size_t begin = 0;; begin += step) {
      const std::size_t end = std::min(begin + length, size);
      parts.push_back(slice(draft, begin, end));
      if (end == size) break;
    }
  } else {
    for (std::size_t end = size;; end -= step) {
      const std::size_t begin = end - std::min(end, length);
      parts.push_back(slice(draft, begin, end));
      if (begin == 0) break;
    }
  }
  draft = std::move(parts.front());
  draft.overflow.assign(std::make_move_iterator(parts.begin() + 1), std::make_move_iterator(parts.end()));
}

void truncate(std::vector<Draft>& drafts, const Truncation& how, std::size_t reserved) {
  if (how.max_length < reserved)
    throw UserError(fmt::format("{} tokens do not hold the {} special tokens", how.max_length, reserved), label);
  const std::size_t length = how.max_length - reserved;
  std::size_t total = 0;
  for (const Draft& draft : drafts) total += draft.size();
  if (total <= length) return;
  if (length == 0) {
    for (Draft& draft : drafts) cut(draft, 0, how);
    return;
  }
  if (how.strategy == Truncation::Strategy::longest_first) {
    if (drafts.size() == 1) return cut(drafts[0], length, how);
    const bool is_swapped = drafts[0].size() > drafts[1].size();
    std::size_t less = drafts[is_swapped ? 1 : 0].size();
    // The shorter text is not truncated if it fits into half of the length.
    std::size_t more = less > length ? less : std::max(less, length - less);
    if (less + more > length) {
      less = length / 2;
      more = less + length % 2;
    }
    cut(drafts[0], is_swapped ? more : less, how);
    cut(drafts[1], is_swapped ? less : more, how);
    return;
  }
  const bool is_second = how.strategy == Truncation::Strategy::only_second;
  if (is_second && drafts.size() == 1) throw UserError("there is no second text to truncate", label);
  Draft& target = drafts[is_second ? 1 : 0];
  if (target.size() <= total - length)
    throw UserError(fmt::format("the {} text has {} tokens, and {} have to go", is_second ? "second" : "first",
                                target.size(), total - length),
                    label);
  cut(target, target.size() - (total - length), how);
}

Encoding finish(Draft draft) {
  for (Draft& part : draft.overflow) draft.encoding.overflow.push_back(std::move(part.encoding));
  return std::move(draft.encoding);
}

}  // namespace lathe::text
