#pragma once

#include <string>

namespace lathe::tools {

/// The stages of compilation for a target, given by its name, as `lathe opt --list` prints them.
std::string list_stages(const std::string& target);

/// Throws a UserError for a stage that does not run: [usage] for one that an option or another target enables, which
/// it names, otherwise [pass_name]. An empty target: the command names none.
[[noreturn]] void throw_missing_stage(const std::string& stage, const std::string& target);

}  // namespace lathe::tools
