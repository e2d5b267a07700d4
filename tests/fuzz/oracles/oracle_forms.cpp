#include <fmt/core.h>

#include "passes/compile/compilation.h"
#include "passes/fusion/text/parse_regions.h"
#include "passes/fusion/text/print_regions.h"
#include "passes/lowering/lower.h"
#include "passes/lowering/verify/verify_program.h"
#include "passes/machines/cpu_machine.h"
#include "passes/machines/gpu_machine.h"
#include "passes/pipeline/pipeline.h"
#include "passes/program/text/parse_program.h"
#include "passes/program/text/print_program.h"
#include "tests/fuzz/oracles/oracles.h"
#include "tests/fuzz/reference.h"
#include "tests/support/graphs/round_trip.h"
#include "tests/support/programs/plan_difference.h"
#include "tests/support/programs/program_interpreter.h"

namespace lathe::fuzz {

namespace {

std::vector<Machine> machines() {
  return {cpu_machine(*find_cpu_info("x86-64-v4")), gpu_machine(gpu_info("sm_90a"))};
}

/// Returns the first line that differs.
std::string difference(const std::string& a, const std::string& b) {
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto line = [](const std::string& text, std::size_t at) {
    const std::size_t start = text.rfind('\n', at == 0 ? 0 : at - 1) + 1;
    return text.substr(start, text.find('\n', at) - start);
  };
  return fmt::format("\n  {}\n  {}", line(a, static_cast<std::size_t>(x - a.begin())),
                     line(b, static_cast<std::size_t>(y - b.begin())));
}

/// Checks the fused graph of a compilation: its text parses to the same plan, which has the same program.
Complaint fused_graph(const Compilation& now) {
  const std::string text = print_fused_graph(now.regions, now.graph);
  const FusedGraph parsed = parse_fused_graph(text, "fused");
  if (const std::string again = print_fused_graph(parsed.regions, parsed.graph); again != text)
    return "prints differently after parsing:" + difference(text, again);
  if (const std::string member = test::plan_difference(now.regions, parsed.regions); !member.empty())
    return "is parsed with other " + member;
  KernelPool pool;
  const std::string expected = print_program(now.program),
                    found = print_program(make_kernels(parsed.graph, parsed.regions, now.machine, {}, pool));
  if (expected != found) return "has another program after parsing:" + difference(expected, found);
  return std::nullopt;
}

}  // namespace

Complaint loops(const Case& from) {
  for (const Machine& machine : machines())
    for (const kernel::Kernel& kernel : compile_graph(from.graph, machine).program.kernels) try {
        test::round_trip(kernel);
      } catch (const Error& error) {
        return fmt::format("{} {}", kernel.name, error.what());
      }
  return std::nullopt;
}

Complaint regions(const Case& from) {
  for (const Machine& machine : machines()) {
    Compilation now = begin_compilation(from.graph, machine);
    run_until(now, "kernels");
    try {
      if (const auto wrong = fused_graph(now)) return "the fused graph " + *wrong;
    } catch (const Error& error) {
      return fmt::format("the fused graph is rejected: {}", error.what());
    }
  }
  return std::nullopt;
}

Complaint programs(const Case& from) {
  for (const Machine& machine : machines()) {
    const Program program = compile_graph(from.graph, machine).program;
    const std::string text = print_program(program);
    Program parsed;
    try {
      parsed = parse_program(text, "program");
      verify_program(parsed);
    } catch (const Error& error) {
      return fmt::format("the program is rejected: {}", error.what());
    }
    if (const std::string again = print_program(parsed); again != text)
      return "the program prints differently after parsing:" + difference(text, again);
  }
  const test::ProgramInterpreter original(from.graph);
  Program parsed = parse_program(print_program(original.program()));
  const test::ProgramInterpreter program(from.graph, std::move(parsed));
  for (const DimBindings& dims : from.sizes) {
    Reference reference(from, dims, true);
    const test::Outcome found = test::outcome([&] { return program.run(reference.arguments()); });
    if (const auto wrong = reference.complaint(found))
      return fmt::format("{}, the parsed program: {}", test::to_string(dims), *wrong);
  }
  return std::nullopt;
}

}  // namespace lathe::fuzz
