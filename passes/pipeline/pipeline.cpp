#include "passes/pipeline/pipeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>

#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "ir/support/visible.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"
#include "passes/chunks/chunk_rows.h"
#include "passes/fusion/attention/fuse_attention.h"
#include "passes/fusion/attention/require_attention.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/lower_gpu.h"
#include "passes/shard/ring/ring_attention.h"
#include "passes/transforms/canonicalize.h"
#include "passes/transforms/constant_fold.h"
#include "passes/transforms/cse.h"
#include "passes/transforms/dce.h"
#include "passes/transforms/decompose_complex.h"
#include "passes/transforms/evaluation.h"
#include "passes/transforms/expand.h"
#include "passes/transforms/mixed_precision.h"

namespace lathe::ir {

Pipeline all_passes(const RowChunks& chunks) {
  return {
      {"canonicalize", "one form for what can be written in several ways",
       [](Graph g) { return canonicalize(std::move(g)); }},
      {"expand", "composites become primitives", [](Graph g) { return expand(std::move(g)); }},
      {"decompose-complex", "complex values become pairs of reals",
       [](Graph g) { return decompose_complex(std::move(g)); }},
      {"constant-fold", "small results of constants are computed",
       [](Graph g) { return constant_fold(std::move(g)); }},
      {"cse", "equal computations become one", [](Graph g) { return cse(std::move(g)); }},
      {"dce", "what nothing needs is dropped", [](Graph g) { return dce(std::move(g)); }},
      {"chunk-rows", "large products that only fold their columns go over rows in chunks",
       [chunks](Graph g) { return chunk_rows(std::move(g), chunks); }},
  };
}

Pass evaluation_pass() {
  return {"evaluation", "dropout passes its operand on, for a graph that is not trained",
          [](const Graph& g) { return evaluation(g); }};
}

Pipeline mode_passes() { return {evaluation_pass(), mixed_precision_pass(bf16), mixed_precision_pass(f16)}; }

Pipeline default_pipeline(const RowChunks& chunks) {
  return parse_pipeline("dce,canonicalize,expand,decompose-complex,constant-fold,canonicalize,cse,chunk-rows",
                        chunks);
}

std::vector<std::string> stage_names(const Pipeline& pipeline) {
  std::map<std::string, int> times;
  std::vector<std::string> names;
  for (const Pass& pass : pipeline) {
    const int time = ++times[pass.name];
    names.push_back(time == 1 ? pass.name : fmt::format("{}.{}", pass.name, time));
  }
  return names;
}

namespace {

[[noreturn]] void unknown_pass(std::string_view name, const Pipeline& known) {
  const std::vector<std::string> stages = stage_names(known);
  throw UserError(fmt::format("there is no pass named '{}'", name), "pass_name",
                  did_you_mean_or_list(name, {stages.begin(), stages.end()}, "the passes are"));
}

const Pass* find_pass(const Pipeline& pipeline, std::string_view name) {
  const auto at = std::find_if(pipeline.begin(), pipeline.end(), [&](const Pass& pass) { return pass.name == name; });
  return at == pipeline.end() ? nullptr : &*at;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Writes the names of the passes from `first` on and the graph they were given; gives a remark for the error.
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
  Graph result = pass.run(std::move(graph));
  if (const auto defect = find_defect(result, known)) throw InternalError(*defect);
  return result;
}

}  // namespace

void insert_before(Pipeline& pipeline, std::string_view name, Pass pass) {
  const Pass* found = find_pass(pipeline, name);
  if (!found) unknown_pass(name, pipeline);
  pipeline.insert(pipeline.begin() + (found - pipeline.data()), std::move(pass));
}

Pipeline parse_pipeline(std::string_view names, const RowChunks& chunks) {
  Pipeline known = all_passes(chunks);
  for (const Pipeline& more :
       {mode_passes(), gpu_machine(gpu_infos().front()).passes, prepare_passes(),
        attention_passes({.result_dots = ResultDots{.block_bytes = unnamed_cpu().l2.share()}})})
    known.insert(known.end(), more.begin(), more.end());
  known.push_back(require_attention_pass());
  known.push_back(shard::ring_pass());
  Pipeline pipeline;
  while (!names.empty()) {
    const auto comma = std::min(names.find(','), names.size());
    const std::string_view name = names.substr(0, comma);
    names.remove_prefix(std::min(comma + 1, names.size()));
    const Pass* pass = find_pass(known, name);
    if (!pass) unknown_pass(name, known);
    pipeline.push_back(*pass);
  }
  return pipeline;
}

PipelineResult run_pipeline(const Graph& graph, const Pipeline& pipeline, const PipelineOptions& options) {
  for (const std::string& name : options.disable)
    if (!find_pass(pipeline, name)) unknown_pass(name, pipeline);
  const std::vector<std::string> stages = stage_names(pipeline);
  if (!options.stop_after.empty() && !contains(stages, options.stop_after))
    unknown_pass(options.stop_after, pipeline);
  InferredTypes known;
  if (const auto defect = find_defect(graph, known)) throw InternalError(*defect);
  if (options.dump_after) options.dump_after("input", graph);

  PipelineResult result{.graph = graph, .runs = {}};
  for (std::size_t i = 0; i < pipeline.size(); ++i) {
    const Pass& pass = pipeline[i];
    if (contains(options.disable, pass.name)) continue;
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
    result.runs.push_back({stages[i], seconds.count(), before, result.graph.size()});
    if (options.dump_after) options.dump_after(stages[i], result.graph);
    if (stages[i] == options.stop_after) break;
  }
  return result;
}

}  // namespace lathe::ir
