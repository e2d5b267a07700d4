#pragma once

#include <source_location>
#include <string>
#include <string_view>

#include "ir/support/containers/shared_box.h"

namespace lathe {

/// The source location of an op: a line of a file, or, with line 0, a node of an imported graph, whose `file` is
/// "model.onnx:/layers.0/attn/MatMul". Passes copy it from node to node. A gradient op has the line of the op that it
/// differentiates, with `gradient` set.
class Location {
 public:
  Location() = default;
  Location(std::string_view file, int line, std::string_view scope = {}, bool gradient = false);
  /// Unknown for a line of the C++ standard library: a layer that `emplace_back` constructs does not know its caller.
  explicit Location(const std::source_location& at, std::string_view scope = {});

  bool known() const { return bool(position_); }
  std::string_view file() const { return position_ ? std::string_view(position_->file) : std::string_view(); }
  int line() const { return line_; }
  /// Returns the module path, such as "encoder.0.self"; empty at the top.
  std::string_view scope() const { return position_ ? std::string_view(position_->scope) : std::string_view(); }
  bool gradient() const { return gradient_; }

  Location as_gradient() const;

  /// Returns "mha.cpp:14", "gradient of mha.cpp:14" for a gradient, the name of a node, or "<unknown>".
  std::string to_string() const;
  /// Returns text for sentences: "mha.cpp:14", also for gradients, or "an unknown line".
  std::string place() const;

  bool operator==(const Location& other) const;

 private:
  struct Position {
    std::string file, scope;
  };
  SharedBox<const Position> position_;  // null if unknown
  int line_ = 0;
  bool gradient_ = false;
};

}  // namespace lathe
