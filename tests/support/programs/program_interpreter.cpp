#include "tests/support/programs/program_interpreter.h"

#include <cstring>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/support/error.h"
#include "ir/tensor/binding.h"
#include "passes/pipeline/pipeline.h"
#include "passes/program/program_loops.h"
#include "passes/program/signature.h"
#include "tests/support/programs/lower.h"

namespace lathe::test {

namespace {

/// Returns memory for exactly these elements, with all bits set.
HostTensor poisoned(DType dtype, std::vector<std::int64_t> sizes) {
  HostTensor tensor(dtype, std::move(sizes));
  if (tensor.bytes() > 0) std::memset(tensor.data(), dtype == boolean ? 1 : 0xFF, tensor.bytes());
  return tensor;
}

/// Returns the memory of every buffer of a program for one run.
std::vector<HostTensor> bind_buffers(const Program& program, const Tensors& arguments, const DimBindings& dims) {
  std::vector<HostTensor> memory;
  for (const ProgramBuffer& buffer : program.buffers) {
    const std::int64_t count = buffer.elements.evaluate(dims);
    switch (buffer.kind) {
      case ProgramBuffer::Kind::input:
      case ProgramBuffer::Kind::state: memory.push_back(arguments.at(buffer.name)); break;
      case ProgramBuffer::Kind::constant:
        memory.push_back(HostTensor::from_numbers({count}, buffer.data, buffer.dtype));
        break;
      case ProgramBuffer::Kind::output:
      case ProgramBuffer::Kind::kept:
      case ProgramBuffer::Kind::scratch:
      case ProgramBuffer::Kind::temporary: memory.push_back(poisoned(buffer.dtype, {count})); break;
      case ProgramBuffer::Kind::slice: memory.emplace_back(buffer.dtype, std::vector<std::int64_t>{0}); break;
    }
  }
  return memory;
}

/// Runs the iterations of the parallel loop, the second half first.
std::int64_t interpret_halves(const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers,
                              std::span<const std::int64_t> sizes) {
  const std::int64_t extent = kernel::extent(kernel, sizes), middle = extent / 2;
  for (const auto& [begin, end] : {std::pair{middle, extent}, std::pair{std::int64_t{0}, middle}}) {
    if (begin >= end) continue;
    const std::int64_t code = kernel::interpret(kernel, buffers, sizes, {.begin = begin, .end = end});
    if (code != 0) return code;
  }
  return 0;
}

void run_launch(const Program& program, const Launch& launch, const DimBindings& dims,
                const std::vector<std::byte*>& where, const ProgramInterpreter::RunKernel& run_kernel) {
  if (is_skipped(program, launch, dims)) return;
  const kernel::Kernel& kernel = program.kernels[static_cast<std::size_t>(launch.kernel)];
  std::vector<kernel::BoundBuffer> buffers;
  for (const int b : launch.buffers) {
    const auto at = static_cast<std::size_t>(b);
    buffers.push_back({where[at], program.buffers[at].elements.evaluate(dims)});
  }
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : launch.dims) sizes.push_back(dim.evaluate(dims));
  const std::int64_t code = run_kernel(kernel, buffers, sizes);
  if (code != 0) throw UserError(launch.checks.at(static_cast<std::size_t>(code - 1)), "index_range", "");
}

}  // namespace

ProgramInterpreter::ProgramInterpreter(const ir::Graph& graph, const CpuInfo& cpu)
    : ProgramInterpreter(graph, [&](const ir::Graph& primitives, const LowerOptions& options) {
        cpu::CpuSizes sizes = cpu::cpu_sizes(cpu);
        sizes.products.limits.split_unknown_rows = 3;  // so that small sizes run both alternatives
        return lathe::lower(primitives, cpu_machine(cpu, sizes), options);
      }) {}

ProgramInterpreter::ProgramInterpreter(const ir::Graph& graph,
                                       const std::function<Program(const ir::Graph&, const LowerOptions&)>& lower,
                                       const LowerOptions& options)
    : signature_(signature_of(graph)),
      program_(lower(ir::run_pipeline(graph, ir::default_pipeline()).graph, options)) {
  set_user_types(program_, graph);
}

ProgramInterpreter::ProgramInterpreter(const ir::Graph& graph, Program program)
    : signature_(signature_of(graph)), program_(std::move(program)) {}

Tensors ProgramInterpreter::run(const Tensors& arguments) const { return run(arguments, interpret_halves); }

Tensors ProgramInterpreter::run(const Tensors& arguments, const RunKernel& run_kernel) const {
  std::map<std::string, ir::ArgumentShape> shapes;
  for (const auto& [name, tensor] : arguments) shapes[name] = {tensor.dtype(), tensor.shape()};
  const DimBindings dims = ir::bind_dims(signature_, shapes);
  std::vector<HostTensor> memory = bind_buffers(program_, arguments, dims);
  std::vector<std::byte*> where;
  for (HostTensor& tensor : memory) where.push_back(tensor.data());
  run_launches(program_, dims, where,
               [&](const Launch& launch) { run_launch(program_, launch, dims, where, run_kernel); });
  Tensors results;
  for (const auto* slots : {&program_.outputs, &program_.states})
    for (const Program::Slot& slot : *slots) {
      HostTensor value(slot.dtype, slot.shape.evaluate(dims));
      const HostTensor& from = memory[static_cast<std::size_t>(slot.buffer)];
      if (value.bytes() > 0) std::memcpy(value.data(), from.data(), value.bytes());
      results.insert_or_assign(slot.name, std::move(value));
    }
  return results;
}

}  // namespace lathe::test
