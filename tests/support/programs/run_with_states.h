#pragma once

#include "passes/program/program.h"
#include "runtime/compile.h"
#include "runtime/executable_program.h"

namespace lathe::test {

/// Runs with some arguments as inputs and the others as states. Returns outputs by name, and every state after the
/// run under the interpreter's name for it, if any.
inline Tensors run_with_states(Executable& executable, Tensors arguments) {
  for (const Program::Slot& slot : program_of(executable).states) {
    executable.parameters().set(slot.name, arguments.at(slot.name));
    arguments.erase(slot.name);
  }
  Tensors results = executable.run(arguments);
  for (const auto& [name, value] : executable.parameters().values()) results.emplace(name, value);
  return results;
}

}  // namespace lathe::test
