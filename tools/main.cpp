#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/llvm/out_of_memory.h"
#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "tools/commands/commands.h"
#include "tools/exit_status.h"
#include "tools/stack_limit.h"
#include "tools/stop_signals.h"
#include "tools/streams.h"

namespace {

constexpr int failed = 1, wrong_usage = 2, defect = 3;

/// Suggests options for an unknown one: the nearest by spelling, or those that contain its name.
std::string meant_option(const CLI::App& command, const std::string& wrong) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::vector<std::string_view> all(names.begin(), names.end());
  if (std::string meant = lathe::did_you_mean(wrong, all); !meant.empty()) return meant;
  const std::string word = wrong.substr(std::min(wrong.find_first_not_of('-'), wrong.size()));
  std::vector<std::string_view> with;
  if (word.size() > 2)
    std::ranges::copy_if(all, std::back_inserter(with),
                         [&](std::string_view name) { return name.find(word) != name.npos; });
  return with.empty() ? "" : fmt::format("did you mean {}?", lathe::list_of(with));
}

/// CLI11's message for unexpected arguments, in the order in which they were given.
std::string unexpected(const CLI::App* app) {
  const std::vector<std::string> left = app->remaining(/*recurse=*/true);
  return fmt::format("{} not expected: {}\nRun with --help for more information.\n",
                     left.size() > 1 ? "These arguments were" : "This argument was", fmt::join(left, " "));
}

std::string usage_error(const CLI::App* app, const CLI::Error& error) {
  std::string text = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)
                         ? unexpected(app)
                         : CLI::FailureMessage::simple(app, error);
  for (const CLI::App* command : app->get_subcommands())
    for (const std::string& argument : command->remaining())
      if (argument.starts_with('-')) {
        const std::string name = argument.substr(0, argument.find('='));
        if (const std::string meant = meant_option(*command, name); !meant.empty())
          text += fmt::format("{}: {}\n", name, meant);
      }
  return text;
}

/// Appends "(default: none)" to each option that has no default value, so that help states the default of all.
void state_defaults(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    state_defaults(*command);
    for (CLI::Option* option : command->get_options([](CLI::Option*) { return true; })) {
      const std::string& text = option->get_description();
      const bool takes_value = option->get_items_expected_max() > 0 && option->get_type_size() > 0;
      if (takes_value && !option->get_required() && !option->get_positional() && option->get_default_str().empty() &&
          text.find("default: ") == std::string::npos)
        option->description(text + " (default: none)");
    }
  }
}

int run(int argc, char** argv) {
  CLI::App app(
      "Lathe: a computation-graph compiler with autograd. Graphs are IR text (docs/ir.md) or model directories.",
      "lathe");
  app.set_version_flag("--version", "lathe " LATHE_VERSION);
  app.require_subcommand(1);
  app.failure_message(usage_error);
  app.footer("lathe COMMAND --help prints the options of a command. The file name - is standard input or output.");
  namespace tools = lathe::tools;
  for (const auto add :
       {tools::add_dump,    tools::add_explain,  tools::add_diff,   tools::add_opt,   tools::add_grad,
        tools::add_shard,   tools::add_run,      tools::add_verify, tools::add_model, tools::add_export,
        tools::add_train,   tools::add_finetune, tools::add_merge,  tools::add_eval,  tools::add_generate,
        tools::add_embed,   tools::add_tokenize, tools::add_chat,   tools::add_bench, tools::add_trace,
        tools::add_compile, tools::add_doctor})
    add(app);
  state_defaults(app);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& e) {
    std::ostringstream out, err;
    const int status = app.exit(e, out, err);
    tools::print_error(err.str());
    tools::print_text(out.str());
    return status == 0 ? 0 : wrong_usage;
  }
}

/// Prints the current exception to standard error and returns its exit status.
int report() noexcept {
  using lathe::tools::print_error;
  try {
    throw;
  } catch (const lathe::tools::Stopped& e) {
    return e.status();
  } catch (const lathe::tools::ExitStatus& e) {
    return e.status();
  } catch (const lathe::InternalError& e) {
    print_error(fmt::format("{}\n", e.what()));
    return defect;
  } catch (const lathe::Error& e) {
    print_error(fmt::format("lathe: {}\n", e.what()));
    return failed;
  } catch (const std::bad_alloc&) {
    print_error(lathe::tools::out_of_memory_text());
    return failed;
  } catch (const std::exception& e) {
    print_error(fmt::format("internal error in Lathe: {} (please report this)\n", e.what()));
    return defect;
  }
}

/// Handles exceptions that cannot be caught, for example in threads or destructors, with the usual message and
/// status.
[[noreturn]] void end_at_once() noexcept { std::_Exit(std::current_exception() ? report() : defect); }

[[noreturn]] void end_out_of_memory() {
  const std::string& text = lathe::tools::out_of_memory_text();
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) {
    // The exit status reports it too.
  }
  std::_Exit(failed);
}

}  // namespace

int main(int argc, char** argv) {
  static_cast<void>(lathe::tools::out_of_memory_text());
  std::set_terminate(end_at_once);
  lathe::codegen::set_out_of_memory_handler(end_out_of_memory);
  lathe::tools::prepare_streams();
  int status = 0;
  try {
    lathe::tools::check_stack_limit();
    status = run(argc, argv);
  } catch (...) {
    status = report();
  }
  if (!lathe::tools::streams_are_written() && status == 0) status = failed;
  return status;
}
