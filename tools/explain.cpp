#include "ir/tensor/explain.h"

#include <CLI/CLI.hpp>

#include "passes/fusion/attention.h"
#include "passes/fusion/explain_attention.h"
#include "passes/fusion/prepare.h"
#include "passes/pipeline.h"
#include "tools/commands.h"
#include "tools/files.h"
#include "tools/precision.h"

namespace lathe::tools {

namespace {
struct Options {
  std::string file, output = "-", precision = "f32";
  bool all = false, fusion = false, require_fused = false;
};
}  // namespace

void add_explain(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("explain", "Tell the story of a graph's shapes: every value, and why");
  command->add_option("FILE", options->file, "IR text")->required();
  command->add_option("-o,--output", options->output, "Where to write it")->capture_default_str();
  command->add_flag("--all", options->all, "Tell layers that repeat in full");
  CLI::Option* fusion = command->add_flag(
      "--fusion", options->fusion, "Tell of every softmax instead: fused with the products around it, or why not");
  command->add_flag("--require-fused", options->require_fused, "An attention that is not fused is an error")
      ->needs(fusion);
  add_precision_option(*command, options->precision);
  command->footer("Examples:\n  lathe explain mha.lathe\n  lathe explain step.lathe --fusion");
  command->callback([options] {
    const ir::Graph graph = with_precision(load_graph(options->file), options->precision);
    if (options->fusion) {
      const ir::Graph passed = ir::run_pipeline(graph, ir::default_pipeline()).graph;
      write_text(options->output, explain_attention(passed));
      if (options->require_fused) require_fused_attention(recompute_attention(prepare_for_fusion(passed)));
      return;
    }
    write_text(options->output, ir::explain(graph, {.collapse_layers = !options->all}));
  });
}

}  // namespace lathe::tools
