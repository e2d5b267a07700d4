#pragma once

#include <CLI/App.hpp>
#include <set>
#include <string>
#include <string_view>

namespace lathe::tools {

/// Throws UserError [usage] for a given option of the command that is not in `effective`: "--lora has no effect on
/// gpt, a built-in model". `on` is the end of the message.
void require_effective(const CLI::App& command, const std::set<std::string>& effective, std::string_view on,
                       std::string_view hint = "leave it out");

/// The same for a given option that is in `refused`.
void refuse_options(const CLI::App& command, const std::set<std::string>& refused, std::string_view on,
                    std::string_view hint = "leave it out");

}  // namespace lathe::tools
