#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lathe {

/// Passes streamed text through until one of several stop strings occurs. Text that may be the start of a stop string
/// is held back.
class StopStrings {
 public:
  /// Ignores empty strings.
  explicit StopStrings(std::vector<std::string> strings);

  /// Adds text and returns what can be emitted now.
  std::string push(std::string_view text);
  /// Returns the text that was held back; call it at the end of the stream.
  std::string finish();
  /// Whether a stop string was found. Text from there on is dropped.
  bool met() const { return met_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool met_ = false;
};

}  // namespace lathe
