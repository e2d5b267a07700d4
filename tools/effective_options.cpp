#include "tools/effective_options.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe::tools {

namespace {

void check(const CLI::App& command, const std::set<std::string>& names, bool are_refused, std::string_view on,
           std::string_view hint) {
  for (const CLI::Option* option : command.get_options())
    if (option->count() > 0 && names.contains(option->get_name()) == are_refused)
      throw UserError(fmt::format("{} has no effect on {}", option->get_name(), on), "usage", hint);
}

}  // namespace

void require_effective(const CLI::App& command, const std::set<std::string>& effective, std::string_view on,
                       std::string_view hint) {
  check(command, effective, false, on, hint);
}

void refuse_options(const CLI::App& command, const std::set<std::string>& refused, std::string_view on,
                    std::string_view hint) {
  check(command, refused, true, on, hint);
}

}  // namespace lathe::tools
