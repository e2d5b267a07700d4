#pragma once

#include <string>

namespace lathe::tools {

/// Returns the compilation stages for a target, as printed by `lathe opt --list`.
std::string list_stages(const std::string& target);

/// Throws a UserError for a stage that does not run: [usage] if an option or another target would enable it, which
/// the message names; otherwise [pass_name]. An empty `target` means that the command was given none.
[[noreturn]] void throw_missing_stage(const std::string& stage, const std::string& target);

}  // namespace lathe::tools
