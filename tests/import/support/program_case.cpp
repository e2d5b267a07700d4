#include "tests/import/support/program_case.h"

#include <fmt/core.h>

#include "frontend/initial_values.h"
#include "frontend/train/step.h"
#include "runtime/compile.h"
#include "runtime/files/paths.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/support/texts/test_data.h"

namespace lathe::test {

std::filesystem::path program_folder(const std::string& name) { return test_data("import/data/pt2/" + name); }

std::vector<ProgramRun> program_runs(const std::string& name) {
  std::vector<ProgramRun> runs;
  for (int i = 0; path_exists(program_folder(name) / fmt::format("run_{}.safetensors", i)); ++i) {
    const SafetensorsFile file = SafetensorsFile::open(program_folder(name) / fmt::format("run_{}.safetensors", i));
    ProgramRun run;
    for (const std::string& key : file.names()) {
      const std::size_t dot = key.find('.');
      const std::string kind = key.substr(0, dot);
      Tensors& part = kind == "input" ? run.inputs : kind == "output" ? run.outputs : run.gradients;
      part.set(key.substr(dot + 1), file.tensor(key));
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<Tensors> results_in_order(const importing::ImportedGraph& imported, const std::vector<ProgramRun>& runs) {
  Executable executable = compile(imported.graph.finish(), {.parameters = imported.parameters});
  std::vector<Tensors> results;
  for (const ProgramRun& run : runs) results.push_back(executable.run(run.inputs));
  return results;
}

std::vector<double> losses_of(const importing::ImportedGraph& imported, const Tensor& loss, const Tensors& inputs,
                              int steps) {
  const ir::Graph step = training_step(imported.graph, loss, AdamW{.lr = 1e-2});
  Parameters values = imported.parameters;
  for (const auto& [name, value] : initial_states(step, 1))
    if (!values.contains(name)) values.set(name, value);
  Executable executable = compile(step, {.parameters = values});
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) losses.push_back(executable.run(inputs).at("loss").item());
  return losses;
}

}  // namespace lathe::test
