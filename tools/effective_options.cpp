#include "tools/effective_options.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe::tools {

void require_effective(const CLI::App& command, const std::set<std::string>& effective, std::string_view on,
                       std::string_view hint) {
  for (const CLI::Option* option : command.get_options())
    if (option->count() > 0 && !effective.contains(option->get_name()))
      throw UserError(fmt::format("{} has no effect on {}", option->get_name(), on), "usage", hint);
}

}  // namespace lathe::tools
