#pragma once

#include <string>
#include <string_view>

#include "codegen/cuda/expressions.h"
#include "codegen/cuda/index/index_width.h"

namespace lathe::cuda {

/// Emits the integers of a kernel in 32 or 64 bits, as index_widths() determines.
class IndexText {
 public:
  /// The kernel must outlive this object.
  IndexText(const kernel::Kernel& kernel, const GpuInfo& gpu, Indices indices)
      : kernel_(kernel), widths_(index_widths(kernel, gpu, indices)) {}

  bool is_int32(kernel::ValueId id) const { return widths_.values[at(id)]; }
  bool is_int32_var(kernel::VarId id) const { return widths_.vars[at(id)]; }
  bool runs_once(const kernel::Loop& loop) const { return widths_.once[at(loop.index)]; }
  /// "i32" or "i64".
  std::string_view scalar(kernel::ValueId index) const { return is_int32(index) ? "i32" : "i64"; }
  std::string type(kernel::ValueId id) const;
  std::string var_type(kernel::VarId id) const;

  /// Returns whether all index operands and the result are 32 bits wide, so that it is computed in 32 bits.
  bool computes_in_int32(kernel::ValueId id) const;
  /// The text of a constant, or of a dim of that name.
  Expression constant(kernel::ValueId id) const;
  Expression dim(kernel::ValueId id, const std::string& name) const;
  /// Converts `text` to the value's own 64 bits, or to 32 bits, which must suffice.
  Expression int64(kernel::ValueId id, const Expression& text) const;
  std::string int32(kernel::ValueId id, const std::string& text) const;
  /// Converts a result computed in 64 bits to the value's width.
  Expression narrowed(kernel::ValueId id, const Expression& text) const;

 private:
  static std::size_t at(int id) { return static_cast<std::size_t>(id); }
  const kernel::Instruction& info(kernel::ValueId id) const { return kernel_.values[at(id)]; }
  bool is_index(kernel::ValueId id) const { return info(id).type.scalar == i64; }

  const kernel::Kernel& kernel_;
  IndexWidths widths_;
};

}  // namespace lathe::cuda
