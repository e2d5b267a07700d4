#include "ir/kernel/verify/verifier.h"
#include "ir/support/visible.h"
#include "passes/compile/compilation.h"
#include "passes/fusion/text/parse_regions.h"
#include "passes/fusion/text/print_regions.h"
#include "passes/lowering/verify/verify_program.h"
#include "passes/machines/cpu_machine.h"
#include "passes/program/text/parse_program.h"
#include "passes/program/text/print_program.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/robustness/support/batch.h"
#include "tests/robustness/support/mutate.h"

namespace lathe::robustness {

namespace {

/// The texts of the forms of a random graph.
struct Forms {
  std::string fused, program;
};

Forms forms_of(std::size_t seed) {
  Compilation now = begin_compilation(fuzz::random_case(static_cast<unsigned>(seed), {.ops = 6}).graph,
                                      cpu_machine(*find_cpu_info("x86-64-v2")));
  run_until(now, "collectives");
  return {print_fused_graph(now.regions, now.graph), print_program(now.program)};
}

bool is_program(std::uint64_t seed) { return seed % 2 == 0; }

std::string make_form(std::uint64_t seed) {
  Mutator mutator(seed);
  const auto text = [&] {
    const Forms forms = forms_of(mutator.below(200));
    return is_program(seed) ? forms.program : forms.fused;
  };
  const std::string first = text();
  return mutator.any_kind(first, text());
}

/// Parses a mutant and prints it again: the printed text parses to a form that prints the same.
template <class Parse, class Print>
auto check_printed(const std::string& text, const Parse& parse, const Print& print) {
  auto parsed = parse(text);
  const std::string printed = print(parsed);
  if (visible_lines(printed) != printed) throw Wrong("the printed form has control characters");
  if (print(parse(printed)) != printed) throw Wrong("the printed form parses to another form");
  return parsed;
}

Answer check_form(std::uint64_t seed, const std::string& text) {
  if (!is_program(seed)) {
    check_printed(
        text, [](const std::string& from) { return parse_fused_graph(from, "mutant"); },
        [](const FusedGraph& fused) { return print_fused_graph(fused.regions, fused.graph); });
    return Answer::taken;
  }
  const Program program = check_printed(
      text, [](const std::string& from) { return parse_program(from, "mutant"); },
      [](const Program& from) { return print_program(from); });
  try {
    for (const kernel::Kernel& kernel : program.kernels) kernel::verify(kernel);
    verify_program(program);
  } catch (const InternalError&) {  // the form in which the verifiers reject programs
    return Answer::refused;
  }
  return Answer::taken;
}

}  // namespace

void attack_forms(Report& report) {
  try_mutants(report, 1000, {.make = make_form, .check = check_form, .ending = ".txt"});
}

}  // namespace lathe::robustness
