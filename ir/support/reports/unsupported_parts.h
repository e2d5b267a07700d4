#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

/// Collects the parts of a file or graph that are not supported, such as ops and attributes, with their places.
class UnsupportedParts {
 public:
  /// `part` is the text for the part: "the op NonZero". A place, such as a node or a line, is listed once per part.
  void add(std::string part, std::string place);

  /// Throws UserError [label] with all parts, if there are any: "`owner` has 2 parts that `problem`". At most 6
  /// places of each part are listed. `advice` is one more line for the user.
  void report(std::string_view owner, std::string_view problem, std::string_view label,
              std::string_view advice = {}) const;

 private:
  std::map<std::string, std::vector<std::string>> places_;  ///< by part
};

}  // namespace lathe
