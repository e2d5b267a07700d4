#include "runtime/backend/run_program.h"

#include <algorithm>

#include "ir/support/error.h"
#include "ir/support/numbers/float_environment.h"
#include "passes/program/signature.h"
#include "runtime/parameters/parameter_store.h"
#include "runtime/parameters/parameters.h"
#include "runtime/run/argument_binder.h"

namespace lathe {

Tensors run_program(const Program& program, const Device& device, const Tensors& arguments, const DimBindings& dims) {
  if (!program.collectives.empty())
    throw UserError("the program @" + program.name + " exchanges values with other processes", "one_process",
                    "run the graph that it was compiled from");
  const FloatEnvironment environment;
  const ir::Graph signature = signature_of(program);
  Tensors inputs;
  const Parameters parameters;
  ParameterStore& store = *parameters.store();
  for (const auto& [name, tensor] : arguments) {
    const auto is_it = [&](const Program::Slot& slot) { return slot.name == name; };
    if (std::ranges::any_of(program.states, is_it))
      store.set(name, tensor);
    else
      inputs.emplace(name, tensor);
  }
  store.attach(program, false);
  const LoadedProgram loaded = device.load(program, {.poison = true});
  ArgumentBinder binder(signature, program, dims_without_argument(program), {});
  binder.resolve_states(store);
  binder.bind(inputs, dims);
  Tensors results;
  loaded.runner->run(binder.arguments(results));
  store.detach(program);
  for (const Program::Slot& slot : program.states)
    if (slot.is_updated && !results.emplace(slot.name, parameters.get(slot.name)).second)
      throw UserError("an output and an updated state are both called " + slot.name, "result_name",
                      "rename the output");
  return results;
}

}  // namespace lathe
