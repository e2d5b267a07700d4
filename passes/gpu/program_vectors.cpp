#include "passes/gpu/program_vectors.h"

#include <algorithm>

namespace lathe::gpu {

VectorRegisters program_vectors(const ElementwiseProgram& program, VectorRegisters vectors) {
  int last = program.domain.rank() - 1;
  while (last > 0 && program.domain[last].is(1)) --last;
  if (last < 0) return vectors;
  bool varies = false;
  const auto fits = [&](const Linear& form, DType dtype) {
    if (form.coefficients.empty() || form.coefficients[last].is(0)) return true;
    varies = true;
    return size_in_bytes(dtype) <= 2;
  };
  const bool narrow =
      std::all_of(program.code.begin(), program.code.end(),
                  [&](const ElementwiseInstruction& i) { return !i.buffer.valid() || fits(i.form, i.dtype); }) &&
      std::all_of(program.stores.begin(), program.stores.end(),
                  [&](const ElementwiseStore& store) { return fits(store.form, program[store.value].dtype); });
  if (narrow && varies) vectors.bits *= 2;
  return vectors;
}

}  // namespace lathe::gpu
