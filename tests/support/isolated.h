#pragma once

#include <functional>
#include <optional>
#include <string>

namespace lathe::test {

/// Runs `check` in a process of its own: what it says, or what it threw, or that it crashed or was not done after so
/// many seconds of processor time, or waited for 20 times as long. The caller has no other threads.
std::optional<std::string> isolated(const std::function<std::optional<std::string>()>& check, unsigned seconds);

/// What two complaints about one defect share: the text of an InternalError, a signal, or only that results are
/// wrong.
std::string kind_of(const std::string& complaint);

}  // namespace lathe::test
