#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/support/error.h"
#include "passes/program/program.h"
#include "runtime/ranks/collective_steps.h"
#include "runtime/ranks/ranks.h"
#include "runtime/run/dim_table.h"

namespace lathe {

/// Schedules the collectives of a program relative to its launches. Derived classes perform them in the memory that
/// the program uses.
class ProgramCollectives {
 public:
  virtual ~ProgramCollectives() = default;
  ProgramCollectives(const ProgramCollectives&) = delete;
  ProgramCollectives& operator=(const ProgramCollectives&) = delete;

  /// Must be called before each launch, and once after the last one with the number of launches. Starts the
  /// collectives that may begin and waits for those that must be complete. Throws UserError [rank_stalled],
  /// [rank_failed].
  void before_launch(int launch);

 protected:
  /// `program`, `ranks` and `table` must outlive it. If `ranks` is null, it does nothing, which is for measuring
  /// launches alone. Throws UserError [mesh_axis], [mesh_processes] if the program was built for another mesh.
  ProgramCollectives(const Program& program, DimTable& table, Ranks* ranks);

  /// Starts a collective. Called in program order on all ranks.
  virtual void start(std::size_t collective) = 0;
  /// Waits for a collective. Later launches may read its results and overwrite its inputs.
  virtual void finish(std::size_t collective) = 0;

  /// Starts a run with the sizes of the table and the addresses of the buffers.
  void restart(std::span<const std::int64_t> sizes, std::span<void* const> buffers);
  std::vector<CollectiveStep> steps(std::size_t collective, int rank, int ranks, bool gathers) const;
  void* at(int buffer) const { return buffers_[buffer]; }
  std::int64_t size(std::size_t position) const { return sizes_[position]; }
  /// Returns the error for a collective that exceeded the ranks' timeout.
  UserError stalled(std::size_t collective, const StalledExchange& stalled) const;
  /// Returns the same error with the op and the line of the collective.
  UserError of_collective(std::size_t collective, const UserError& error) const;

  const Program& program_;
  Ranks* ranks_;

 private:
  std::vector<std::vector<std::size_t>> elements_;  ///< by collective and part: positions in the table
  std::vector<std::size_t> by_end_;                 ///< collectives, ordered by when they must be complete
  std::span<const std::int64_t> sizes_;
  std::span<void* const> buffers_;
  std::size_t started_ = 0, ended_ = 0;
};

}  // namespace lathe
