#pragma once

#include <string>

#include "tests/fuzz/graph_generator.h"

namespace lathe::fuzz {

/// Returns a case as IR text. Its seed, sizes, and whether its arguments are tame, are in comments before the graph:
///   // seed 17
///   // tame
///   // sizes n=2 m=3
///   // sizes n=0 m=1
std::string case_text(const Case& from);

/// Reads such a file. Throws ParseError, and UserError [file_read].
Case read_case(const std::string& path);

}  // namespace lathe::fuzz
