#include "tools/execute.h"

#include <fmt/core.h>

#include "ir/tensor/binding.h"
#include "ir/tensor/op/op.h"
#include "runtime/cache/disk_cache.h"
#include "tools/environment.h"
#include "tools/options/memory_budget.h"
#include "tools/options/target_option.h"
#include "tools/options/tune_option.h"
#include "tools/streams.h"

namespace lathe::tools {

Executable compile_here(const ir::Graph& graph, const Arguments& arguments, const ExecuteOptions& options) {
  DiskCache cache(cache_folder());
  CompileOptions how = compile_options(options.target);
  how.threads = options.threads;
  how.poison = options.poison;
  how.cache = &cache;
  how.lower = options.lower;
  how.lower.memory = memory_budget(options.memory_budget, graph, arguments);
  if (options.tune > 0) how.tune = tune_options(options.tune, bound_dims(graph, arguments));
  how.sizes = sizes_for_chunks(options.lower, bound_dims(graph, arguments));
  Executable executable = compile(graph, how);
  if (const auto& tuned = executable.summary().tuned) print_error(to_string(*tuned));
  return executable;
}

Tensors bind_states(Executable& executable, const ir::Graph& graph, const Arguments& arguments) {
  Tensors inputs;
  for (const auto& [name, tensor] : arguments.tensors) {
    if (graph[graph.find_argument(name)].op->name.value == "input")
      inputs.emplace(name, tensor);
    else
      executable.parameters().set(name, tensor);
  }
  return inputs;
}

DimBindings dims_of_run(const ir::Graph& graph, const Arguments& arguments) {
  DimBindings dims;
  for (const std::string& name : ir::dims_without_argument(graph))
    if (const auto found = arguments.dims.find(name); found != arguments.dims.end()) dims.insert(*found);
  return dims;
}

Tensors execute(const ir::Graph& graph, const Arguments& arguments, const ExecuteOptions& options) {
  if (options.interpret) return ir::interpret(graph, arguments.tensors, {.round = true, .dims = arguments.dims});
  Executable executable = compile_here(graph, arguments, options);
  const Tensors inputs = bind_states(executable, graph, arguments);
  Tensors results = executable.run(inputs, dims_of_run(graph, arguments));
  for (const ir::Update& update : graph.updates) {
    const std::string& name = graph[update.state].name;
    if (!results.emplace(name, executable.parameters().get(name)).second)
      throw UserError("an output and an updated state are both called " + name, "result_name", "rename the output");
  }
  return results;
}

Prepared prepare(LoadedModel model, ArgumentOptions arguments, const ExecuteOptions& options) {
  arguments.random = true;
  ir::Graph graph = std::move(model.graph);
  const Arguments values = load_arguments(graph, arguments, false, model.weights);
  Executable executable = compile_here(graph, values, options);
  Tensors inputs = bind_states(executable, graph, values);
  DimBindings dims = dims_of_run(graph, values);
  return {std::move(graph), std::move(executable), std::move(inputs), std::move(dims)};
}

}  // namespace lathe::tools
