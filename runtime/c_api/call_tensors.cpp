#include "runtime/c_api/call_tensors.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "passes/program/program.h"
#include "runtime/executable_program.h"

namespace lathe::c_api {

namespace {

std::string known_name(const std::vector<Program::Slot>& slots, const char* given, std::string_view kind,
                       std::string_view label) {
  const std::string_view name = text_of(given, "name");
  std::vector<std::string_view> known;
  for (const Program::Slot& slot : slots) known.push_back(slot.name);
  if (std::ranges::find(known, name) == known.end())
    throw UserError(fmt::format("the executable has no {} {}", kind, name), label,
                    known.empty() ? fmt::format("it has no {}s", kind)
                                  : did_you_mean_or_list(name, known, fmt::format("its {}s are", kind)));
  return std::string(name);
}

}  // namespace

std::string input_name(const lathe_call& call, const char* name) {
  return known_name(program_of(*call.executable).inputs, name, "input", "argument_unknown");
}

std::string output_name(const lathe_call& call, const char* name) {
  return known_name(program_of(*call.executable).outputs, name, "output", "output_unknown");
}

Tensors::const_iterator owned_result(const lathe_call& call, const char* name) {
  const std::string output = output_name(call, name);
  const auto found = call.results.find(output);
  if (!call.has_results || found == call.results.end())
    throw UserError(fmt::format("the call has no result {}", output), "output_unset",
                    call.outputs.empty() ? "call lathe_call_run() first; a result that was taken is gone"
                                         : "the results are in the memory that was given for them");
  return found;
}

}  // namespace lathe::c_api
