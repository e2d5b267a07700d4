#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "passes/memory/memory_plan.h"
#include "runtime/launch_time.h"
#include "runtime/parameters/stored_tensor.h"

namespace lathe {

/// Where the arguments and results of one run lie, each in the order of the program's slots; all dense and row-major.
struct RunArguments {
  const DimBindings& dims;
  std::span<const std::byte* const> inputs;
  std::span<StoredTensor* const> states;
  std::span<std::byte* const> outputs;
  std::vector<LaunchTime>* times = nullptr;  ///< takes the time of each launch where it is asked for
};

/// Runs the launches of a program on one kind of machine. An executable has one; it binds the dims and checks the
/// arguments before it asks for a run, and runs take turns.
class ProgramRunner {
 public:
  virtual ~ProgramRunner() = default;

  /// One run. Throws UserError [index_range], [out_of_memory], and a device's own.
  virtual void run(const RunArguments& arguments) = 0;
  /// Whether a run would leave these states as they are, and where they are.
  virtual bool only_reads(std::span<StoredTensor* const> states) const = 0;

  virtual MemoryPlan memory_plan(const DimBindings& dims) const = 0;
  /// Plans the memory of runs with these dims before the first of them: the bytes of the arena. UserError
  /// [dim_overflow].
  virtual std::int64_t plan(const DimBindings& dims) = 0;
};

/// By buffer, whether some launch or exchange of the program writes it.
std::vector<bool> written_buffers(const Program& program);

/// Throws UserError [index_range] for a status word that is not 0: which check of the launch failed. Where it can,
/// the executable says instead which index was wrong: passes/transforms/index_lookups.h.
void check_status(const Launch& launch, std::int64_t code);

/// The constants of a program, by buffer.
std::map<int, HostTensor> constant_tensors(const Program& program);

}  // namespace lathe
