#pragma once

#include <map>
#include <optional>
#include <utility>

#include "passes/shard/ring/find_rings.h"
#include "passes/transforms/rebuild.h"

namespace lathe::shard {

/// The computations of a process for the keys of one process after another, in a new graph. In step s of a ring it
/// has the keys of the process s positions before it along the axis, starting with its own:
///
///   all_gather %k               ->  %k, send_recv %k, send_recv of that, ...
///   iota over all keys          ->  iota over those of a process, and number_of_process * keys of a process
///   any other value with keys   ->  the same op on blocks; of an argument, the block at that place
class RingBlocks {
 public:
  /// `to` maps values without keys. Values that go around `again` are not those that went around before.
  RingBlocks(const Ring& ring, const ir::Rebuilder& to, bool again);

  /// Returns value `id`, which has keys, in step s.
  ir::Value at(ir::ValueId id, int step);
  /// Returns a node that sums over keys, over the block of step s alone.
  ir::Value sum_of(ir::ValueId id, int step);
  /// Sets the value of `id` in a step, instead of computing its op.
  void set(ir::ValueId id, int step, const ir::Value& value) { values_.insert_or_assign({id, step}, value); }

  /// Takes one number per row, in the shape of `from` with one key. Returns it with the dims of the operand of the
  /// matmul that is linear in `from`, in a form that can be multiplied with the matmul's result.
  ir::Value beside_product(const ir::Value& rows, ir::ValueId from, const RingResult& result) const;
  /// Returns the shape of a value with this many keys.
  Shape shape_with(ir::ValueId id, const Dim& keys) const;

 private:
  ir::GraphBuilder& builder() const { return to_.builder(); }
  const ir::Graph& graph() const { return to_.from(); }
  ir::Value compute(ir::ValueId id, int step);
  ir::Value same_op(ir::ValueId id, int step);
  ir::Value around(ir::ValueId gather, int step);
  ir::Value iota(ir::ValueId id, int step);
  ir::Value take_block(ir::ValueId id, int step) const;
  ir::Value process(int step) const;
  ir::Value operand(ir::ValueId id, int step) { return ring_.keys->has(id) ? at(id, step) : to_[id]; }
  std::optional<ir::Value> rows_at(ir::ValueId id, ir::ValueId from, const ir::Value& rows) const;

  const Ring& ring_;
  const ir::Rebuilder& to_;
  bool again_;
  Dim own_keys_;
  std::map<std::pair<ir::ValueId, int>, ir::Value> values_;
};

}  // namespace lathe::shard
