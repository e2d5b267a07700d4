#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::importing {

/// Collects the parts of a file that are not imported, such as ops and attributes, with the nodes that have them.
class UnsupportedParts {
 public:
  /// `part` is the text for the part: "the op NonZero".
  void add(std::string part, std::string node) { nodes_[std::move(part)].push_back(std::move(node)); }

  /// Throws UserError [import_unsupported] with all parts, if there are any. `advice` is one more line for the user.
  void report(std::string_view file, std::string_view advice = {}) const;

 private:
  std::map<std::string, std::vector<std::string>> nodes_;  ///< by part
};

}  // namespace lathe::importing
