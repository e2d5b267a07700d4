#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/kernel/machine/record.h"

/// How CUDA C++ writes machine operations: a file of hooks for each family of them, and one table.
namespace lathe::cuda {

/// The kernel that is written, where an instruction stands.
class KernelText {
 public:
  virtual ~KernelText() = default;
  virtual const kernel::Kernel& kernel() const = 0;
  /// Argument number `i`, in as many bits as the instruction computes in.
  virtual std::string arg(std::size_t i) const = 0;
  /// A value as it is written before, or an index of shared memory, which fits 32 bits.
  virtual std::string value(kernel::ValueId id) const = 0;
  virtual std::string int32(kernel::ValueId id) const = 0;
  virtual const std::string& buffer(kernel::BufferId id) const = 0;
  virtual const std::string& var(kernel::VarId id) const = 0;
  virtual const std::string& map(int number) const = 0;
  /// Whether it is written for the producers of a pipeline, or inside the consumers of a stage.
  virtual bool for_producers() const = 0;
  virtual bool in_consumers() const = 0;
};

struct MachineHook {
  const kernel::MachineRecord* record;
  /// A statement without its semicolon, or the expression of a value.
  std::string (*text)(const kernel::Instruction& in, const KernelText& kernel);
  bool is_stage = false;  ///< a serial loop around it is a whole stage: unrolled it only takes more registers
};

struct MachineFamily {
  std::string_view (*prelude)();            ///< its part of lathe.cuh; null if it needs none
  std::span<const std::string_view> words;  ///< names that its part of lathe.cuh defines
  std::span<const MachineHook> hooks;
};

/// All families, in the order of their parts of lathe.cuh.
std::span<const MachineFamily> machine_families();
/// The hook of a machine operation. InternalError [machine_hook] where there is none.
const MachineHook& hook_of(const kernel::Kernel& kernel, const kernel::Instruction& in);

}  // namespace lathe::cuda
