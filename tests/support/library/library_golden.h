#pragma once

#include "ir/tensor/binding.h"
#include "tests/support/library/library_runner.h"
#include "tests/support/programs/compiled_runner.h"
#include "tests/support/tensors/compare_tensors.h"

/// Runs golden cases as C libraries, and compares each run with code compiled in this process.
namespace lathe::golden {

class LibraryGolden : public CompiledProgram {
 public:
  LibraryGolden(const ir::Graph& graph, const CompileOptions& options)
      : CompiledProgram(graph, options), graph_(graph), target_(options.target.name) {}

  /// Throws InternalError if any bit differs between the two runs.
  Tensors run(const Tensors& arguments) override {
    Tensors results = CompiledProgram::run(arguments);
    std::map<std::string, ir::ArgumentShape> shapes;
    for (const auto& [name, tensor] : arguments)
      shapes.emplace(name, ir::ArgumentShape{tensor.dtype(), tensor.shape()});
    const DimBindings dims = ir::bind_dims(graph_, shapes);
    // Golden cases run with one binding of their dims.
    if (!library_)
      library_.emplace(std::vector<LibraryGraph>{{"", graph_}},
                       LibraryOptions{.prefix = "golden", .targets = {target_}, .most = known_in_graph(dims)});
    library_->set_states(arguments);
    Tensors found = library_->run("golden", arguments, dims, 2);
    for (const auto& [name, value] : library_->states()) found.emplace(name, value);
    for (const auto& [name, value] : results)
      if (!test::same_bits(found.at(name), value)) throw InternalError(name + " differs in a C library");
    return results;
  }

 private:
  DimBindings known_in_graph(const DimBindings& dims) const {
    DimBindings known;
    for (const std::string& name : ir::unbound_dims(graph_, {}))
      known[name] = std::max<std::int64_t>(1, dims.at(name));
    return known;
  }

  ir::Graph graph_;
  std::string target_;
  std::optional<test::LibraryRunner> library_;
};

class LibraryGoldenRunner : public CompiledRunner {
 public:
  using CompiledRunner::CompiledRunner;
  std::unique_ptr<Program> prepare(const ir::Graph& graph) override {
    return std::make_unique<LibraryGolden>(graph, options());
  }
};

}  // namespace lathe::golden
