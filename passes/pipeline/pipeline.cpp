#include "passes/pipeline/pipeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>

#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "ir/support/visible.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"

namespace lathe::ir {

std::vector<std::string> numbered(std::vector<std::string> names) {
  std::map<std::string, int> times;
  for (std::string& name : names)
    if (const int time = ++times[name]; time > 1) name = fmt::format("{}.{}", name, time);
  return names;
}

std::vector<std::string> stage_names(const Pipeline& pipeline) {
  std::vector<std::string> names;
  for (const Pass& pass : pipeline) names.push_back(pass.name);
  return numbered(std::move(names));
}

namespace {

[[noreturn]] void unknown_pass(std::string_view name, const Pipeline& known) {
  const std::vector<std::string> stages = stage_names(known);
  throw UserError(fmt::format("there is no pass named '{}'", name), "pass_name",
                  did_you_mean_or_list(name, {stages.begin(), stages.end()}, "the passes are"));
}

/// Writes the names of the passes in `rest` and the graph before the first of them. Returns a hint for the error
/// message.
std::string write_reproducer(const Graph& graph, std::span<const Pass> rest, const std::string& path) {
  if (path.empty()) return "";
  std::string names;
  for (const Pass& pass : rest) names += (names.empty() ? "" : ",") + pass.name;
  std::ofstream file(path);
  file << "// lathe opt --passes=" << names << " " << visible(path) << "\n" << print(graph);
  file.close();
  return file ? fmt::format("; to repeat it: lathe opt --passes={} {}", names, path)
              : fmt::format("; the reproducer {} could not be written", path);
}

Graph run_pass(const Pass& pass, Graph graph, InferredTypes& known) {
  if (pass.runs_on_bodies) graph = on_bodies(std::move(graph), pass.run);
  Graph result = pass.run(std::move(graph));
  if (const auto defect = find_defect(result, known)) throw InternalError(*defect);
  return result;
}

}  // namespace

Pipeline up_to(std::string_view stage, Pipeline pipeline) {
  const std::vector<std::string> names = stage_names(pipeline);
  const auto found = std::ranges::find(names, stage);
  if (found == names.end()) unknown_pass(stage, pipeline);
  pipeline.resize(static_cast<std::size_t>(found - names.begin()) + 1);
  return pipeline;
}

PipelineResult run_passes(Graph graph, const Pipeline& pipeline, const std::vector<std::string>& labels,
                          const PipelineOptions& options) {
  for (const std::string& name : options.disable)
    if (std::ranges::find(pipeline, name, &Pass::name) == pipeline.end()) unknown_pass(name, pipeline);
  InferredTypes known;
  if (const auto defect = find_defect(graph, known)) throw InternalError(*defect);

  PipelineResult result{.graph = std::move(graph), .runs = {}};
  for (std::size_t i = 0; i < pipeline.size(); ++i) {
    const Pass& pass = pipeline[i];
    if (std::ranges::find(options.disable, pass.name) != options.disable.end()) continue;
    const auto start = std::chrono::steady_clock::now();
    const int before = result.graph.size();
    const Graph kept = options.reproducer.empty() ? Graph() : result.graph;
    try {
      result.graph = run_pass(pass, std::move(result.graph), known);
    } catch (const UserError&) {
      throw;
    } catch (const std::exception& error) {
      const auto remark = write_reproducer(kept, std::span(pipeline).subspan(i), options.reproducer);
      throw InternalError(fmt::format("pass {}: {}{}", pass.name, error.what(), remark));
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    result.runs.push_back({labels[i], seconds.count(), before, result.graph.size()});
    if (options.dump_after) options.dump_after(labels[i], result.graph);
  }
  return result;
}

PipelineResult run_pipeline(const Graph& graph, const Pipeline& pipeline, const PipelineOptions& options) {
  if (options.dump_after) options.dump_after("input", graph);
  return run_passes(graph, pipeline, stage_names(pipeline), options);
}

}  // namespace lathe::ir
