#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/support/host_tensor.h"
#include "ir/tensor/interpreter.h"
#include "passes/memory/memory_plan.h"
#include "runtime/launch_time.h"

namespace lathe {

/// Runs the launches of a program on one kind of machine. An executable has one; it binds the dims and checks the
/// arguments before it asks for a run, and runs take turns.
class ProgramRunner {
 public:
  virtual ~ProgramRunner() = default;

  /// One run: outputs by name. `states` holds a value of every state, as set_state left it or as the host last saw
  /// it. Gives the time of each launch where it is asked for. Throws UserError [index_range], [out_of_memory], and a
  /// device's own.
  virtual ir::Tensors run(const DimBindings& dims, const ir::Tensors& inputs, ir::Tensors& states,
                          std::vector<LaunchTime>* times) = 0;
  /// The host has set a state: what the machine holds of it is old.
  virtual void state_was_set(const std::string& name) = 0;
  /// Brings the host's copies of the states up to date.
  virtual void fetch_states(ir::Tensors& states) = 0;

  virtual MemoryPlan memory_plan(const DimBindings& dims) const = 0;
};

/// Throws UserError [index_range] for a status word that is not 0: which check of the launch failed. Where it can,
/// the executable says instead which index was wrong: passes/index_lookups.h.
void check_status(const Launch& launch, std::int64_t code);

/// The constants of a program, by buffer.
std::map<int, HostTensor> constant_tensors(const Program& program);

}  // namespace lathe
