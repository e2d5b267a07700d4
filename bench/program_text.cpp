#include "bench/program_text.h"

#include <fmt/core.h>

#include <fstream>

#include "ir/kernel/printer.h"

namespace lathe::bench {

void write_text(const std::filesystem::path& file, const Program& program) {
  std::ofstream out(file);
  for (const kernel::Kernel& kernel : program.kernels)
    out << kernel.name << "\n" << kernel::canonical_text(kernel) << "\n";
  for (const ProgramBuffer& buffer : program.buffers)
    out << fmt::format("buffer {} {} {} {}\n", static_cast<int>(buffer.kind), buffer.name, name(buffer.dtype),
                       buffer.elements.to_string());
  for (const Launch& launch : program.launches) {
    out << fmt::format("launch k{} work={} flops={} bytes={}", launch.kernel, launch.work.to_string(),
                       launch.flops.to_string(), launch.bytes.to_string());
    for (const int b : launch.buffers) out << fmt::format(" b{}", b);
    for (const Dim& dim : launch.dims) out << " " << dim.to_string();
    for (const std::string& check : launch.checks) out << " check " << check;
    for (const std::string& op : launch.names()) out << " | " << op;
    out << "\n";
  }
}

}  // namespace lathe::bench
