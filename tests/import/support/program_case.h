#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ir/support/tensors/tensors.h"
#include "models/import/import.h"

/// Folders of programs that tests/import/data/pt2/make_programs.py writes: model.pt2, and run_0.safetensors, .. with
/// inputs, outputs, and gradients of the sum of the squares of all outputs.
namespace lathe::test {

struct ProgramRun {
  Tensors inputs, outputs, gradients;
};

/// Returns the folder of a program.
std::filesystem::path program_folder(const std::string& name);

/// Returns all runs of a program, by the names of inputs, outputs and parameters.
std::vector<ProgramRun> program_runs(const std::string& name);

/// Compiles a graph and runs it several times, so that later runs see the states of earlier ones.
std::vector<Tensors> results_in_order(const importing::ImportedGraph& imported, const std::vector<ProgramRun>& runs);

/// Runs a training step with AdamW several times on one batch. Returns the loss before each step.
std::vector<double> losses_of(const importing::ImportedGraph& imported, const Tensor& loss, const Tensors& inputs,
                              int steps);

}  // namespace lathe::test
