#include "tools/options/graph_options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "ir/support/error.h"
#include "ir/tensor/binding.h"
#include "passes/compile/compilation.h"
#include "passes/shard/shard.h"
#include "tools/options/arguments.h"
#include "tools/options/memory_budget.h"
#include "tools/options/precision_option.h"

namespace lathe::tools {

void add_graph_options(CLI::App& command, GraphOptions& options) {
  command.add_option("--dtype", options.dtype, "Dtype of the graph's f32 values (default: f32)")
      ->check(CLI::IsMember({"f64", "f32", "bf16", "f16"}));
  add_precision_option(command, options.precision);
  add_lower_options(command, options.lower);
  add_packed_weights(command, options.lower);
}

void require_plan_sizes(const Compilation& now) {
  const std::vector<std::string> missing = ir::unbound_dims(now.graph, now.request.plan_sizes);
  if (!missing.empty())
    throw UserError(fmt::format("a memory plan needs the size of each dim: {} {} none", fmt::join(missing, ", "),
                                missing.size() == 1 ? "has" : "have"),
                    "dim_option", "give --dim NAME=SIZE");
}

namespace {

CompileRequest request_of(const GraphOptions& options) {
  CompileRequest request{.lower = options.lower};
  if (!options.dtype.empty() && options.dtype != "f32" && options.precision != "f32")
    throw UserError(fmt::format("--precision {} has no effect with --dtype {}: no f32 values are left",
                                options.precision, options.dtype),
                    "usage", "give one of both");
  if (!options.dtype.empty()) request.dtype = parse_dtype(options.dtype);
  if (options.precision != "f32") request.low_precision = parse_dtype(options.precision);
  return request;
}

}  // namespace

ir::Graph as_asked(const ir::Graph& graph, const GraphOptions& options) {
  return requested_graph(graph, request_of(options));
}

CompileRequest PassOptions::request(const DimBindings& sizes) const {
  CompileRequest request = request_of(graph);
  request.sizes = sizes;
  request.evaluation = evaluation;
  if (division.is_given()) {
    shard::ShardOptions parts = division.parts();
    request.ring = parts.ring == shard::RingWay::always;
    parts.ring = shard::RingWay::never;  // a separate stage
    request.shard = [division = division, parts](const ir::Graph& whole) {
      return shard::shard(whole, division.mesh(), division.splits(), parts).graph;
    };
  }
  return request;
}

void add_pass_options(CLI::App& command, PassOptions& options, const std::string& dim_doc) {
  command.add_option("--dim", options.dims, dim_doc)->allow_extra_args(false)->delimiter(',');
  add_graph_options(command, options.graph);
  command.add_flag("--evaluation", options.evaluation, "Compile for evaluation: dropout returns its operand");
  add_division(command, options.division);
}

}  // namespace lathe::tools
