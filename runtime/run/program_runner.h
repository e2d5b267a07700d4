#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "passes/memory/memory_plan.h"
#include "runtime/parameters/stored_tensor.h"
#include "runtime/run/launch_time.h"

namespace lathe {

/// Arguments and results of one run, each in the order of the program's slots; all dense and row-major.
struct RunArguments {
  const DimBindings& dims;
  std::span<const std::byte* const> inputs;
  std::span<StoredTensor* const> states;
  std::span<std::byte* const> outputs;
  std::vector<LaunchTime>* times = nullptr;  ///< receives the time of each launch; may be null
};

/// Runs the launches of a program on one device. Each executable has one. The executable binds the dims, checks the
/// arguments, and serializes runs.
class ProgramRunner {
 public:
  virtual ~ProgramRunner() = default;

  /// Runs the program once. Throws UserError [index_range], [out_of_memory], and those of the device.
  virtual void run(const RunArguments& arguments) = 0;
  /// Returns whether a run changes neither the values nor the locations of `states`.
  virtual bool only_reads(std::span<StoredTensor* const> states) const = 0;

  virtual MemoryPlan memory_plan(const DimBindings& dims) const = 0;
  /// Plans the memory for these dims ahead of the first run and returns the bytes of the arena. Throws UserError
  /// [dim_overflow].
  virtual std::int64_t plan(const DimBindings& dims) = 0;
};

/// Returns the op of a launch that its checks belong to, for messages.
std::string checked_op(const Launch& launch);

/// Returns, by buffer, whether a launch or collective of the program writes it.
std::vector<bool> written_buffers(const Program& program);

/// Throws UserError [index_range] for a nonzero status word, with the launch's check that failed. The executable
/// replaces it by an error that names the wrong index if it can: passes/transforms/sizes/index_lookups.h.
void check_status(const Launch& launch, std::int64_t code);

/// Returns the constants of a program, by buffer.
std::map<int, HostTensor> constant_tensors(const Program& program);

}  // namespace lathe
