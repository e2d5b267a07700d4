#pragma once

#include <string>
#include <vector>

#include "tests/structure/sources.h"

/// A reader of the project's own headers, for pages that are generated from them. It relies on clang-format's layout.
namespace lathe::test {

/// A declaration of a header, or a heading between declarations.
struct Declaration {
  enum class Kind { heading, type, enumerator, member };
  Kind kind;
  std::string owner = {};   ///< the type that contains it, with inner namespaces: "nn::Linear"; "nn" for a function
  std::string name = {};    ///< of a type: "nn::Linear"
  std::string code = {};    ///< the declaration in one line, without its body
  std::string doc = {};     ///< its doc comment in one line, without code examples; the text of a heading
  bool shares_doc = false;  ///< it has no doc comment, and directly follows a documented function of the same type
};

struct HeaderText {
  std::string doc;  ///< the doc comment of the header's namespace
  std::vector<Declaration> declarations;
};

/// Returns the public and protected declarations of a header, in order. Excludes namespaces named detail, forward
/// declarations, and constructors, destructors and operators that are defaulted or deleted.
HeaderText declarations_of(const SourceFile& header);

}  // namespace lathe::test
