#pragma once

#include <string>
#include <string_view>

/// Generates the reference of the DSL from the public headers of frontend/.
namespace lathe::test {

/// Returns all of docs/dsl.md.
std::string dsl_page();

/// Returns the parts of a doc comment that the page prints: its first sentence, and later sentences that have shapes
/// of results ("Returns [..]", "->").
std::string summary_of(std::string_view doc);

/// Returns a declaration as the page prints it: parameters by value, without the caller's line.
std::string printed_declaration(std::string code);

}  // namespace lathe::test
