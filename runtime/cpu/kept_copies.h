#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "passes/program/program.h"
#include "runtime/host/arena.h"
#include "runtime/parameters/stored_tensor.h"

namespace lathe {

/// The kept buffers of a program, packed copies of parameters, and the values that they were packed from. Not
/// thread-safe: an executable serializes its runs.
class KeptCopies {
 public:
  /// `program` must outlive it.
  explicit KeptCopies(const Program& program);

  /// Returns the number of launches that pack: the first ones of the program.
  int launches() const { return static_cast<int>(copies_.size()); }
  /// Allocates the memory that a launch writes, together with that of other launches with its condition, unless it
  /// exists. Throws UserError [arena_memory].
  void allocate(int launch);
  /// Returns the buffer that a launch writes.
  int buffer(int launch) const { return copies_[launch].buffer; }
  /// Returns its memory; empty before allocate().
  std::span<std::byte> memory(int launch) const;

  /// Returns whether the copy was packed from the current values of `states`, in the order of the program's slots.
  /// Always false if a value is in memory that may change without notice.
  bool is_current(int launch, std::span<StoredTensor* const> states) const;
  /// Records that the launch packs these values now.
  void note(int launch, std::span<StoredTensor* const> states);

 private:
  struct Source {
    std::size_t state;            ///< slot
    WriteCount writes = nullptr;  ///< of the memory that was packed
    std::uint64_t count = 0;      ///< its value at that time
  };
  struct Copy {
    int buffer = -1;
    std::size_t block = 0;  ///< in blocks_
    std::int64_t offset = 0, bytes = 0;
    std::vector<Source> sources = {};
    std::uint64_t shared_count = 0;  ///< of writes_of_shared_memory() when it was packed
    bool is_packed = false;
  };
  /// The memory of all launches with one condition.
  struct Block {
    std::optional<SizeCondition> condition;
    std::int64_t bytes = 0;
    Arena memory = {};
  };
  std::size_t block_of(const std::optional<SizeCondition>& condition);

  std::vector<Copy> copies_;  ///< by launch
  std::vector<Block> blocks_;
};

}  // namespace lathe
