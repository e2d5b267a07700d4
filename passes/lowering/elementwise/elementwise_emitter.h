#pragma once

#include <functional>
#include <map>
#include <optional>

#include "passes/lowering/elementwise/loop_indices.h"

namespace lathe {

/// Maps a node to the program buffer of its storage.
using BufferOf = std::function<int(ir::ValueId)>;

/// Returns the dtype of intermediate values: f32 for bf16 and f16, i32 for i8 and u8, otherwise the dtype itself.
DType compute_type(DType dtype);
/// Rounds a value of the compute type to `dtype` and keeps the compute type. Returns the value unchanged if both
/// types are equal.
kernel::Value rounded(kernel::Builder& b, kernel::Value value, DType dtype);

/// Emits instructions of an elementwise program as kernel values at points of the domain.
class ElementwiseEmitter {
 public:
  ElementwiseEmitter(KernelContext& context, const ElementwiseProgram& program, BufferOf buffer_of)
      : context_(context), program_(program), buffer_of_(std::move(buffer_of)) {}

  /// Uses kernel::fast_exp and fast_div for f32 from here on, and multiplies by the reciprocal of constant divisors.
  /// For kernels with matmuls of bf16 or f16.
  void approximate() { approximates_ = true; }
  /// Same, and rounds bf16 and f16 values only when they are stored. For attention in these dtypes.
  void round_at_the_end() { approximates_ = rounds_at_the_end_ = true; }
  /// Rounds a value of the compute type to `dtype`, unless rounding is deferred to stores.
  kernel::Value round(kernel::Value value, DType dtype);

  /// Values computed at one point. An inner scope also sees the values of its outer scopes; its indices refine
  /// theirs.
  class Scope {
   public:
    Scope(ElementwiseEmitter& emitter, std::vector<IndexGroup> groups, kernel::Value lanes_inside = {},
          const Scope* around = nullptr)
        : indices(emitter.context_, emitter.program_.domain, std::move(groups)), mask(lanes_inside), outer(around) {}
    /// Sets the value of an instruction in this scope, such as an accumulator or the result of a reduction.
    void bind(int instruction, kernel::Value value) { values_[instruction] = value; }
    std::optional<kernel::Value> find(int instruction) const;

    LoopIndices indices;
    kernel::Value mask;  ///< lanes inside the domain; empty if all are
    const Scope* outer;

   private:
    std::map<int, kernel::Value> values_;
  };

  /// Emits an instruction in the scope unless its value is already known. The value has the compute type of the
  /// instruction's dtype. It is a scalar if it does not vary along the lanes.
  kernel::Value emit(int instruction, Scope& scope);
  /// Emits all values that depend on none of the `varying` domain dims (one bit each; default: all dims) and on no
  /// reduction or accumulator, so that loops over these dims need not recompute them.
  void hoist(Scope& scope, std::uint64_t varying = ~std::uint64_t{0});
  /// Stores a value of dtype `dtype`, as returned by emit(), at a linear form of a node's storage.
  void store(ir::ValueId node, DType dtype, const Linear& form, kernel::Value value, Scope& scope);
  /// Same with non-temporal stores, for whole vectors.
  void stream(ir::ValueId node, DType dtype, const Linear& form, kernel::Value value, Scope& scope);
  /// Performs all stores of the program at one point. All values are computed before the first store, because a store
  /// may overwrite memory that another value reads.
  void store_all(Scope& scope);
  /// Loads a value that store() wrote in the same iteration.
  kernel::Value reload(ir::ValueId node, const Linear& form, Scope& scope);

  /// Prefetches a node's storage at a linear form, if lanes are contiguous there.
  void prefetch(ir::ValueId node, const Linear& form, Scope& scope);
  /// Same for the memory that a load or a gather reads. If a gather index is out of range, prefetches any address.
  void prefetch(int instruction, Scope& scope);

  /// The kernel buffer of a node's storage.
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
  /// Returns the position of the form that is `offset` elements later. `offset` is a scalar or has one value per
  /// lane.
  static LoopIndices::Position further(LoopIndices::Position at, kernel::Value offset, const Linear& form,
                                       Scope& scope);
  kernel::Value random(const ElementwiseInstruction& instruction, Scope& scope);
  kernel::Value scalar(const ElementwiseInstruction& instruction, Scope& scope);
  kernel::Value apply(const ElementwiseInstruction& instruction, std::vector<kernel::Value> args);
  kernel::Value load_at(kernel::Buffer buffer, const LoopIndices::Position& at, int lanes, kernel::Value mask);
  kernel::Value load_runs(kernel::Buffer buffer, const std::vector<LoopIndices::Run>& runs, int lanes,
                          kernel::Value mask);

  KernelContext& context_;
  const ElementwiseProgram& program_;
  BufferOf buffer_of_;
  bool approximates_ = false, rounds_at_the_end_ = false;
};

}  // namespace lathe
