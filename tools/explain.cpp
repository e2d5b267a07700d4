#include "ir/tensor/explain.h"

#include <CLI/CLI.hpp>

#include "tools/commands.h"
#include "tools/files.h"

namespace lathe::tools {

namespace {
struct Options {
  std::string file, output = "-";
  bool all = false;
};
}  // namespace

void add_explain(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("explain", "Tell the story of a graph's shapes: every value, and why");
  command->add_option("FILE", options->file, "IR text")->required();
  command->add_option("-o,--output", options->output, "Where to write it")->capture_default_str();
  command->add_flag("--all", options->all, "Tell layers that repeat in full");
  command->footer("Example: lathe explain mha.lathe");
  command->callback([options] {
    write_text(options->output, ir::explain(load_graph(options->file), {.collapse_layers = !options->all}));
  });
}

}  // namespace lathe::tools
