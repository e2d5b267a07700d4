#pragma once

#include <string>
#include <vector>

#include "ir/support/error.h"
#include "runtime/ranks/ranks.h"

namespace lathe {

/// Something that is to be the same on all ranks.
struct Claim {
  std::string what;   ///< "the graph"
  std::string value;  ///< of this rank, short enough to be told
  std::string hint;   ///< where ranks differ
};

/// Throws UserError [ranks_differ], on every rank, at the first claim of which two ranks have different values; it
/// names both. All ranks call it, with equal numbers of claims.
void require_agreement(Ranks& ranks, const std::vector<Claim>& claims);

/// Throws an error that all ranks have found: when each of them has, for the first one to throw ends the others. All
/// ranks call it.
[[noreturn]] void throw_together(Ranks& ranks, const UserError& error);

/// Whether any rank says so, on every rank. All ranks call it.
bool any_of_ranks(Ranks& ranks, bool own);

/// What rank 0 says, on every rank. All ranks call it; what the others say does not count.
std::string text_of_first(Ranks& ranks, const std::string& own);

}  // namespace lathe
