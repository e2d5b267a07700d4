#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "passes/program/program.h"
#include "passes/transforms/sizes/index_lookups.h"
#include "runtime/executable.h"
#include "runtime/nonfinite_watch.h"
#include "runtime/run/argument_binder.h"
#include "runtime/run/program_runner.h"

namespace lathe {

/// The parts of an executable: compile() makes them.
struct Executable::Impl {
  Impl() = default;
  ~Impl() { leave_store(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ir::Graph signature;  ///< arguments and checks of the graph as given
  Program program;
  CompileSummary summary;
  std::shared_ptr<Ranks> ranks;
  std::unique_ptr<ProgramRunner> runner;
  Parameters parameters;
  bool shares_states = false;
  std::mutex running;
  std::unique_ptr<ArgumentBinder> binder;
  ir::IndexLookups lookups;
  std::unique_ptr<NonfiniteWatch> watch;               ///< with CompileOptions::find_nan
  std::map<std::string, shard::Placement> placements;  ///< of arguments

  template <class Inputs, class Outputs>
  void run(const Inputs& inputs, Outputs& outputs, const DimBindings& dims, std::vector<LaunchTime>* times);
  template <class Inputs, class Outputs>
  void run_on_store(const Inputs& inputs, Outputs& outputs, const DimBindings& dims, std::vector<LaunchTime>* times);
  template <class Inputs, class Outputs>
  void run_bound(const Inputs& inputs, Outputs& outputs, const DimBindings& dims, std::vector<LaunchTime>* times);
  template <class Run>
  void ending_all(const Run& run) const;
  void leave_store();
  [[noreturn]] void explain_index_error(const UserError& error);
};

}  // namespace lathe
