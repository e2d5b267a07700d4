#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/pass.h"
#include "passes/compile/request.h"
#include "passes/lowering/machine.h"

namespace lathe {

struct Compilation;  // passes/compile/compile.h

/// One stage of compilation: a row of the table in stages.cpp. A stage is either a pass, from graph to graph, or a
/// step that makes the next form: regions, a program, a memory plan. Stages that print code have neither.
struct Stage {
  enum class Part : std::uint8_t {
    whole_graph,   ///< on request, before everything else: the graph changes what it computes, or for how many
    every_target,  ///< graph passes that need no target
    target,        ///< graph passes that depend on the target
    lowering,      ///< from the graph to a program of kernels
    code,          ///< from kernels to code, by the target's code generator
  };
  Part part;
  std::string name, doc;
  std::string option = {};                           ///< options of the command that enable it; empty: always runs
  bool (*enabled)(const CompileRequest&) = nullptr;  ///< null: always
  bool (*available)(const Machine&) = nullptr;       ///< null: on every machine
  ir::Graph (*pass)(ir::Graph, const CompileRequest&, const Machine&) = nullptr;
  bool needs_request = false;                          ///< a pass that cannot run by its name alone (`lathe opt`)
  std::string (*step)(Compilation&) = nullptr;         ///< returns its result in words: "12 regions"
  std::string (*print)(const Compilation&) = nullptr;  ///< of a step: the form it made
};

/// All stages in order, but for those of code: the one list from the first rewrite to the memory plan.
const std::vector<Stage>& stages();
/// Those that a machine has, followed by its code stages.
std::vector<Stage> stages_of(const Machine& machine);
/// Their names; the second stage of one name is "canonicalize.2".
std::vector<std::string> stage_labels(const std::vector<Stage>& stages);
/// Whether a request enables a stage.
bool is_enabled(const Stage& stage, const CompileRequest& request);

/// The enabled passes of a compilation through `last`, in order.
ir::Pipeline passes_of(const CompileRequest& request, const Machine& machine, Stage::Part last);

namespace ir {

/// The passes that every graph goes through, for whatever target: afterwards it consists of primitives, in canonical
/// form.
Pipeline default_pipeline(const RowChunks& chunks = {});
/// Each pass of default_pipeline() once.
Pipeline all_passes(const RowChunks& chunks = {});
/// Passes by name, such as "canonicalize,cse": every pass of the table that needs no more than its name, with the
/// facts of a CPU without a name. UserError [pass_name] for any other name.
Pipeline parse_pipeline(std::string_view names, const RowChunks& chunks = {});

}  // namespace ir

}  // namespace lathe
