#include <fmt/core.h>

#include <array>
#include <csignal>

#include "ir/tensor/text/printer.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/fuzz/graph_generator.h"
#include "tests/robustness/support/known_programs.h"
#include "tests/robustness/support/mutate.h"
#include "tests/robustness/support/work_folder.h"

namespace lathe::robustness {

namespace {

/// Every command that reads IR text, with the mutant as "mutant.lathe".
const std::array<std::vector<std::string>, 29> commands = {{
    {"dump", "mutant.lathe"},
    {"dump", "--short", "mutant.lathe"},
    {"dump", "--dot", "mutant.lathe"},
    {"dump", "--html", "mutant.lathe", "-o", "page.html"},
    {"dump", "--after", "kernels", "--cpu", "x86-64-v3", "mutant.lathe"},
    {"dump", "--after", "asm", "--cpu", "x86-64-v3", "mutant.lathe"},
    {"explain", "mutant.lathe"},
    {"explain", "--fusion", "mutant.lathe"},
    {"explain", "--fusion", "--target=cuda", "mutant.lathe"},
    {"explain", "--chunks", "mutant.lathe"},
    {"opt", "mutant.lathe"},
    {"opt", "--passes", "mixed-bf16", "mutant.lathe"},
    {"grad", "--zeros", "mutant.lathe"},
    {"run", "--random", "mutant.lathe"},
    {"run", "--random", "--interpret", "mutant.lathe"},
    {"run", "--random", "-i", "mutant.safetensors", "mutant.lathe", "-o", "out.safetensors"},
    {"run", "--random", "--dtype", "bf16", "mutant.lathe"},
    {"verify", "mutant.lathe"},
    {"trace", "--steps", "1", "mutant.lathe", "-o", "trace.json"},
    {"bench", "--repeat", "1", "mutant.lathe"},
    {"compile", "--emit", "cuda", "mutant.lathe"},
    {"explain", "--html", "--dim", "n=4", "mutant.lathe", "-o", "page.html"},
    {"explain", "--memory", "--svg", "memory.svg", "--dim", "n=4", "mutant.lathe"},
    {"diff", "mutant.lathe", "small.lathe"},
    {"diff", "--locations", "--all-types", "small.lathe", "mutant.lathe"},
    {"run", "--random", "--find-nan", "mutant.lathe"},
    {"tokenize", "mutant.lathe", "some text"},
    {"chat", "mutant.lathe", "--render", "some text"},
    {"explain", "--memory-budget", "1MiB", "--dim", "n=4", "mutant.lathe"},
}};

std::string mutant_text(Mutator& mutator) {
  const std::span<const std::string> known = known_programs();
  if (mutator.one_in(3)) {
    const auto random = fuzz::random_case(static_cast<unsigned>(mutator.below(1000)), {.ops = 6});
    return mutator.any_kind(ir::print(random.graph), mutator.any(known));
  }
  return mutator.any_kind(mutator.one_in(2) ? small_program : mutator.any(known), mutator.any(known));
}

void round(Report& report, const WorkFolder& work, const std::string& tensors, std::uint64_t seed) {
  Mutator mutator(seed);
  const std::string text = mutant_text(mutator);
  write_bytes(work / "mutant.lathe", text);
  write_bytes(work / "mutant.safetensors", mutator.any_kind(tensors, small_program));
  std::vector<std::string> words = commands[mutator.below(commands.size())];
  if (mutator.one_in(8)) {  // an option that is almost valid
    std::string& word = words[mutator.below(words.size())];
    word = mutator.any_kind(word, "--dim n=3 -1 --seed x --threads 0");
    std::erase(word, '\0');
  }
  test::Command command = work.command(words);
  // A command that needs too much time or memory is ended by its limits; that is not a finding here.
  command.limits = {{RLIMIT_CPU, 60}};
  if (limits_memory) command.limits.push_back({RLIMIT_AS, rlim_t{6} << 30});
  const Ran ran = work.run(command);
  if (ran.ending.signal == SIGXCPU || ran.ending.signal == SIGKILL) return report.count("too slow");
  std::string name = fmt::format("{}", seed);
  for (const std::string& word : words) name += " " + word;
  if (judge(report, fmt::format("{}.lathe", seed), ran, text)) return;
  fmt::print("  command: {}\n", name);
}

}  // namespace

void attack_commands(Report& report) {
  const WorkFolder work(report.options());
  write_safetensors(work / "small.safetensors",
                    Tensors{{"x", HostTensor(f32, {3, 4})}, {"w", HostTensor(f32, {4, 4})}});
  write_bytes(work / "small.lathe", small_program);
  const std::string tensors = read_bytes(work / "small.safetensors");
  for_each_seed(report.options(), 60, [&](std::uint64_t seed) { round(report, work, tensors, seed); });
}

}  // namespace lathe::robustness
