#include "models/generation/stop_strings.h"

#include <algorithm>
#include <utility>

namespace lathe {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  std::erase_if(strings_, [](const std::string& s) { return s.empty(); });
}

std::string StopStrings::push(std::string_view text) {
  if (met_) return {};
  held_ += text;
  std::size_t end = std::string::npos;
  for (const std::string& stop : strings_) end = std::min(end, held_.find(stop));
  if (end != std::string::npos) {
    met_ = true;
    held_.resize(end);
    return std::exchange(held_, {});
  }
  // The longest suffix of the text that is a prefix of a stop string.
  std::size_t kept = 0;
  for (const std::string& stop : strings_)
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > kept; --n)
      if (held_.ends_with(std::string_view(stop).substr(0, n))) kept = n;
  std::string passed = held_.substr(0, held_.size() - kept);
  held_.erase(0, passed.size());
  return passed;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace lathe
