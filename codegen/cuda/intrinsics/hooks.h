#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/hardware/gpu_info.h"
#include "ir/kernel/intrinsics/region.h"

/// Emits intrinsics and regions as CUDA C++: one file of hooks per family, and one table.
namespace lathe::cuda {

/// The threads that a region's statements are emitted for.
class RegionRole {
 public:
  virtual ~RegionRole() = default;
  /// Returns whether they take part in a statement; others are not emitted.
  virtual bool takes_part(const kernel::Statement& s) const = 0;
  /// Returns whether they have too few registers to unroll serial loops.
  virtual bool keeps_loops() const { return false; }
  /// The statement that synchronizes them.
  virtual std::string barrier() const = 0;
};

/// The kernel that is emitted, at an instruction.
class KernelText {
 public:
  virtual ~KernelText() = default;
  virtual const kernel::Kernel& kernel() const = 0;
  /// Argument number `i`, in the width that the instruction computes in.
  virtual std::string arg(std::size_t i) const = 0;
  /// A value's text, or its text as a 32-bit index of shared memory.
  virtual std::string value(kernel::ValueId id) const = 0;
  virtual std::string int32(kernel::ValueId id) const = 0;
  virtual const std::string& buffer(kernel::BufferId id) const = 0;
  virtual const std::string& var(kernel::VarId id) const = 0;
  virtual const std::string& map(int number) const = 0;
  /// The role of the enclosing region; null outside a region.
  virtual const RegionRole* role() const = 0;
};

struct IntrinsicHook {
  const kernel::IntrinsicRecord* record;
  /// Returns a statement without its semicolon, or the expression of a value.
  std::string (*text)(const kernel::Instruction& in, const KernelText& kernel);
  bool is_stage = false;  ///< an enclosing serial loop is a whole stage: unrolling it only costs registers
  /// The blocks are numbered in the order in which they start: element 0 of its first buffer counts them.
  bool orders_blocks = false;
};

/// The kernel that is emitted, at a region, and the output of the region's hook.
class RegionText {
 public:
  virtual ~RegionText() = default;
  virtual const kernel::Kernel& kernel() const = 0;
  virtual const GpuInfo& gpu() const = 0;
  virtual int block_threads() const = 0;  ///< along x
  virtual const RegionRole* role() const = 0;

  /// Appends a line.
  virtual void write(std::string_view line) = 0;
  /// Emits a body for the threads of a role; the hook emits the braces around it.
  virtual void body(const kernel::Block& statements, const RegionRole& role) = 0;
  /// Names a region's index; returns its declaration: "i32 i0".
  virtual std::string index(kernel::ValueId id) = 0;
  /// Declares the 8-byte words of shared memory that the hook requested.
  virtual void shared_words(std::string_view name, std::int64_t words) = 0;
};

struct RegionHook {
  const kernel::IntrinsicRegionRecord* record;
  void (*write)(const kernel::IntrinsicRegion& region, RegionText& text);
  /// Returns the 8-byte words of shared memory that it needs; null: none.
  std::int64_t (*shared_words)(const kernel::Kernel& kernel, const kernel::IntrinsicRegion& region) = nullptr;
  /// Returns the number of resident blocks per multiprocessor; null: no requirement.
  int (*blocks_at_once)(const kernel::IntrinsicRegion& region) = nullptr;
};

struct HookFamily {
  std::string_view device_text;             ///< its part of lathe.cuh: the functions that its hooks call
  std::span<const std::string_view> words;  ///< names defined in this part
  std::span<const IntrinsicHook> hooks;
  std::span<const RegionHook> regions{};
};

/// Returns all families in the order of their parts of lathe.cuh; each part may call the earlier ones.
std::span<const HookFamily> hook_families();
/// Returns the hook of an intrinsic, or region. Throws InternalError [machine_hook] if it has none.
const IntrinsicHook& hook_of(const kernel::Kernel& kernel, const kernel::Instruction& in);
const RegionHook& hook_of(const kernel::Kernel& kernel, const kernel::IntrinsicRegion& region);

}  // namespace lathe::cuda
