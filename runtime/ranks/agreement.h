#pragma once

#include <string>
#include <vector>

#include "ir/support/error.h"
#include "runtime/ranks/ranks.h"

namespace lathe {

/// A value that must be the same on all ranks.
struct Claim {
  std::string what;   ///< name of the value: "the graph"
  std::string value;  ///< this rank's value, short enough for a message
  std::string hint;   ///< hint of the error if ranks differ
};

/// Throws UserError [ranks_differ] on every rank if two ranks have different values for a claim. The error names the
/// first such claim and both values. Must be called by all ranks with equal numbers of claims.
void require_agreement(Ranks& ranks, const std::vector<Claim>& claims);

/// Waits until every rank has come here, or until one has failed. Then an exception of any of them ends all.
void wait_for_ranks(Ranks& ranks);

/// Throws an error that all ranks have found. Waits until every rank has found it, because the first throw aborts the
/// others. Must be called by all ranks.
[[noreturn]] void throw_together(Ranks& ranks, const UserError& error);

/// Returns on every rank whether `own` is true on any rank. Must be called by all ranks.
bool any_of_ranks(Ranks& ranks, bool own);

/// Returns rank 0's `own` on every rank. Must be called by all ranks; other ranks' `own` is ignored.
std::string text_of_first(Ranks& ranks, const std::string& own);

}  // namespace lathe
