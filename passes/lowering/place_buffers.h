#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/tensor/node_map.h"
#include "passes/fusion/fusion.h"
#include "passes/program/program.h"

namespace lathe {

/// Gives the values of a fused graph their buffers in a program: arguments and outputs have buffers of their own, new
/// values of states overwrite the old ones where possible, and other stored values share buffers that they may
/// overwrite.
class BufferPlacement {
 public:
  /// The arguments must outlive this object. Adds the program's buffers, inputs, states and outputs. Values of at
  /// least `overwritten_bytes` bytes, and those of an unknown size, may share buffers.
  BufferPlacement(const ir::Graph& graph, FusionPlan& plan, Program& program, std::int64_t overwritten_bytes)
      : graph_(graph), plan_(plan), program_(program), overwritten_bytes_(overwritten_bytes), buffer_of_(graph, -1) {}

  /// Places all values. May move values in `plan` into the storage of a state that they are a part of.
  void place_all();
  /// Returns the buffer that holds a value.
  int buffer(ir::ValueId id) const;
  /// Returns, for each state that is not updated in place, the state and the value that must be copied to it.
  const std::vector<std::pair<ir::ValueId, ir::ValueId>>& copies() const { return copies_; }

  /// Add a buffer. Return its number.
  int add(ProgramBuffer buffer);
  int add_workspace(ProgramBuffer::Kind kind, DType dtype, const Dim& elements, std::string name);

 private:
  int add_temporary(DType dtype, const Dim& elements, std::string name, const Location& loc);
  void place_arguments();
  void place_outputs();
  void place_updates();
  void place_temporaries();
  Program::Slot& slot_of(int state);
  bool is_temporary(ir::ValueId id) const;
  bool may_share(ir::ValueId id) const;

  const ir::Graph& graph_;
  FusionPlan& plan_;
  Program& program_;
  std::int64_t overwritten_bytes_;
  ir::NodeMap<int> buffer_of_;
  std::vector<std::pair<ir::ValueId, ir::ValueId>> copies_;
  std::set<ir::ValueId> copied_;  // the values in copies_
};

}  // namespace lathe
