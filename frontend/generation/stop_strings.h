#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lathe {

/// Passes a text on as it comes, up to the first of some strings. What may be the start of one is held back.
class StopStrings {
 public:
  /// Empty strings do not count.
  explicit StopStrings(std::vector<std::string> strings);

  /// What can be passed on now.
  std::string push(std::string_view text);
  /// What was held back, when no more comes.
  std::string finish();
  /// Whether one of them was met: everything from it on is dropped.
  bool met() const { return met_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool met_ = false;
};

}  // namespace lathe
