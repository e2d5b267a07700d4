#include "models/text/template/values/search.h"

#include <cstring>

namespace lathe::jinja {

std::size_t find_first(std::string_view text, std::string_view wanted, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  // The C library's memmem uses the two-way algorithm.
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

std::size_t find_last(std::string_view text, std::string_view wanted) {
  const std::size_t at = find_first(reversed(text), reversed(wanted));
  return at == std::string_view::npos ? at : text.size() - at - wanted.size();
}

std::string reversed(std::string_view text) { return {text.rbegin(), text.rend()}; }

}  // namespace lathe::jinja
