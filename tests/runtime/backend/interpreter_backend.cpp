#include "tests/runtime/backend/interpreter_backend.h"

#include <algorithm>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/printer.h"
#include "passes/machines/cpu_machine.h"
#include "passes/program/program_loops.h"

namespace lathe::test {

namespace {

/// Runs launches one after the other. Temporaries start with all bits set.
class InterpreterRunner : public ProgramRunner {
 public:
  explicit InterpreterRunner(const Program& program) : program_(program), constants_(constant_tensors(program)) {}

  void run(const RunArguments& arguments) override {
    const DimBindings& dims = arguments.dims;
    std::map<int, HostTensor> own = constants_;
    std::vector<std::byte*> memory;
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const ProgramBuffer& buffer = program_.buffers[b];
      const auto [tensor, is_new] =
          own.try_emplace(static_cast<int>(b), buffer.dtype, std::vector{buffer.elements.evaluate(dims)});
      memory.push_back(tensor->second.data());
      if (is_new)
        std::fill_n(memory.back(), tensor->second.bytes(), buffer.dtype == boolean ? std::byte{1} : std::byte{0xFF});
    }
    for (std::size_t i = 0; i < program_.inputs.size(); ++i)
      memory[at(program_.inputs[i])] = const_cast<std::byte*>(arguments.inputs[i]);  // kernels only read it
    for (std::size_t i = 0; i < program_.states.size(); ++i)
      memory[at(program_.states[i])] = arguments.states[i]->on_host().data();
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) memory[at(program_.outputs[i])] = arguments.outputs[i];
    run_launches(program_, dims, memory, [&](const Launch& launch) { run_launch(launch, dims, memory); });
  }

  bool only_reads(std::span<StoredTensor* const>) const override {
    return std::ranges::none_of(program_.states, &Program::Slot::is_updated);
  }
  MemoryPlan memory_plan(const DimBindings& dims) const override { return plan_memory(program_, dims); }
  std::int64_t plan(const DimBindings& dims) override { return plan_memory(program_, dims).arena_bytes; }

 private:
  static std::size_t at(const Program::Slot& slot) { return static_cast<std::size_t>(slot.buffer); }

  void run_launch(const Launch& launch, const DimBindings& dims, const std::vector<std::byte*>& memory) const {
    if (is_skipped(program_, launch, dims)) return;
    std::vector<kernel::BoundBuffer> buffers;
    for (const int b : launch.buffers) {
      const auto i = static_cast<std::size_t>(b);
      buffers.push_back({memory[i], program_.buffers[i].elements.evaluate(dims)});
    }
    std::vector<std::int64_t> sizes;
    for (const Dim& dim : launch.dims) sizes.push_back(dim.evaluate(dims));
    const kernel::Kernel& kernel = program_.kernels[static_cast<std::size_t>(launch.kernel)];
    if (const std::int64_t code = kernel::interpret(kernel, buffers, sizes); code != 0) check_status(launch, code);
  }

  const Program& program_;
  std::map<int, HostTensor> constants_;
};

class InterpreterDevice : public Device {
 public:
  Machine machine() const override {
    Machine machine = cpu_machine(unnamed_cpu());
    machine.code = {{"loops", "kernels as loop IR", "//", [](const auto& kernel) { return kernel::print(kernel); }}};
    return machine;
  }
  LoadedProgram load(const Program& program, const LoadOptions&) const override {
    return {.runner = std::make_unique<InterpreterRunner>(program),
            .compiled = static_cast<int>(program.kernels.size())};
  }
  std::string code_key(const kernel::Kernel& kernel) const override { return kernel::canonical_text(kernel); }
  std::string tuning_key() const override { return "interpreter"; }
  Claim claim() const override { return {"the interpreter", "one version", "run one build of Lathe"}; }
  bool plans_reserved_sizes() const override { return false; }
  std::string description() const override { return "the kernel interpreter"; }
  DeviceRates rates() const override { return {.unit = "f64"}; }
};

}  // namespace

Machine InterpreterBackend::machine(std::string_view) const { return InterpreterDevice().machine(); }

std::unique_ptr<Device> InterpreterBackend::open(std::string_view, const DeviceOptions&) const {
  return std::make_unique<InterpreterDevice>();
}

}  // namespace lathe::test
