#pragma once

#include <optional>
#include <set>

#include "ir/ops/primitives/primitives.h"
#include "runtime/executable.h"
#include "tests/support/compare_tensors.h"
#include "tests/support/golden.h"
#include "tests/support/guarded_program.h"
#include "tests/support/kernel_store.h"

/// Runs golden cases by compiled code.
namespace lathe::golden {

class CompiledProgram : public Program {
 public:
  CompiledProgram(const ir::Graph& graph, const CompileOptions& options)
      : executable_(compile(graph, options)) {
    if (options.target.kind == Target::Kind::cpu) guarded_.emplace(graph, executable_, options);
    for (const ir::ValueId id : graph.arguments())
      if (graph[id].op == &ir::ops::input) inputs_.insert(graph[id].name);
    for (const ir::Update& update : graph.updates) updated_.insert(graph[update.state].name);
  }

  Tensors run(const Tensors& arguments) override {
    Tensors inputs;
    for (const auto& [name, value] : arguments) {
      if (inputs_.contains(name))
        inputs.emplace(name, value);
      else
        executable_.parameters().set(name, value);
    }
    Tensors results = executable_.run(inputs);
    for (const std::string& name : updated_) results.insert_or_assign(name, executable_.parameters().get(name));
    if (guarded_) check_same_bits(guarded_->run(arguments), results);
    return results;
  }

 private:
  static void check_same_bits(const Tensors& guarded, const Tensors& results) {
    for (const auto& [name, value] : results)
      if (!test::same_bits(guarded.at(name), value))
        throw InternalError(name + " differs between inaccessible pages");
  }

  Executable executable_;
  std::optional<test::GuardedProgram> guarded_;  ///< on a CPU
  std::set<std::string> inputs_, updated_;
};

class CompiledRunner : public GoldenRunner {
 public:
  explicit CompiledRunner(CompileOptions options = {}) : options_(std::move(options)) {
    if (!options_.cache) options_.cache = test::shared_kernels();
  }
  std::unique_ptr<Program> prepare(const ir::Graph& graph) override {
    return std::make_unique<CompiledProgram>(graph, options_);
  }

 private:
  CompileOptions options_;
};

}  // namespace lathe::golden
