#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/support/error.h"
#include "passes/program/program.h"
#include "runtime/dim_table.h"
#include "runtime/ranks/exchange_steps.h"
#include "runtime/ranks/ranks.h"

namespace lathe {

/// When the exchanges of a program begin and must be over while its launches run, and what they are made of. What
/// derives of it carries them out in the memory that the program runs in.
class ProgramExchanges {
 public:
  virtual ~ProgramExchanges() = default;
  ProgramExchanges(const ProgramExchanges&) = delete;
  ProgramExchanges& operator=(const ProgramExchanges&) = delete;

  /// Before launch `launch`, or behind the last one: starts what may begin, and waits for what must be over. Throws
  /// UserError [rank_stalled], [rank_failed].
  void before_launch(int launch);

 protected:
  /// `program`, `ranks` and `table` must outlive it. Without `ranks` it does nothing: for measuring launches alone.
  /// Throws UserError [mesh_axis], [mesh_processes] where the program is of another mesh.
  ProgramExchanges(const Program& program, DimTable& table, Ranks* ranks);

  /// Called in the order of the program, on all ranks.
  virtual void start(std::size_t exchange) = 0;
  /// Launches that come now find its results, and may write over what it read.
  virtual void finish(std::size_t exchange) = 0;

  /// A run begins: the sizes of the table, and where buffers lie.
  void restart(std::span<const std::int64_t> sizes, std::span<void* const> buffers);
  std::vector<ExchangeStep> steps(std::size_t exchange, int rank, int ranks, bool gathers) const;
  void* at(int buffer) const { return buffers_[static_cast<std::size_t>(buffer)]; }
  std::int64_t size(std::size_t position) const { return sizes_[position]; }
  /// How an exchange that has not moved for the ranks' patience is told.
  UserError stalled(std::size_t exchange, const StalledExchange& stalled) const;
  /// The same error with op and line of the exchange that it is of.
  UserError of_exchange(std::size_t exchange, const UserError& error) const;

  const Program& program_;
  Ranks* ranks_;

 private:
  std::vector<std::vector<std::size_t>> elements_;  ///< by exchange and part: positions in the table
  std::vector<std::size_t> by_end_;                 ///< exchanges, those that must be over first before others
  std::span<const std::int64_t> sizes_;
  std::span<void* const> buffers_;
  std::size_t started_ = 0, ended_ = 0;
};

}  // namespace lathe
