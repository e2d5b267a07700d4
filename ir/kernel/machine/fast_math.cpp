#include "ir/kernel/machine/fast_math.h"

#include "ir/kernel/build/builder_checks.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/machine/run.h"

namespace lathe::kernel {

constinit const MachineRecord fast_exp_record =
    machine_record<FastExp>({.name = "fast_exp", .args = {1, 1}, .gives_value = true, .is_pure = true});

FastExp FastExp::of(const Instruction& in) { return {in.type, in.args[0]}; }
Instruction FastExp::instruction() const { return machine_instruction({.record = &fast_exp_record}, {value}, type); }

void FastExp::verify(const MachineRules& rules) const {
  want(rules.kernel, type, {f32, type.lanes}, "a fast_exp");
  rules.want(value, type, "the operand of fast_exp");
}

std::string FastExp::text(const MachineText& text) const { return plain_text("fast_exp", {value}, text); }

void FastExp::interpret(const MachineRun& run, ValueId id, Thread& t) const {
  const Scalar* from = run.lanes(value, t);
  Scalar* to = run.lanes(id, t);
  for (int i = 0; i < type.lanes; ++i) to[i] = evaluate(ScalarOp::exp, f32, {from + i, 1});
}

Value fast_exp(Builder& builder, Value value) {
  require(value.type.scalar == f32, "fast_exp of {}", value.type);
  return builder.machine(FastExp{value.type, value.id}.instruction());
}

}  // namespace lathe::kernel
