#pragma once

#include <functional>
#include <optional>
#include <string>

namespace lathe::test {

/// Runs `check` in its own process. Returns its result, the exception that it threw, or that it crashed, exceeded
/// `seconds` of CPU time, or waited for 20 times as long. The caller must have no other threads.
std::optional<std::string> isolated(const std::function<std::optional<std::string>()>& check, unsigned seconds);

/// Returns what complaints about the same defect have in common: the text of an InternalError, a signal, or only that
/// results are wrong.
std::string kind_of(const std::string& complaint);

}  // namespace lathe::test
