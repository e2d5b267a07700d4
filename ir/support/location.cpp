#include "ir/support/location.h"

#include <fmt/core.h>

#include "ir/support/visible.h"

namespace lathe {

namespace {
/// Returns the last component of a path, so that dumps are the same on every machine.
std::string_view base_name(std::string_view path) {
  const auto slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

/// Whether a header of the C++ standard library has this path: its functions construct objects for others.
bool is_standard_header(std::string_view path) { return path.find("/c++/") != std::string_view::npos; }
}  // namespace

Location::Location(std::string_view file, int line, std::string_view scope, bool gradient)
    : position_(SharedBox<const Position>::make(Position{std::string(file), std::string(scope)})),
      line_(line),
      gradient_(gradient) {}

Location::Location(const std::source_location& at, std::string_view scope) {
  if (!is_standard_header(at.file_name()))
    *this = Location(base_name(at.file_name()), static_cast<int>(at.line()), scope);
}

Location Location::as_gradient() const {
  Location copy = *this;
  copy.gradient_ = true;
  return copy;
}

std::string Location::to_string() const {
  if (!known()) return "<unknown>";
  return (gradient_ ? "gradient of " : "") + place();
}

std::string Location::place() const {
  if (!known()) return "an unknown line";
  return line_ == 0 ? visible(file()) : fmt::format("{}:{}", visible(file()), line_);
}

bool Location::operator==(const Location& other) const {
  return line_ == other.line_ && gradient_ == other.gradient_ &&
         (position_ == other.position_ || (file() == other.file() && scope() == other.scope()));
}

}  // namespace lathe
