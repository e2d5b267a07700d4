#include "tests/cuda/host/host_build.h"
#include "tests/support/texts/test_data.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/args.h>
#include <fmt/core.h>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "codegen/cuda/prelude/prelude.h"
#include "ir/kernel/printer.h"

namespace lathe::test {

namespace {

/// Returns a function with C linkage that unpacks the arguments and runs all threads of a launch.
std::string entry_text(const kernel::Kernel& kernel, const std::string& name) {
  std::string arguments;
  for (int i = 0; i < kernel.parameter_count(); ++i) {
    const kernel::BufferInfo& buffer = kernel.buffers[static_cast<std::size_t>(i)];
    arguments += fmt::format("static_cast<{}*>(a.buffers[{}]), ", lathe::name(buffer.dtype), i);
  }
  for (std::size_t i = 0; i < kernel.dims.size(); ++i) arguments += fmt::format("a.dims[{}], ", i);
  arguments += "a.status";
  for (std::size_t i = 0; i < kernel.maps.size(); ++i)
    arguments += fmt::format(", static_cast<const TensorMap*>(a.maps)[{}]", i);
  const std::string thread = fmt::format("{}({});", cuda::symbol_of(kernel), arguments);
  return fmt::format(R"(
namespace lathe {{
extern "C" int {}(void* const* buffers, const long long* dims, const void* maps, const long long* grid,
                  const int* block, unsigned long long seed, unsigned long long* status) {{
  Arguments all{{buffers, dims, status, maps}};
  const auto thread = [](void* p) {{ const Arguments& a = *static_cast<Arguments*>(p); (void)a; {} }};
  return shim_run({{{{grid[0], grid[1], grid[2]}}, {{block[0], block[1], block[2]}}, seed, thread, &all, {}}});
}}
}}
)",
                     name, thread, cuda::mapping_of(kernel, gpu_info("sm_80")).is_resident);
}

/// Returns the kernel's text without its #include, which is emitted once, and with extern shared memory as an array
/// of the library.
std::string kernel_text(const kernel::Kernel& kernel) {
  std::string text = cuda::emit(kernel, gpu_info("sm_80"));
  text.erase(0, text.find('\n') + 1);
  const std::string external = "extern __shared__";
  for (auto at = text.find(external); at != std::string::npos; at = text.find(external))
    text.replace(at, external.size(), "extern");
  return text;
}

}  // namespace

HostText::HostText(std::span<const kernel::Kernel> kernels)
    : text(
          "#include \"tests/cuda/shim/launch.h\"\n#include \"lathe.cuh\"\n"
          "namespace lathe { unsigned char shared_memory[1 << 18] __attribute__((section(\"cuda_shared\"), "
          "aligned(1024))); }\n"
          "struct Arguments { void* const* buffers; const long long* dims; unsigned long long* status; const void* "
          "maps; };\n") {
  for (const kernel::Kernel& given : kernels) {
    const std::string key = kernel::canonical_text(given);
    if (entries.contains(key)) continue;
    const std::string name = entries[key] = fmt::format("run_{}", entries.size());
    kernel::Kernel kernel = given;
    kernel.name = fmt::format("k{}_{}", entries.size(), given.name);
    text += kernel_text(kernel) + entry_text(kernel, name);
  }
}

std::array<std::int64_t, 3> host_grid(const kernel::Kernel& kernel, std::span<const std::int64_t> dims,
                                      std::uint64_t seed) {
  auto grid = cuda::grid_of(kernel, gpu_info("sm_80"), dims);
  if (cuda::mapping_of(kernel, gpu_info("sm_80")).is_resident)
    grid[0] = std::min(grid[0], static_cast<std::int64_t>(2 + seed % 3));
  return grid;
}

bool has_compiler() {
  const bool has = std::system("c++ --version > /dev/null 2>&1") == 0;
  if (!has) fmt::print("SKIP: CUDA text on the host wants a C++ compiler named c++\n");
  return has;
}

void build_text(const ScratchFolder& scratch, const HostText& text, const std::string& prelude,
                const std::string& commands) {
  spit(scratch / cuda::prelude_name, prelude);
  spit(scratch / "kernels.cpp", text.text);
  const std::string all =
      fmt::format(fmt::runtime("( " + commands + " ) > '{scratch}/log' 2>&1"),
                  fmt::arg("root", source_path(".").string()), fmt::arg("scratch", scratch.path().string()));
  if (std::system(all.c_str()) != 0)
    throw InternalError("CUDA text does not compile on the host:\n" + slurp(scratch / "log"));
}

}  // namespace lathe::test
