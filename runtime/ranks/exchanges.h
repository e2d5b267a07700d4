#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "codegen/llvm/jit.h"
#include "passes/lowering/program.h"
#include "runtime/dim_table.h"
#include "runtime/ranks/ranks.h"

namespace lathe {

/// Carries out the exchanges of a program between ranks while its launches run. `program`, `kernels` and `table` must
/// outlive it.
class ProgramExchanges {
 public:
  /// Without `ranks` it does nothing: for measuring launches alone.
  ProgramExchanges(const Program& program, const codegen::CompiledKernels& kernels, DimTable& table, Ranks* ranks);
  ~ProgramExchanges();
  ProgramExchanges(const ProgramExchanges&) = delete;
  ProgramExchanges& operator=(const ProgramExchanges&) = delete;

  /// A run begins: the sizes of the table, and where buffers lie.
  void begin(std::span<const std::int64_t> sizes, std::span<void* const> buffers);
  /// Before launch `launch`, or behind the last one: starts what may begin, and waits for what must be over. Throws
  /// UserError [rank_stalled], [rank_failed].
  void before_launch(int launch);
  /// The run has failed: what is under way ends, and touches no memory any more.
  void stop() noexcept;

 private:
  /// What an exchange asks of the dims: positions in the table of sizes.
  struct PartSizes {
    std::size_t elements;
    std::vector<std::size_t> fold_dims;
  };
  class Carrier;

  const Program& program_;
  const codegen::CompiledKernels& kernels_;
  Ranks* ranks_;
  std::vector<std::vector<PartSizes>> part_sizes_;  ///< by exchange
  std::vector<int> by_end_;                         ///< exchanges, those that must be over first before others
  std::span<const std::int64_t> sizes_;
  std::span<void* const> buffers_;
  std::size_t started_ = 0, ended_ = 0;
  std::vector<std::uint64_t> jobs_;  ///< by exchange, of those that were started
};

}  // namespace lathe
