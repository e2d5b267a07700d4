#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "codegen/llvm/jit.h"
#include "ir/kernel/verify/structure_rules.h"
#include "runtime/compile.h"
#include "runtime/executable_program.h"
#include "tests/support/programs/guarded_memory.h"
#include "tests/support/programs/program_interpreter.h"

namespace lathe::test {

/// Runs the machine code of an executable's kernels, launch by launch, in memory between inaccessible pages. Every
/// buffer of a launch (input, output, state, constant, temporary or scratch) has exactly its own bytes. They end at
/// an inaccessible page in a first run and begin after one in a second run. Both runs must give the same bits.
/// Buffers are aligned to their elements. Scratch and temporaries, which the runtime aligns, have the largest
/// alignment that an access of the kernel declares: up to 63 bytes may then separate their end from the page.
class GuardedProgram {
 public:
  /// `graph` and `options` are those of the call to compile(), for a CPU and one process. Kernels in `options.cache`
  /// are not compiled again.
  GuardedProgram(const ir::Graph& graph, const Executable& executable, const CompileOptions& options)
      : program_(graph, program_of(executable)),
        kernels_(codegen::Jit({.target = codegen::TargetCpu::named(options.target.name), .threads = 1}, options.cache)
                     .compile(program_.program().kernels)) {
    for (const kernel::Kernel& kernel : program_.program().kernels) alignments_.push_back(alignments_of(kernel));
  }

  /// Returns outputs by name, and every state after the run. Throws UserError [index_range] if a check fails, and
  /// InternalError if the two runs differ.
  Tensors run(const Tensors& arguments) {
    return program_.run(arguments,
                        [this](const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers,
                               std::span<const std::int64_t> dims) { return run_twice(kernel, buffers, dims); });
  }

 private:
  using Bytes = std::vector<std::byte>;

  static std::size_t bytes_of(const kernel::Kernel& kernel, std::size_t parameter,
                              const kernel::BoundBuffer& buffer) {
    return static_cast<std::size_t>(buffer.count) * size_in_bytes(kernel.buffers[parameter].dtype);
  }

  /// Returns the largest alignment in bytes that accesses of a kernel declare, by buffer; 0: that of an element.
  static std::vector<std::size_t> alignments_of(const kernel::Kernel& kernel) {
    std::vector<std::size_t> found(kernel.buffers.size());
    const auto declare = [&](kernel::BufferId buffer, int alignment) {
      if (buffer == kernel::none) return;
      std::size_t& most = found[static_cast<std::size_t>(buffer)];
      most = std::max(most, static_cast<std::size_t>(alignment));
    };
    for (const kernel::Instruction& in : kernel.values) declare(in.buffer, in.alignment);
    kernel::for_each_statement(kernel.body, [&](const kernel::Statement& statement) {
      if (const auto* store = std::get_if<kernel::Store>(&statement.node)) declare(store->buffer, store->alignment);
    });
    return found;
  }

  std::size_t index_of(const kernel::Kernel& kernel) const {
    return static_cast<std::size_t>(&kernel - program_.program().kernels.data());
  }

  std::int64_t run_twice(const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers,
                         std::span<const std::int64_t> dims) {
    std::vector<Bytes> first;
    const std::int64_t status = run_at(GuardedEdge::end, kernel, buffers, dims, first);
    if (status != 0) return status;
    std::vector<Bytes> second;
    if (run_at(GuardedEdge::start, kernel, buffers, dims, second) != 0 || first != second)
      throw InternalError("kernel " + kernel.name + ": the result depends on where its memory begins");
    for (std::size_t b = 0; b < buffers.size(); ++b)
      if (!first[b].empty()) std::memcpy(buffers[b].data, first[b].data(), first[b].size());
    return 0;
  }

  /// `results`: receives the bytes of each buffer after the run.
  std::int64_t run_at(GuardedEdge edge, const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers,
                      std::span<const std::int64_t> dims, std::vector<Bytes>& results) {
    // One buffer may be several parameters. A slice of one may start where it does, with fewer bytes.
    std::map<std::pair<const void*, std::size_t>, std::byte*> places;
    std::vector<void*> pointers;
    std::vector<GuardedMemory> memory;
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      const std::size_t bytes = bytes_of(kernel, b, buffers[b]);
      const auto [place, is_new] = places.try_emplace({buffers[b].data, bytes}, nullptr);
      if (is_new || bytes == 0) {
        memory.emplace_back(bytes + alignments_[index_of(kernel)][b]);
        place->second = memory.back().at(edge, bytes, alignments_[index_of(kernel)][b]);
        if (bytes > 0) std::memcpy(place->second, buffers[b].data, bytes);
      }
      pointers.push_back(place->second);
    }
    const codegen::CompiledKernel& code = kernels_[index_of(kernel)];
    std::int64_t status = 0;
    const std::int64_t extent = code.extent(dims.data());
    if (extent > 0) code.run(pointers.data(), dims.data(), 0, extent, &status);
    for (std::size_t b = 0; b < buffers.size(); ++b) {
      const auto* const from = static_cast<const std::byte*>(pointers[b]);
      results.emplace_back(from, from + bytes_of(kernel, b, buffers[b]));
    }
    return status;
  }

  ProgramInterpreter program_;
  codegen::CompiledKernels kernels_;
  std::vector<std::vector<std::size_t>> alignments_;  ///< by kernel and parameter
};

}  // namespace lathe::test
