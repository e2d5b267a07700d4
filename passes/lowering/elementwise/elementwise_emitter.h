#pragma once

#include <functional>
#include <map>
#include <optional>

#include "passes/lowering/elementwise/loop_indices.h"

namespace lathe {

/// A program buffer for the storage of a node.
using BufferOf = std::function<int(ir::ValueId)>;

/// The type that a dtype is computed in: bf16 and f16 in f32, i8 and u8 in i32.
DType compute_type(DType dtype);
/// A value of the compute type as the dtype has it; where both are one, the value itself.
kernel::Value rounded(kernel::Builder& b, kernel::Value value, DType dtype);

/// Turns instructions of an elementwise program into kernel values at points of the domain.
class ElementwiseEmitter {
 public:
  ElementwiseEmitter(KernelContext& context, const ElementwiseProgram& program, BufferOf buffer_of)
      : context_(context), program_(program), buffer_of_(std::move(buffer_of)) {}

  /// From here on exp and division of f32 are kernel::fast_exp and fast_div, and what is divided by a constant is
  /// multiplied by its reciprocal: for kernels of products of bf16 or f16.
  void approximate() { approximates_ = true; }
  /// The same, and values of bf16 and f16 are rounded where they are stored alone: for attentions of them.
  void round_at_the_end() { approximates_ = rounds_at_the_end_ = true; }
  /// A value of the compute type as the dtype has it, if it is rounded before the end.
  kernel::Value round(kernel::Value value, DType dtype);

  /// Values computed at one point; those of an outer scope hold in an inner one, whose indices refine it.
  class Scope {
   public:
    Scope(ElementwiseEmitter& emitter, std::vector<IndexGroup> groups, kernel::Value lanes_inside = {},
          const Scope* around = nullptr)
        : indices(emitter.context_, emitter.program_.domain, std::move(groups)), mask(lanes_inside), outer(around) {}
    /// Says what stands for an instruction here: an accumulator, the result of a reduction.
    void bind(int instruction, kernel::Value value) { values_[instruction] = value; }
    std::optional<kernel::Value> find(int instruction) const;

    LoopIndices indices;
    kernel::Value mask;  ///< lanes inside the domain; empty: all
    const Scope* outer;

   private:
    std::map<int, kernel::Value> values_;
  };

  /// The value of an instruction in the scope, computed once: in its dtype, or f32 for bf16 and f16. A scalar where
  /// it does not vary along the lanes.
  kernel::Value emit(int instruction, Scope& scope);
  /// Emits in the scope what depends on none of the `varying` domain dims (a bit for each; all of them by default)
  /// and waits for no reduction or accumulator: what loops over these dims need not compute again.
  void hoist(Scope& scope, std::uint64_t varying = ~std::uint64_t{0});
  /// Stores a value of dtype `dtype` (as emit gives it) at a linear form of a node's storage.
  void store(ir::ValueId node, DType dtype, const Linear& form, kernel::Value value, Scope& scope);
  /// The same past the caches, for whole vectors.
  void stream(ir::ValueId node, DType dtype, const Linear& form, kernel::Value value, Scope& scope);
  /// Everything that the program stores, at one point: all values before the first store, which may go where
  /// another one is read.
  void store_all(Scope& scope);
  /// Reads back what store() put there in the same iteration.
  kernel::Value reload(ir::ValueId node, const Linear& form, Scope& scope);

  /// Prefetches a node's storage at a linear form, where lanes are neighbours there.
  void prefetch(ir::ValueId node, const Linear& form, Scope& scope);
  /// The same for what a load or a gather reads; where a gather's index is out of range, for anything.
  void prefetch(int instruction, Scope& scope);

  /// The memory of a node's storage.
  kernel::Buffer storage(ir::ValueId node) const { return context_.buffer(buffer_of_(node)); }
  const ElementwiseProgram& program() const { return program_; }
  KernelContext& context() { return context_; }

 private:
  void store(ir::ValueId node, DType dtype, const Linear& form, kernel::Value value, Scope& scope, bool streams);
  kernel::Value compute(const ElementwiseInstruction& instruction, Scope& scope);
  kernel::Value load(const ElementwiseInstruction& instruction, Scope& scope);
  kernel::Value check_index(const ElementwiseInstruction& instruction, Scope& scope);
  kernel::Value gather(const ElementwiseInstruction& instruction, Scope& scope);
  kernel::Value row_sum(const ElementwiseInstruction& instruction, Scope& scope);
  /// A position of the form that is `offset` elements further on, which is one number or one for each lane.
  static LoopIndices::Position further(LoopIndices::Position at, kernel::Value offset, const Linear& form,
                                       Scope& scope);
  kernel::Value random(const ElementwiseInstruction& instruction, Scope& scope);
  kernel::Value scalar(const ElementwiseInstruction& instruction, Scope& scope);
  kernel::Value apply(const ElementwiseInstruction& instruction, std::vector<kernel::Value> args);
  kernel::Value load_at(kernel::Buffer buffer, const LoopIndices::Position& at, int lanes, kernel::Value mask);

  KernelContext& context_;
  const ElementwiseProgram& program_;
  BufferOf buffer_of_;
  bool approximates_ = false, rounds_at_the_end_ = false;
};

}  // namespace lathe
