#include "ir/kernel/kernel.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/core.h>

#include "ir/kernel/intrinsics/record.h"
#include "ir/support/error.h"

namespace lathe::kernel {

std::string to_string(Type type) {
  if (type == no_value) return "no value";
  std::string text(name(type.scalar));
  if (type.lanes != 1) text += "x" + std::to_string(type.lanes);
  return text;
}

int Kernel::parameter_count() const {
  return static_cast<int>(
      std::count_if(buffers.begin(), buffers.end(), [](const BufferInfo& b) { return b.space == Space::parameter; }));
}

bool Kernel::is_collective(const Statement& statement) const {
  const auto* compute = std::get_if<Compute>(&statement.node);
  return std::holds_alternative<Barrier>(statement.node) || std::holds_alternative<IntrinsicRegion>(statement.node) ||
         (compute && kernel::is_collective(values[compute->value]));
}

int TensorMap::box_rows() const { return std::accumulate(box.begin() + 1, box.end(), 1, std::multiplies()); }

const Loop* Kernel::parallel_loop() const {
  for (const Statement& statement : body)
    if (const auto* loop = std::get_if<Loop>(&statement.node); loop && loop->kind == LoopKind::parallel) return loop;
  return nullptr;
}

std::string_view name(Access access) {
  switch (access) {
    case Access::read: return "read";
    case Access::write: return "write";
    case Access::read_write: return "readwrite";
  }
  throw InternalError("an access out of range");
}

std::string_view name(Space space) {
  switch (space) {
    case Space::parameter: return "parameter";
    case Space::register_: return "register";
    case Space::shared: return "shared";
    case Space::stack: return "stack";
  }
  throw InternalError("a space out of range");
}

std::string_view name(LoopKind kind) {
  switch (kind) {
    case LoopKind::serial: return "serial";
    case LoopKind::parallel: return "parallel";
    case LoopKind::vector: return "vector";
    case LoopKind::unroll: return "unroll";
    case LoopKind::block_x: return "block.x";
    case LoopKind::block_y: return "block.y";
    case LoopKind::block_z: return "block.z";
    case LoopKind::thread_x: return "thread.x";
    case LoopKind::thread_y: return "thread.y";
    case LoopKind::thread_z: return "thread.z";
  }
  throw InternalError("a loop kind out of range");
}

std::string_view name(Opcode op) {
  switch (op) {
    case Opcode::constant: return "constant";
    case Opcode::dim: return "dim";
    case Opcode::loop_index: return "loop_index";
    case Opcode::scalar: return "scalar";
    case Opcode::fma: return "fma";
    case Opcode::broadcast: return "broadcast";
    case Opcode::ramp: return "ramp";
    case Opcode::reduce: return "reduce";
    case Opcode::extract: return "extract";
    case Opcode::shuffle: return "shuffle";
    case Opcode::load: return "load";
    case Opcode::load_strided: return "load_strided";
    case Opcode::gather: return "gather";
    case Opcode::get: return "get";
    case Opcode::intrinsic: return "intrinsic";
  }
  throw InternalError("an opcode out of range");
}

}  // namespace lathe::kernel
