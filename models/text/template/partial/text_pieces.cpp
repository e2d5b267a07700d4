#include "models/text/template/partial/text_pieces.h"

#include <algorithm>

namespace lathe::jinja {

namespace {

std::size_t common_start_of(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}
std::size_t common_end_of(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin()).first - a.rbegin());
}

/// Returns the length of the common prefix or suffix.
template <bool from_start>
std::size_t common(const TextPieces& a, const TextPieces& b, std::uint64_t& compared) {
  const auto &left = a.pieces(), &right = b.pieces();
  std::size_t i = 0, j = 0, same = 0;
  std::string_view x, y;
  const auto refill = [](std::string_view& part, const std::vector<std::string_view>& pieces, std::size_t& next) {
    while (part.empty() && next < pieces.size()) {
      part = from_start ? pieces[next] : pieces[pieces.size() - 1 - next];
      ++next;
    }
    return !part.empty();
  };
  while (refill(x, left, i) && refill(y, right, j)) {
    const std::size_t size = std::min(x.size(), y.size());
    const std::string_view p = from_start ? x.substr(0, size) : x.substr(x.size() - size),
                           q = from_start ? y.substr(0, size) : y.substr(y.size() - size);
    std::size_t count = size;
    if (p.data() != q.data()) {
      count = from_start ? common_start_of(p, q) : common_end_of(p, q);
      compared += count;
    }
    same += count;
    if (count < size) break;
    x = from_start ? x.substr(size) : x.substr(0, x.size() - size);
    y = from_start ? y.substr(size) : y.substr(0, y.size() - size);
  }
  return same;
}

}  // namespace

void TextPieces::append(std::string text) {
  owned_.push_back(std::make_unique<const std::string>(std::move(text)));
  share(*owned_.back());
}

void TextPieces::share(std::string_view text) {
  if (text.empty()) return;
  pieces_.push_back(text);
  size_ += text.size();
}

TextPieces TextPieces::from(std::size_t at) const {
  TextPieces rest;
  for (const std::string_view piece : pieces_) {
    if (at < piece.size()) rest.share(piece.substr(at));
    at -= std::min(at, piece.size());
  }
  return rest;
}

std::size_t common_start(const TextPieces& a, const TextPieces& b, std::uint64_t& compared) {
  return common<true>(a, b, compared);
}

std::size_t common_end(const TextPieces& a, const TextPieces& b, std::uint64_t& compared) {
  return common<false>(a, b, compared);
}

}  // namespace lathe::jinja
