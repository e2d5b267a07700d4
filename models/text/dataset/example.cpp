#include "models/text/dataset/example.h"

#include <algorithm>
#include <numeric>

#include "ir/support/error.h"

namespace lathe {

namespace {

/// Returns tokens [begin, end) as an example. Tokens before `first`, and the example's first token, are not learned.
Example part(std::span<const TokenId> ids, std::span<const std::uint8_t> learned, std::int64_t begin,
             std::int64_t end, std::int64_t first) {
  Example made{{ids.begin() + begin, ids.begin() + end}, {learned.begin() + begin, learned.begin() + end}};
  std::fill(made.learned.begin(), made.learned.begin() + std::max<std::int64_t>(1, first - begin), std::uint8_t{0});
  return made;
}

bool is_learned_whole(const Example& example) {
  return std::all_of(example.learned.begin() + 1, example.learned.end(), [](std::uint8_t one) { return one != 0; });
}

}  // namespace

std::int64_t Example::predictions() const { return std::accumulate(learned.begin(), learned.end(), std::int64_t{0}); }

std::vector<Example> windows(std::span<const TokenId> ids, std::int64_t length, std::int64_t stride) {
  LATHE_ASSERT(length >= 2 && stride >= 1 && stride <= length);
  const auto size = static_cast<std::int64_t>(ids.size());
  const std::vector<std::uint8_t> all(ids.size(), 1);
  std::vector<Example> found;
  for (std::int64_t begin = 0, seen = 1; seen < size; begin += stride) {
    const std::int64_t end = std::min(begin + length, size);
    found.push_back(part(ids, all, begin, end, seen));
    seen = end;
    if (stride == length) --begin;  // overlap by one token, from which the next window's first token is predicted
  }
  return found;
}

std::vector<Example> fit(std::vector<Example> examples, std::int64_t length, FitReport& report) {
  LATHE_ASSERT(length >= 2);
  std::vector<Example> fitting;
  for (Example& example : examples) {
    if (example.size() > length && is_learned_whole(example)) {
      ++report.split;
      for (Example& each : windows(example.ids, length, length)) fitting.push_back(std::move(each));
      continue;
    }
    if (example.size() > length) {
      ++report.cut;
      example.ids.resize(static_cast<std::size_t>(length));
      example.learned.resize(static_cast<std::size_t>(length));
    }
    if (!example.learned.empty()) example.learned[0] = 0;
    if (example.predictions() > 0)
      fitting.push_back(std::move(example));
    else
      ++report.dropped;
  }
  return fitting;
}

}  // namespace lathe
