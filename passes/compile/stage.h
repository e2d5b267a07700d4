#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/pass.h"
#include "passes/compile/request.h"
#include "passes/lowering/machine.h"

namespace lathe {

struct Compilation;  // passes/compile/compilation.h

/// A stage of compilation: a row of the table in stages.cpp. A stage is either a pass, from graph to graph, or a step
/// that produces the next form: regions, a program, a memory plan. Stages that print code have neither.
struct Stage {
  enum class Part : std::uint8_t {
    whole_graph,   ///< optional, before all other stages: changes what the graph computes, or for how many processes
    every_target,  ///< graph passes that need no target
    target,        ///< graph passes that depend on the target
    lowering,      ///< lowers the graph to a program of kernels
    code,          ///< generates code from kernels
  };
  Part part;
  std::string name, doc;
  std::string option = {};                           ///< command-line options that enable it; empty: always runs
  bool (*enabled)(const CompileRequest&) = nullptr;  ///< null: always
  bool (*available)(const Machine&) = nullptr;       ///< null: on every machine
  ir::Graph (*pass)(ir::Graph, const CompileRequest&, const Machine&) = nullptr;
  bool needs_sizes = false;                            ///< CompileRequest::plan_sizes must bind every dim
  bool needs_request = false;                          ///< `lathe opt` cannot run the pass by its name alone
  bool runs_on_bodies = true;                          ///< of loops too: Pass::runs_on_bodies
  std::string (*step)(Compilation&) = nullptr;         ///< returns its result as text: "12 regions"
  std::string (*print)(const Compilation&) = nullptr;  ///< prints the form that a step produced
  std::string label = {};  ///< unique among stages_of(): a second stage "canonicalize" is "canonicalize.2"
};

/// All stages in order, except code stages: the single list from the first rewrite to the memory plan.
const std::vector<Stage>& stages();
/// Returns the stages that a machine has, with labels, followed by its code stages.
std::vector<Stage> stages_of(const Machine& machine);
/// Returns the position of the stage with this label; the number of stages if there is none.
std::size_t find_stage(const std::vector<Stage>& stages, std::string_view label);
/// Returns the labels of stages, in order.
std::vector<std::string> labels_of(const std::vector<Stage>& stages);
/// Returns whether a request enables a stage.
bool is_enabled(const Stage& stage, const CompileRequest& request);

/// Returns the enabled passes of a compilation through `last`, in order.
ir::Pipeline passes_of(const CompileRequest& request, const Machine& machine, Stage::Part last);

namespace ir {

/// Returns the passes that every graph runs through, for any target. The result consists of primitives in canonical
/// form.
Pipeline default_pipeline(const RowChunks& chunks = {});
/// Returns each pass of default_pipeline() once.
Pipeline all_passes(const RowChunks& chunks = {});
/// Parses pass names such as "canonicalize,cse". Accepts every pass of the table that needs no more than its name,
/// with the hardware facts of a generic CPU. Throws UserError [pass_name] for any other name.
Pipeline parse_pipeline(std::string_view names, const RowChunks& chunks = {});

}  // namespace ir

}  // namespace lathe
