#include "passes/lowering/place_buffers.h"

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/visible.h"
#include "ir/tensor/constants.h"
#include "passes/lowering/in_place.h"
#include "passes/lowering/region_kernels.h"

namespace lathe {

using namespace ir;

void BufferPlacement::place_all() {
  place_arguments();
  place_outputs();
  place_updates();
  place_temporaries();
}

int BufferPlacement::buffer(ValueId id) const {
  const int found = buffer_of_[plan_.placement[id].base];
  LATHE_ASSERT(found >= 0);
  return found;
}

int BufferPlacement::add(ProgramBuffer buffer) {
  program_.buffers.push_back(std::move(buffer));
  return static_cast<int>(program_.buffers.size()) - 1;
}

int BufferPlacement::add_temporary(DType dtype, const Dim& elements, std::string name, const Location& loc) {
  return add({.kind = ProgramBuffer::Kind::temporary,
              .name = std::move(name),
              .dtype = dtype,
              .elements = elements,
              .data = {},
              .loc = loc});
}

int BufferPlacement::add_workspace(ProgramBuffer::Kind kind, DType dtype, const Dim& elements, std::string name) {
  return add({.kind = kind,
              .name = std::move(name),
              .dtype = dtype,
              .elements = elements,
              .data = {},
              .loc = {},
              .has_room = true});
}

void BufferPlacement::place_arguments() {
  for (const ValueId id : graph_.arguments()) {
    const Node& node = graph_[id];
    const bool input = node.op == &ops::input;
    const int b = add({.kind = input ? ProgramBuffer::Kind::input : ProgramBuffer::Kind::state,
                       .name = visible(node.name),
                       .dtype = node.type.dtype,
                       .elements = node.type.shape.numel(),
                       .data = {},
                       .loc = node.loc});
    buffer_of_[id] = b;
    (input ? program_.inputs : program_.states)
        .push_back({node.name, node.type.dtype, node.type.shape, b, node.op == &ops::parameter});
  }
}

void BufferPlacement::place_outputs() {
  for (const Output& output : graph_.outputs) {
    const TensorType& type = graph_[output.value].type;
    const int b = add({.kind = ProgramBuffer::Kind::output,
                       .name = visible(output.name),
                       .dtype = type.dtype,
                       .elements = type.shape.numel(),
                       .data = {},
                       .loc = graph_[output.value].loc});
    buffer_of_[output.value] = b;
    program_.outputs.push_back({output.name, type.dtype, type.shape, b});
  }
}

Program::Slot& BufferPlacement::slot_of(int state) {
  return *std::find_if(program_.states.begin(), program_.states.end(),
                       [&](const Program::Slot& slot) { return slot.buffer == state; });
}

/// Lets new values of states overwrite the old ones if these are dead by then. Otherwise they are copied at the
/// end.
void BufferPlacement::place_updates() {
  std::vector<Update> in_place;
  for (std::size_t u = 0; u < graph_.updates.size(); ++u) {
    const Update& update = graph_.updates[u];
    const int state = buffer_of_[update.state];
    slot_of(state).is_updated = true;
    if (plan_.last_reader_first[u] && may_overwrite(graph_, plan_, update.value, update.state)) {
      buffer_of_[update.value] = state;
      in_place.push_back(update);
    } else {
      copies_.emplace_back(update.state, update.value);
      copied_.insert(update.value);
    }
  }
  place_gathered_parts(graph_, in_place, [this](ValueId id) { return is_temporary(id); }, plan_);
}

/// Whether a value has its own memory in the arena, or shares that of a value that it overwrites.
bool BufferPlacement::is_temporary(ValueId id) const {
  return !is_alias(graph_[id]) && graph_[id].op != &ops::constant && buffer_of_[id] < 0 && plan_.is_stored(id) &&
         plan_.region(id) >= 0 && plan_.placement[id].base == id && !copied_.contains(id);
}

bool BufferPlacement::may_share(ValueId id) const {
  const TensorType& type = graph_[id].type;
  const auto elements = type.shape.numel().value();
  return !elements || *elements * static_cast<std::int64_t>(size_in_bytes(type.dtype)) >= overwritten_bytes_;
}

/// Assigns buffers. A value overwrites a dead one if its region allows it.
void BufferPlacement::place_temporaries() {
  const auto over =
      overwritten_values(graph_, plan_, [this](ValueId id) { return is_temporary(id) && may_share(id); });
  NodeMap<ValueId> first(graph_);
  for (const ValueId id : all_values(graph_)) {
    first[id] = id;
    while (over[first[id]].valid()) first[id] = over[first[id]];
  }
  for (const ValueId id : all_values(graph_)) {
    const Node& node = graph_[id];
    if (is_alias(node) || buffer_of_[id] >= 0 || first[id] != id) continue;
    if (node.op == &ops::constant && !is_splat(node)) {
      buffer_of_[id] = add({.kind = ProgramBuffer::Kind::constant,
                            .name = launch_op(graph_, id).to_string(),
                            .dtype = node.type.dtype,
                            .elements = node.type.shape.numel(),
                            .data = constant_values(node),
                            .loc = node.loc});
    } else if (plan_.is_stored(id) && plan_.region(id) >= 0 && plan_.placement[id].base == id) {
      buffer_of_[id] =
          add_temporary(node.type.dtype, node.type.shape.numel(), launch_op(graph_, id).to_string(), node.loc);
    } else if (plan_.is_inlined(id) && node.op == &ops::scatter_add) {
      buffer_of_[id] = add_temporary(i64, scatter_positions_size(graph_, id),
                                     launch_op(graph_, id).to_string() + " positions", node.loc);
    }
  }
  for (const ValueId id : all_values(graph_))
    if (first[id] != id) buffer_of_[id] = buffer_of_[first[id]];
}

}  // namespace lathe
