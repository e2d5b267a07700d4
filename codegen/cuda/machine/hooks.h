#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/kernel/machine/region.h"
#include "ir/machine/gpu_info.h"

/// How CUDA C++ writes machine operations and regions: a file of hooks for each family of them, and one table.
namespace lathe::cuda {

/// The threads that statements inside a region are written for.
class RegionRole {
 public:
  virtual ~RegionRole() = default;
  /// Whether they have a part in a statement; what they have none in is not written.
  virtual bool takes_part(const kernel::Statement& s) const = 0;
  /// The statement by which they wait for each other.
  virtual std::string barrier() const = 0;
};

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
  /// Of the region around; null outside.
  virtual const RegionRole* role() const = 0;
};

struct MachineHook {
  const kernel::MachineRecord* record;
  /// A statement without its semicolon, or the expression of a value.
  std::string (*text)(const kernel::Instruction& in, const KernelText& kernel);
  bool is_stage = false;  ///< a serial loop around it is a whole stage: unrolled it only takes more registers
};

/// The kernel that is written, where a region stands, and how its hook writes.
class RegionText {
 public:
  virtual ~RegionText() = default;
  virtual const kernel::Kernel& kernel() const = 0;
  virtual const GpuInfo& gpu() const = 0;
  virtual int block_threads() const = 0;  ///< along x
  virtual const RegionRole* role() const = 0;

  /// A line.
  virtual void write(std::string_view line) = 0;
  /// A body, in braces that the hook writes around it, for the threads of a role.
  virtual void body(const kernel::Block& statements, const RegionRole& role) = 0;
  /// The type and the name of a region's index from here on: "i32 i0".
  virtual std::string index(kernel::ValueId id) = 0;
  /// Declares the words of 8 bytes in shared memory that the hook asks for.
  virtual void shared_words(std::string_view name, std::int64_t words) = 0;
};

struct RegionHook {
  const kernel::MachineRegionRecord* record;
  void (*write)(const kernel::MachineRegion& region, RegionText& text);
  /// Words of 8 bytes in shared memory that it needs; null: none.
  std::int64_t (*shared_words)(const kernel::Kernel& kernel, const kernel::MachineRegion& region) = nullptr;
  /// How many blocks with it are to run on a multiprocessor at a time; null: it does not matter.
  int (*blocks_at_once)(const kernel::MachineRegion& region) = nullptr;
};

struct MachineFamily {
  std::string_view device_text;             ///< its part of lathe.cuh: what the text of its hooks calls
  std::span<const std::string_view> words;  ///< names that this part defines
  std::span<const MachineHook> hooks;
  std::span<const RegionHook> regions{};
};

/// All families, in the order of their parts of lathe.cuh: each may call what stands before it.
std::span<const MachineFamily> machine_families();
/// The hook of a machine operation, or region. InternalError [machine_hook] where there is none.
const MachineHook& hook_of(const kernel::Kernel& kernel, const kernel::Instruction& in);
const RegionHook& hook_of(const kernel::Kernel& kernel, const kernel::MachineRegion& region);

}  // namespace lathe::cuda
