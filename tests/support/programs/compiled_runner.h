#pragma once

#include <set>

#include "ir/ops/primitives/primitives.h"
#include "runtime/compile.h"
#include "tests/support/goldens/golden.h"
#include "tests/support/kernels/kernel_store.h"

/// Runs golden cases as compiled code.
namespace lathe::golden {

class CompiledProgram : public Program {
 public:
  CompiledProgram(const ir::Graph& graph, const CompileOptions& options) : executable_(compile(graph, options)) {
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
    return results;
  }

 protected:
  const Executable& executable() const { return executable_; }

 private:
  Executable executable_;
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

 protected:
  const CompileOptions& options() const { return options_; }

 private:
  CompileOptions options_;
};

}  // namespace lathe::golden
