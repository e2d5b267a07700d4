#include "tools/commands.h"
namespace lathe::tools {
void add_run(CLI::App&) {}
}  // namespace lathe::tools
