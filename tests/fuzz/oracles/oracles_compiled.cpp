#include <fmt/core.h>

#include "tests/fuzz/every_kernel.h"
#include "tests/fuzz/oracles/oracles.h"
#include "tests/fuzz/reference.h"
#include "tests/support/graphs/least_budget.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/guarded_program.h"
#include "tests/support/programs/memory_store.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/programs/run_with_states.h"

namespace lathe::fuzz {

using namespace ir;
using test::Outcome;
using test::outcome;

namespace {

Complaint differing_bits(const Outcome& a, const Outcome& b) {
  for (const auto& [name, value] : a.results)
    if (b.results.contains(name) && !test::same_bits(value, b.results.at(name)))
      return fmt::format("{} has other bits:\n  {}\n  {}", name, value.to_string(), b.results.at(name).to_string());
  return std::nullopt;
}

/// One reference for each binding of the dims.
std::vector<Reference> whole_references(const Case& from) {
  std::vector<Reference> references;
  for (const DimBindings& dims : from.sizes) references.emplace_back(from, dims, true);
  return references;
}

/// Checks that a run between inaccessible pages gives the same results as another run.
Complaint in_bounds(test::GuardedProgram& guarded, Reference& reference, const Outcome& expected) {
  const Outcome found = outcome([&] { return guarded.run(reference.arguments()); });
  Complaint wrong = reference.complaint(found);
  if (!wrong) wrong = differing_bits(expected, found);
  return wrong ? std::optional("between inaccessible pages " + *wrong) : std::nullopt;
}

Complaint compiled(const Case& from) {
  const CompileOptions options{.threads = 1, .cache = &compiled_kernels()};
  Executable one = compile(from.graph, options);
  test::GuardedProgram guarded(from.graph, one, options);
  Executable three = compile(from.graph, {.threads = 3, .cache = &compiled_kernels()});
  for (const DimBindings& dims : from.sizes) {
    Reference reference(from, dims, true);
    const auto run = [&](Executable& executable) {
      return outcome([&] { return test::run_with_states(executable, reference.arguments()); });
    };
    const Outcome first = run(one);
    if (const auto wrong = reference.complaint(first)) return test::to_string(dims) + ": " + *wrong;
    if (const auto wrong = differing_bits(first, run(one)))
      return test::to_string(dims) + ": in the second run " + *wrong;
    if (const auto wrong = differing_bits(first, run(three)))
      return test::to_string(dims) + ": on three threads " + *wrong;
    if (const auto wrong = in_bounds(guarded, reference, first)) return test::to_string(dims) + ": " + *wrong;
    if (const auto wrong = interpret_new_kernels(from.graph, one, dims, reference.arguments()))
      return test::to_string(dims) + ": " + *wrong;
  }
  return std::nullopt;
}

Complaint targets(const Case& from) {
  std::vector<Reference> references = whole_references(from);
  for (const char* name : {"x86-64-v2", "x86-64-v3"}) {
    const CompileOptions options{.target = Target::named(name), .threads = 2, .cache = &compiled_kernels()};
    Executable executable = compile(from.graph, options);
    test::GuardedProgram guarded(from.graph, executable, options);
    for (Reference& reference : references) {
      const Outcome found = outcome([&] { return test::run_with_states(executable, reference.arguments()); });
      if (const auto wrong = reference.complaint(found))
        return fmt::format("{}, {}: {}", name, test::to_string(reference.dims()), *wrong);
      if (const auto wrong = in_bounds(guarded, reference, found))
        return fmt::format("{}, {}: {}", name, test::to_string(reference.dims()), *wrong);
      if (const auto wrong = interpret_new_kernels(from.graph, executable, reference.dims(), reference.arguments()))
        return fmt::format("{}, {}: {}", name, test::to_string(reference.dims()), *wrong);
    }
  }
  return std::nullopt;
}

Complaint kernels(const Case& from) {
  std::vector<Reference> references = whole_references(from);
  for (const CpuInfo& target : {test::cpu_with(128), test::cpu_with(256), test::cpu_with(512),
                                test::cpu_with(512, {.dot_pairs = true, .slow_last_level = true, .tiles = true})}) {
    const test::ProgramInterpreter program(from.graph, target);
    for (Reference& reference : references) {
      const Outcome found = outcome([&] { return program.run(reference.arguments()); });
      if (const auto wrong = reference.complaint(found))
        return fmt::format("{} bits{}, {}: {}", target.vectors.bits, target.tiles ? " and tiles" : "",
                           test::to_string(reference.dims()), *wrong);
    }
  }
  return std::nullopt;
}

/// Compares a program within the smallest possible memory budget with one without a budget.
Complaint budget(const Case& from) {
  const CompileOptions options{.threads = 1, .cache = &compiled_kernels(), .poison = true};
  const std::optional<std::int64_t> least = test::least_budget(from.graph, options, from.sizes[0]);
  if (!least) return std::nullopt;
  Executable free = compile(from.graph, options);
  CompileOptions limited = options;
  limited.lower.memory = MemoryBudget{*least, from.sizes[0]};
  Executable within = compile(from.graph, limited);
  for (const DimBindings& dims : from.sizes) {
    const Tensors arguments = arguments_of(from, dims);
    const auto run = [&](Executable& executable) {
      return outcome([&] { return test::run_with_states(executable, arguments); });
    };
    const Outcome expected = run(free), found = run(within);
    if (expected.label != found.label)
      return fmt::format("{}: '{}' without a budget, '{}' within {} bytes", test::to_string(dims), expected.label,
                         found.label, *least);
    if (const auto wrong = differing_bits(expected, found))
      return fmt::format("{}, within {} bytes: {}", test::to_string(dims), *least, *wrong);
  }
  return std::nullopt;
}

/// Compares runs on packed copies of parameters, also of the smallest ones, with runs that pack themselves.
Complaint packed(const Case& from) {
  for (const char* name : {"host", "x86-64-v3"}) {
    CompileOptions options{.target = Target::named(name), .threads = 2, .cache = &compiled_kernels(), .poison = true};
    options.lower.least_packed = 1;
    Executable keeps = compile(from.graph, options);
    options.lower.packed_bytes = 0;
    Executable packs = compile(from.graph, options);
    for (const DimBindings& dims : from.sizes) {
      const Tensors arguments = arguments_of(from, dims);
      const auto run = [&](Executable& executable) {
        return outcome([&] { return test::run_with_states(executable, arguments); });
      };
      const Outcome expected = run(packs), found = run(keeps);
      if (expected.label != found.label)
        return fmt::format("{}, {}: '{}' without copies, '{}' with packed copies", name, test::to_string(dims),
                           expected.label, found.label);
      if (const auto wrong = differing_bits(expected, found))
        return fmt::format("{}, {}, with packed copies: {}", name, test::to_string(dims), *wrong);
    }
  }
  return std::nullopt;
}

}  // namespace

ObjectStore& compiled_kernels() {
  constexpr std::size_t most = 4096;  // so that memory use stays constant over hours
  static test::MemoryStore store;
  if (store.objects.size() > most) store.objects.clear();
  return store;
}

std::span<const Oracle> compiled_oracles() {
  static constexpr Oracle all[] = {
      {"compiled",
       "machine code agrees with the interpreter, and gives the same bits again, on three threads, and between "
       "inaccessible pages",
       compiled},
      {"exposed", "any values of the graph agree with the interpreter when they are its only outputs", exposed,
       exposures},
      {"targets", "code for x86-64-v2 and v3 agrees with the interpreter", targets},
      {"library", "a C library for x86-64-v3 has the bits of machine code in this process", in_library},
      {"packed", "packed copies of parameters do not change bits", packed},
      {"budget", "within the smallest possible memory budget, results have the same bits", budget},
      {"kernels", "kernels access only their own memory, and read nothing uninitialized", kernels},
      {"loops", "kernels for x86-64-v4 and sm_90a print the same after parsing", loops},
      {"regions", "fused graphs for x86-64-v4 and sm_90a print the same after parsing, and have the same programs",
       regions},
      {"programs",
       "programs for x86-64-v4 and sm_90a print the same after parsing, and a parsed program has the same results",
       programs},
  };
  return all;
}

}  // namespace lathe::fuzz
