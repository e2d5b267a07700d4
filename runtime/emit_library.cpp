#include "runtime/emit_library.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "ir/support/error.h"
#include "ir/support/numbers/float_environment.h"
#include "ir/tensor/binding.h"
#include "passes/compile/compilation.h"
#include "passes/program/require_one_process.h"
#include "passes/program/signature.h"
#include "runtime/backend/backend.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/files/sha256.h"
#include "runtime/library/c_names.h"
#include "runtime/library/describe_library.h"
#include "runtime/library/library_plan.h"
#include "runtime/library/split_packing.h"
#include "runtime/target.h"

namespace lathe {

namespace {

void check_names(std::span<const LibraryGraph> graphs, const LibraryOptions& options) {
  const char* const hint = "give letters, digits and single underscores, starting with a letter: gpt2_step";
  const auto check = [&](const std::string& name, std::string_view what) {
    if (!is_c_identifier(name) || CNames().identifier(name) != name)
      throw UserError(fmt::format("the {} '{}' is no identifier of C", what, name), "library_prefix", hint);
  };
  check(options.prefix, "prefix");
  if (options.prefix == "lathe" || options.prefix.starts_with("lathe_"))
    throw UserError(
        fmt::format("the prefix '{}' belongs to the helper headers, such as lathe_pool.h", options.prefix),
        "library_prefix", hint);
  std::set<std::string> names;
  for (const LibraryGraph& graph : graphs) {
    if (graphs.size() > 1 || !graph.name.empty()) check(graph.name, "name of a graph");
    if (!names.insert(graph.name).second)
      throw UserError(fmt::format("two graphs of the library are called '{}'", graph.name), "library_prefix",
                      "give each graph a name of its own");
  }
  if (graphs.empty()) throw UserError("a library without graphs", "library_prefix", "give one graph or more");
}

std::vector<Target> targets_of(const LibraryOptions& options) {
  std::vector<Target> targets;
  std::set<std::string> names;
  for (const std::string& name : options.targets) {
    if (!names.insert(name).second)
      throw UserError(fmt::format("the target {} is given twice", name), "library_target", "give each target once");
    targets.push_back(Target::named(name));
    if (targets.back().backend->kind() != targets[0].backend->kind())
      throw UserError(fmt::format("{} and {} are targets of different kinds", options.targets[0], name),
                      "library_target", "emit one library for each kind");
  }
  if (targets.empty())
    throw UserError("a library without targets", "library_target", "give one or more, such as x86-64-v3");
  return targets;
}

/// Builds a plan: compiles the graphs and merges what they share.
class Planner {
 public:
  Planner(std::span<const LibraryGraph> graphs, const LibraryOptions& options, std::span<const Target> targets)
      : options_(options), lower_(options.lower) {
    lower_.packed_bytes = options.packed_bytes;
    plan_.prefix = options.prefix;
    plan_.targets = options.targets;
    plan_.embedded = options.embedded;
    plan_.cuda_folders = options.cuda_folders;
    plan_.cache = options.cache;
    plan_.threads =
        options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    if (options.packed_bytes < 0)
      throw UserError(fmt::format("{} bytes of packed weights", options.packed_bytes), "library_values",
                      "give 0 or more");
    for (const LibraryGraph& graph : graphs) add(graph, targets);
    check_embedded();
    set_dims();
    set_initials();
    plan_.file_header = file_header();
    plan_.description = describe_library(plan_);
    plan_.init = fmt::format("{}_init_{}", plan_.prefix, sha256_hex(plan_.description).substr(0, 8));
  }

  LibraryPlan take() { return std::move(plan_); }

 private:
  void add(const LibraryGraph& given, std::span<const Target> targets) {
    require_one_process(given.graph);
    const ir::Graph graph =
        requested_graph(given.graph, {.sizes = options_.sizes, .evaluation = options_.evaluation, .lower = lower_});
    for (std::string& name : ir::unbound_dims(given.graph, {}))
      (options_.sizes.contains(name) ? used_sizes_ : graph_dims_).insert(std::move(name));
    LibraryFunction function{.name = given.name};
    for (const Target& target : targets) {
      Program program = compile_graph(graph, machine_of(target), {.lower = lower_}).program;
      set_user_types(program, graph);
      function.programs.push_back(std::move(program));
    }
    for (const Program::Slot& slot : function.programs[0].inputs)
      if (slot.name == packed_weights && options_.packed_bytes > 0)
        throw UserError(fmt::format("@{} has an input {}, which is the name of the memory for packed weights",
                                    given.graph.name, slot.name),
                        "library_values", "rename the input");
    std::vector<Program> packing = split_packing(function.programs);
    add(std::move(function), given);
    if (!packing.empty())
      add({.name = given.name.empty() ? "pack" : given.name + "_pack", .programs = std::move(packing)}, given);
  }

  void add(LibraryFunction function, const LibraryGraph& given) {
    const Program& program = function.programs[0];
    set_slots(function);
    for (const Program::Slot& slot : program.states) function.states.push_back(add_state(slot, given));
    function.checks = program.checks;
    plan_.functions.push_back(std::move(function));
  }

  /// Returns the number of a state of the library, or -1 if its value is part of the library.
  int add_state(const Program::Slot& slot, const LibraryGraph& graph) {
    if (const auto value = options_.embedded.find(slot.name); value != options_.embedded.end()) {
      check_embedded(slot, value->second);
      embedded_.insert(slot.name);
      return -1;
    }
    const auto [entry, is_new] = state_of_.try_emplace(slot.name, static_cast<int>(plan_.states.size()));
    if (is_new) {
      plan_.states.push_back(library_slot(slot, state_names_));
      return entry->second;
    }
    LibrarySlot& known = plan_.states[entry->second];
    if (known.dtype != slot.dtype || known.shape != slot.shape)
      throw UserError(fmt::format("the state {} is {}{} in one graph and {}{} in {}", slot.name, name(known.dtype),
                                  known.shape.to_string(), name(slot.dtype), slot.shape.to_string(), graph.name),
                      "library_states", "give states of different types different names");
    known.is_written = known.is_written || slot.is_updated;
    return entry->second;
  }

  static void check_embedded(const Program::Slot& slot, const HostTensor& value) {
    const char* const hint = "embed parameters that no graph updates, with the dtype and shape of the graph";
    if (!slot.is_parameter || slot.is_updated)
      throw UserError(fmt::format("the value of {} cannot be part of the library: {}", slot.name,
                                  slot.is_parameter ? "a graph updates it" : "it is a state"),
                      "library_values", hint);
    if (!slot.shape.numel().value() || value.dtype() != slot.dtype || value.shape() != slot.shape.evaluate({}))
      throw UserError(fmt::format("the value of {} is {}, but the graph has {}{}", slot.name, value.to_string(),
                                  name(slot.dtype), slot.shape.to_string()),
                      "library_values", hint);
  }

  void check_embedded() const {
    for (const auto& [name, value] : options_.embedded)
      if (!embedded_.contains(name))
        throw UserError(fmt::format("no graph of the library has a parameter {} to embed", name), "library_values",
                        "give values of the graphs' parameters only");
  }

  void set_dims() {
    std::set<std::string> unknown;  // of all graphs
    for (const LibraryFunction& function : plan_.functions)
      for (const Program& program : function.programs) unknown.merge(unknown_dims(program));
    CNames names;
    for (const std::string& name : unknown) {
      const auto most = options_.most.find(name);
      if (most == options_.most.end())
        throw UserError(fmt::format("the dim {} has no largest size", name), "library_dims",
                        fmt::format("give one, as with --max {}=64, or a size, as with --dim {}=64", name, name));
      if (most->second < 1)
        throw UserError(fmt::format("the largest size of {} is {}", name, most->second), "library_dims",
                        "give 1 or more");
      plan_.dims.push_back({name, names.identifier(name), most->second});
    }
    for (const auto& [name, size] : options_.most)
      if (!unknown.contains(name) && !graph_dims_.contains(name))
        throw UserError(fmt::format("no graph of the library has an unknown dim {} (of at most {})", name, size),
                        "library_dims", "give the largest sizes of unknown dims only");
    for (const auto& [name, size] : options_.sizes)
      if (!used_sizes_.contains(name))
        throw UserError(fmt::format("no graph of the library has an unknown dim {} (of {})", name, size),
                        "library_dims", "give the sizes of unknown dims only");
  }

  void set_initials() {
    std::map<std::string, const Init*> given;
    for (const Initializer& each : options_.initializers) {
      if (!state_of_.contains(each.name) && !embedded_.contains(each.name))
        throw UserError(fmt::format("no graph of the library has a parameter or state {} to initialise", each.name),
                        "library_values", "give initial values of the graphs' parameters and states only");
      given[each.name] = &each.init;
    }
    for (const LibrarySlot& state : plan_.states) {
      const auto entry = given.find(state.name);
      Init init = entry != given.end() ? *entry->second : state.is_parameter ? Init::automatic() : Init::zeros();
      check_init(init, state.name);
      if (state.shape.numel().value()) init = resolved_init(init, state.shape.evaluate({}));
      const bool needs_no_size = init.kind == Init::Kind::constant || init.kind == Init::Kind::normal ||
                                 init.kind == Init::Kind::uniform || init.kind == Init::Kind::automatic;
      if (!state.shape.numel().value() && !needs_no_size)
        throw UserError(fmt::format("the initial value of {} depends on its shape {}, which depends on a call",
                                    state.name, state.shape.to_string()),
                        "library_values",
                        "give the sizes of its dims, or a constant, normal or uniform distribution");
      plan_.initials.push_back(init);
    }
  }

  std::string file_header() const {
    std::vector<TensorView> views;
    for (const int i : plan_.block_order())
      if (const LibrarySlot& state = plan_.states[i]; state.shape.numel().value())
        views.push_back({.name = state.name, .dtype = state.dtype, .shape = state.shape.evaluate({})});
    return safetensors_header(views);
  }

  const LibraryOptions& options_;
  LowerOptions lower_;
  LibraryPlan plan_;
  CNames state_names_;
  std::map<std::string, int> state_of_;
  std::set<std::string> embedded_, used_sizes_, graph_dims_;
};

/// Returns the bytes of the packed weights that calls of all functions read.
std::int64_t packed_bytes_of(const LibraryPlan& plan) {
  std::int64_t bytes = 0;
  for (const LibraryFunction& function : plan.functions)
    for (const LibrarySlot& input : function.inputs)
      if (input.name == packed_weights) bytes += input.shape.numel().value().value_or(0);
  return bytes;
}

}  // namespace

EmittedLibrary emit_library(std::span<const LibraryGraph> graphs, const LibraryOptions& options) {
  check_names(graphs, options);
  const std::vector<Target> targets = targets_of(options);
  const FloatEnvironment environment;
  const LibraryPlan plan = Planner(graphs, options, targets).take();
  EmittedLibrary library = targets[0].backend->emit(plan);
  if (options.packed_bytes > 0) library.packed_bytes = packed_bytes_of(plan);
  library.sources = {plan.prefix + ".sources.txt", list_sources(plan)};
  return library;
}

}  // namespace lathe
