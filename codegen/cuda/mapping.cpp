#include "codegen/cuda/mapping.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "codegen/cuda/intrinsics/hooks.h"
#include "codegen/cuda/phases/phase_mapping.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/verify/structure_rules.h"
#include "ir/support/error.h"

namespace lathe::cuda {

using kernel::Block;
using kernel::BufferId;
using kernel::Kernel;
using kernel::Loop;
using kernel::LoopKind;
using kernel::none;
using kernel::Opcode;
using kernel::Space;
using kernel::ValueId;

bool is_thread(LoopKind kind) { return kind >= LoopKind::thread_x; }
bool is_block(LoopKind kind) { return kind >= LoopKind::block_x && !is_thread(kind); }

std::size_t axis_of(LoopKind kind) {
  const LoopKind x = is_thread(kind) ? LoopKind::thread_x : LoopKind::block_x;
  return static_cast<std::size_t>(kind) - static_cast<std::size_t>(x);
}

bool has_barrier(const Block& block) {
  return std::any_of(block.begin(), block.end(), [](const kernel::Statement& s) {
    if (const auto* loop = std::get_if<Loop>(&s.node)) return has_barrier(loop->body);
    return std::holds_alternative<kernel::Barrier>(s.node) || std::holds_alternative<kernel::IntrinsicRegion>(s.node);
  });
}

namespace {

/// Threads of a block with accumulator tiles at or above which ptxas needs a limit of one block per multiprocessor.
/// Without it, ptxas spills.
constexpr int lone_block_threads = 256;

std::int64_t trips(std::int64_t lo, std::int64_t hi, std::int64_t step) {
  return lo >= hi ? 0 : (hi - lo - 1) / step + 1;
}

[[noreturn]] void fail(const Kernel& kernel, std::string_view text, std::string_view label) {
  throw InternalError(fmt::format("kernel {}: {}  [{}]", kernel.name, text, label));
}

class Reader {
 public:
  Reader(const Kernel& kernel, const GpuInfo& gpu)
      : kernel_(kernel), most_threads_(gpu.most_block_threads), depth_(kernel.buffers.size(), 0) {}

  Mapping run() {
    sizes(kernel_.body);
    if (mapping_.block_size() > most_threads_)
      fail(kernel_, fmt::format("{} threads in a block", mapping_.block_size()), "thread_bounds");
    mapping_.started = counter_of_blocks();
    block(kernel_.body);
    if (mapping_.started != none)
      mapping_.block_number = allocate_shared(mapping_.shared_bytes, sizeof(std::uint64_t), 16);
    return mapping_;
  }

 private:
  /// Finds the longest thread loop of each axis.
  void sizes(const Block& statements) {
    for (const kernel::Statement& s : statements) {
      if (const auto* branch = std::get_if<kernel::Branch>(&s.node))
        sizes(branch->then_block), sizes(branch->else_block);
      const auto* loop = std::get_if<Loop>(&s.node);
      if (!loop) continue;
      if (loop->kind == LoopKind::parallel) fail(kernel_, "a parallel loop", "mapped");
      if (is_thread(loop->kind)) {
        const std::int64_t count = constant_trip_count(kernel_, *loop);
        if (count < 0 || count > most_threads_)
          fail(kernel_, fmt::format("a thread loop without constant bounds up to {}", most_threads_),
               "thread_bounds");
        int& longest = mapping_.threads[axis_of(loop->kind)];
        longest = std::max(longest, static_cast<int>(count));
      }
      sizes(loop->body);
    }
  }

  BufferId counter_of_blocks() const {
    BufferId found = none;
    kernel::for_each_statement(kernel_.body, [&](const kernel::Statement& s) {
      const kernel::Instruction* in = kernel::intrinsic_operation(kernel_, s);
      if (in && hook_of(kernel_, *in).orders_blocks) found = in->machine->buffers[0].id;
    });
    return found;
  }

  void block(const Block& statements) {
    for (const kernel::Statement& s : statements) std::visit([this](const auto& node) { statement(node); }, s.node);
  }

  void statement(const kernel::Compute& s) {
    const kernel::Instruction& in = value(kernel_, s.value);
    if (in.op == Opcode::intrinsic) hook_of(kernel_, in);
    scratch_use(in.buffer);
  }
  void statement(const kernel::SetVar&) {}
  void statement(const kernel::Prefetch&) {}
  void statement(const kernel::Barrier&) {}
  void statement(const kernel::Check&) {}

  void statement(const kernel::Store& s) {
    scratch_use(s.buffer);
    const Space space = kernel_.buffers[s.buffer].space;
    if (threads_ == 0 && (space == Space::parameter || space == Space::shared))
      fail(kernel_, "a store outside the thread loops", "thread_store");
  }

  void scratch_use(BufferId id) const {
    if (id == none) return;
    const kernel::BufferInfo& buffer = kernel_.buffers[id];
    const bool own = buffer.space == Space::stack || buffer.space == Space::register_;
    if (own && depth_[id] != threads_)
      fail(kernel_, fmt::format("{} is used in another thread loop than it is allocated in", buffer.name),
           "scratch_offset");
  }

  void statement(const kernel::Alloc& s) {
    const kernel::BufferInfo& buffer = kernel_.buffers[s.buffer];
    depth_[s.buffer] = threads_;
    if (buffer.space != Space::shared) return;
    const std::int64_t bytes = buffer.count * static_cast<std::int64_t>(size_in_bytes(buffer.dtype));
    const int alignment = shared_alignment(kernel_, s.buffer);
    allocate_shared(mapping_.shared_bytes, bytes, alignment);
    mapping_.shared_alignment = std::max(mapping_.shared_alignment, alignment);
  }

  void statement(const kernel::IntrinsicRegion& s) {
    const RegionHook& hook = hook_of(kernel_, s);
    if (hook.blocks_at_once) mapping_.blocks_at_once = hook.blocks_at_once(s);
    const std::int64_t words = hook.shared_words ? hook.shared_words(kernel_, s) : 0;
    allocate_shared(mapping_.shared_bytes, words * std::int64_t{sizeof(std::uint64_t)}, 16);
    for (const Block& body : s.bodies) block(body);
  }

  void statement(const kernel::Branch& s) {
    block(s.then_block);
    block(s.else_block);
  }

  void statement(const Loop& s) {
    if (is_thread(s.kind) && has_barrier(s.body)) {
      const int axis = mapping_.threads[axis_of(s.kind)];
      if (constant_trip_count(kernel_, s) != axis)
        fail(kernel_, fmt::format("a {} loop with a barrier does not run {} threads", name(s.kind), axis),
             "barrier_threads");
    }
    threads_ += is_thread(s.kind);
    block(s.body);
    threads_ -= is_thread(s.kind);
  }

  const Kernel& kernel_;
  int most_threads_;  // per block
  Mapping mapping_;
  std::vector<int> depth_;  // by buffer: number of thread loops around its allocation
  int threads_ = 0;
};

/// Evaluates integers that depend on dims only.
class Bounds {
 public:
  Bounds(const Kernel& kernel, std::span<const std::int64_t> dims) : kernel_(kernel), dims_(dims) {}

  void grid(const Block& statements, std::array<std::int64_t, 3>& grid) {
    for (const kernel::Statement& s : statements) {
      if (const auto* branch = std::get_if<kernel::Branch>(&s.node))
        this->grid(branch->then_block, grid), this->grid(branch->else_block, grid);
      const auto* loop = std::get_if<Loop>(&s.node);
      if (!loop) continue;
      if (is_block(loop->kind)) {
        std::int64_t& blocks = grid[axis_of(loop->kind)];
        blocks = std::max(blocks, trips(integer(loop->lo), integer(loop->hi), integer(loop->step)));
      }
      this->grid(loop->body, grid);
    }
  }

  std::int64_t integer(ValueId id) {
    for (const ValueId needed : kernel::with_needs(kernel_, id))
      if (!known_.contains(needed)) known_[needed] = scalar(needed);
    return known_.at(id).integer;
  }

 private:
  /// Computes a value whose operands are known.
  kernel::Scalar scalar(ValueId id) const {
    const kernel::Instruction& in = value(kernel_, id);
    kernel::Scalar result;
    if (in.op == Opcode::constant) {
      result = kernel::constant_value(in);
    } else if (in.op == Opcode::dim) {
      result.integer = dims_[in.integer];
    } else if (in.op == Opcode::scalar && in.type.lanes == 1) {
      std::vector<kernel::Scalar> args;
      for (const ValueId arg : in.args) args.push_back(known_.at(arg));
      const DType operand = value(kernel_, in.args.back()).type.scalar;
      result = in.scalar_op == ScalarOp::cast ? kernel::evaluate_cast(operand, in.type.scalar, args[0])
                                              : kernel::evaluate(in.scalar_op, operand, args);
    } else {
      fail(kernel_, "the bounds of a block loop do not follow from the dims", "block_bounds");
    }
    return result;
  }

  const Kernel& kernel_;
  std::span<const std::int64_t> dims_;
  std::map<ValueId, kernel::Scalar> known_;
};

}  // namespace

int shared_alignment(const Kernel& kernel, BufferId buffer) {
  int alignment = 16;
  kernel::for_each_statement(kernel.body, [&](const kernel::Statement& s) {
    const kernel::Instruction* in = kernel::intrinsic_operation(kernel, s);
    if (!in) return;
    for (const kernel::IntrinsicBuffer& operand : in->machine->buffers)
      if (operand.id == buffer) alignment = std::max(alignment, kernel::record_of(*in)->shared_alignment);
  });
  return alignment;
}

std::int64_t allocate_shared(std::int64_t& used, std::int64_t bytes, int alignment) {
  const auto up = [](std::int64_t n, int to) { return (n + to - 1) / to * to; };
  const std::int64_t offset = up(used, alignment);
  used = offset + up(bytes, 16);
  return offset;
}

int resident_blocks(const Mapping& mapping, const GpuInfo& gpu) {
  const bool alone = mapping.block_size() >= lone_block_threads &&
                     mapping.shared_bytes >= gpu.static_shared_bytes / 2 &&
                     mapping.shared_bytes <= gpu.static_shared_bytes;
  return mapping.blocks_at_once > 0 ? mapping.blocks_at_once : alone ? 1 : 0;
}

std::int64_t constant_trip_count(const Kernel& kernel, const Loop& loop) {
  const auto &lo = value(kernel, loop.lo), &hi = value(kernel, loop.hi), &step = value(kernel, loop.step);
  for (const auto* bound : {&lo, &hi, &step})
    if (bound->op != Opcode::constant) return -1;
  return trips(lo.integer, hi.integer, step.integer);
}

Mapping mapping_of(const Kernel& kernel, const GpuInfo& gpu) {
  return kernel.phase_kernels.empty() ? Reader(kernel, gpu).run() : mapping_of_phases(kernel, gpu);
}

std::array<std::int64_t, 3> grid_of(const Kernel& kernel, const GpuInfo& gpu, std::span<const std::int64_t> dims) {
  std::array<std::int64_t, 3> grid = {1, 1, 1};
  if (kernel.phase_kernels.empty())
    Bounds(kernel, dims).grid(kernel.body, grid);
  else
    grid[0] = most_blocks_of_phases(kernel, gpu, dims);
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (grid[axis] > gpu.most_blocks[axis])
      throw UserError(fmt::format("{} needs {} blocks of threads, and CUDA allows {}", kernel.name, grid[axis],
                                  gpu.most_blocks[axis]),
                      "grid_size", "make the batch smaller");
  return grid;
}

std::vector<MappedTensor> mapped_tensors(const Kernel& kernel, std::span<const std::int64_t> dims) {
  Bounds bounds(kernel, dims);
  std::vector<MappedTensor> tensors;
  for (const kernel::TensorMap& map : kernel.maps) {
    MappedTensor& tensor = tensors.emplace_back(MappedTensor{map.from, bounds.integer(map.offset), {}, {}, map.box});
    for (const ValueId id : map.sizes) tensor.sizes.push_back(bounds.integer(id));
    for (const ValueId id : map.strides) tensor.strides.push_back(bounds.integer(id));
  }
  return tensors;
}

}  // namespace lathe::cuda
