#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "ir/support/error.h"
#include "tools/commands.h"

namespace {

constexpr int failed = 1, wrong_usage = 2, defect = 3;

int run(int argc, char** argv) {
  CLI::App app("Lathe: a computation-graph compiler with autograd. Each command reads IR text (docs/ir.md).",
               "lathe");
  app.set_version_flag("--version", "lathe " LATHE_VERSION);
  app.require_subcommand(1);
  app.footer("lathe COMMAND --help tells more. A file named - is standard input or output.");
  namespace tools = lathe::tools;
  for (const auto add : {tools::add_dump, tools::add_explain, tools::add_opt, tools::add_grad, tools::add_run,
                         tools::add_verify, tools::add_model, tools::add_train, tools::add_bench, tools::add_trace,
                         tools::add_compile, tools::add_doctor})
    add(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : wrong_usage;
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const lathe::InternalError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return defect;
  } catch (const lathe::Error& e) {
    fmt::print(stderr, "lathe: {}\n", e.what());
    return failed;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "lathe: out of memory\n");
    return failed;
  } catch (const std::exception& e) {
    fmt::print(stderr, "internal error in Lathe: {} (please report this)\n", e.what());
    return defect;
  }
}
