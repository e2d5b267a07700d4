#pragma once

#include <source_location>
#include <string>
#include <string_view>

#include "ir/support/containers/shared_box.h"

namespace lathe {

/// Where the user wrote an op. Passes copy it from node to node; a gradient op carries the line of the op it
/// differentiates, with `gradient` set.
class Location {
 public:
  Location() = default;
  Location(std::string_view file, int line, std::string_view scope = {}, bool gradient = false);
  explicit Location(const std::source_location& at, std::string_view scope = {});

  bool known() const { return bool(position_); }
  std::string_view file() const { return position_ ? std::string_view(position_->file) : std::string_view(); }
  int line() const { return line_; }
  /// The module path, such as "encoder.0.self"; empty at the top.
  std::string_view scope() const { return position_ ? std::string_view(position_->scope) : std::string_view(); }
  bool gradient() const { return gradient_; }

  Location as_gradient() const;

  /// "mha.cpp:14", "gradient of mha.cpp:14" for a gradient, "<unknown>" where nothing is known.
  std::string to_string() const;
  /// For sentences: "mha.cpp:14", of a gradient too, "an unknown line" where nothing is known.
  std::string place() const;

  bool operator==(const Location& other) const;

 private:
  struct Position {
    std::string file, scope;
  };
  SharedBox<const Position> position_;  // null where nothing is known
  int line_ = 0;
  bool gradient_ = false;
};

}  // namespace lathe
