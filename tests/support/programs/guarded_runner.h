#pragma once

#include "tests/support/programs/compiled_runner.h"
#include "tests/support/programs/guarded_program.h"
#include "tests/support/tensors/compare_tensors.h"

/// Runs golden cases as code compiled for a CPU, and again with every buffer between inaccessible pages.
namespace lathe::golden {

class GuardedGolden : public CompiledProgram {
 public:
  GuardedGolden(const ir::Graph& graph, const CompileOptions& options)
      : CompiledProgram(graph, options), guarded_(graph, executable(), options) {}

  /// Throws InternalError if any bit differs between the two runs.
  Tensors run(const Tensors& arguments) override {
    Tensors results = CompiledProgram::run(arguments);
    const Tensors guarded = guarded_.run(arguments);
    for (const auto& [name, value] : results)
      if (!test::same_bits(guarded.at(name), value))
        throw InternalError(name + " differs between inaccessible pages");
    return results;
  }

 private:
  test::GuardedProgram guarded_;
};

class GuardedRunner : public CompiledRunner {
 public:
  using CompiledRunner::CompiledRunner;
  std::unique_ptr<Program> prepare(const ir::Graph& graph) override {
    return std::make_unique<GuardedGolden>(graph, options());
  }
};

}  // namespace lathe::golden
