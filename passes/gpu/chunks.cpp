#include "passes/gpu/chunks.h"

namespace lathe::gpu {

bool lies_in_chunks(const ElementwiseProgram& program, const std::vector<int>& along, DType dtype) {
  if (program.size() != 1) return false;
  const ElementwiseInstruction& load = program[0];
  if (load.kind != ElementwiseInstruction::Kind::load || load.dtype != dtype || !load.args.empty()) return false;
  const auto is_multiple = [](const Dim& size) { return size.divided_by(copied_chunk).has_value(); };
  int innermost = -1;
  for (const int d : along)
    if (!program.domain[d].is(1)) innermost = d;
  if (innermost < 0 || !load.form.coefficients[innermost].is(1)) return false;
  bool fits = is_multiple(program.domain[innermost]) && is_multiple(load.form.offset);
  for (int d = 0; d < program.domain.rank(); ++d)
    fits = fits && (d == innermost || program.domain[d].is(1) || is_multiple(load.form.coefficients[d]));
  return fits;
}

}  // namespace lathe::gpu
