#pragma once

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/record.h"

/// An order between the blocks of a launch, for sums that several blocks add to memory: the order of additions, and
/// thus the bits of the sums, follow from the sizes alone.
///
/// The turns of a kernel are counted in a parameter of i32, which an earlier launch sets to 0. Element 0 counts the
/// blocks that have started: each block takes its index in the block loop from it, so a block starts after all blocks
/// of lower index. Every other element counts the blocks that have passed one turn.
namespace lathe::kernel {

/// Waits until `rank` blocks have passed turn `turn`, so that it is this block's. Everything that they wrote before
/// they passed is visible afterwards. Executed by one warpgroup of a block. A block may only wait for blocks of lower
/// index: the running block of the lowest index then never waits, so the blocks never wait in a circle. The
/// interpreter runs blocks in the order of their indices, and rejects any other wait.
struct WaitBlockTurn {
  BufferId turns = none;
  ValueId turn = none, rank = none;

  static WaitBlockTurn of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static WaitBlockTurn parse(IntrinsicReader& in);
  std::vector<BlockAccess> blocks() const { return {{{turns, Access::read}, turn}}; }
  void interpret(const IntrinsicRun& run, ValueId id, std::span<Thread* const> threads) const;
};
extern const IntrinsicRecord wait_block_turn_record;

/// Passes the turn to the next block, with everything that the warpgroup wrote before.
struct PassBlockTurn {
  BufferId turns = none;
  ValueId turn = none;

  static PassBlockTurn of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static PassBlockTurn parse(IntrinsicReader& in);
  std::vector<BlockAccess> blocks() const { return {{{turns, Access::read_write}, turn}}; }
  void interpret(const IntrinsicRun& run, ValueId id, std::span<Thread* const> threads) const;
};
extern const IntrinsicRecord pass_block_turn_record;

/// buffer[first + i] += terms[i] for 4 elements at a multiple of 16 bytes, in a turn of the block. The GPU's memory
/// adds, so no thread waits for the sums; f32 results below the least normal number may become 0.
struct AddInTurn {
  BufferId sums = none;
  ValueId first = none, terms = none;
  static constexpr int lanes = 4;

  static AddInTurn of(const Instruction& in);
  Instruction instruction() const;
  void verify(const IntrinsicRules& rules) const;
  std::string text(const IntrinsicText& text) const;
  static AddInTurn parse(IntrinsicReader& in);
  std::vector<BlockAccess> blocks() const {
    return {{.of = {sums, Access::read_write}, .first = first, .columns = lanes}};
  }
  void interpret(const IntrinsicRun& run, ValueId id, Thread& t) const;
};
extern const IntrinsicRecord add_in_turn_record;

/// Adds 4 terms to the sums from `first` on, in a turn.
void add_in_turn(Builder& builder, Buffer sums, Value first, Value terms);
/// Emits `body` between the wait for a turn and its end. Executed by one warpgroup, outside branches.
void in_block_turn(Builder& builder, Buffer turns, Value turn, Value rank, const std::function<void()>& body);

}  // namespace lathe::kernel
