#include "tests/cuda/host_cuda.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/core.h>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "ir/kernel/printer.h"
#include "ir/support/error.h"
#include "tests/runtime/files_scratch.h"

namespace lathe::test {

namespace {

/// A function with C linkage that unpacks the arguments and runs all threads of a launch.
std::string entry_text(const kernel::Kernel& kernel, const std::string& name) {
  std::string arguments;
  for (int i = 0; i < kernel.parameter_count(); ++i) {
    const kernel::BufferInfo& buffer = kernel.buffers[static_cast<std::size_t>(i)];
    arguments += fmt::format("static_cast<{}*>(a.buffers[{}]), ", lathe::name(buffer.dtype), i);
  }
  for (std::size_t i = 0; i < kernel.dims.size(); ++i) arguments += fmt::format("a.dims[{}], ", i);
  const std::string thread = fmt::format("{}({}a.status);", cuda::symbol_of(kernel), arguments);
  return fmt::format(R"(
namespace lathe {{
extern "C" int {}(void* const* buffers, const long long* dims, const long long* grid, const int* block,
                  unsigned long long seed, unsigned long long* status) {{
  Arguments all{{buffers, dims, status}};
  const auto thread = [](void* p) {{ const Arguments& a = *static_cast<Arguments*>(p); (void)a; {} }};
  return shim_run({{{{grid[0], grid[1], grid[2]}}, {{block[0], block[1], block[2]}}, seed, thread, &all}});
}}
}}
)",
                     name, thread);
}

/// Without its #include, which stands once, and with extern shared memory as an array of the library.
std::string kernel_text(const kernel::Kernel& kernel) {
  std::string text = cuda::emit(kernel);
  text.erase(0, text.find('\n') + 1);
  const std::string external = "extern __shared__";
  for (auto at = text.find(external); at != std::string::npos; at = text.find(external))
    text.replace(at, external.size(), "extern");
  return text;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
}

}  // namespace

std::optional<HostCuda> HostCuda::build(std::span<const kernel::Kernel> kernels, const std::string& prelude) {
#ifndef __x86_64__
  fmt::print("SKIP: CUDA text on the host wants an x86-64 processor\n");
  return std::nullopt;
#endif
  if (std::system("c++ --version > /dev/null 2>&1") != 0) {
    fmt::print("SKIP: CUDA text on the host wants a C++ compiler named c++\n");
    return std::nullopt;
  }
  const ScratchFolder scratch;
  std::map<std::string, std::string> names;  // by canonical text
  std::string text = "#include \"tests/cuda/shim/launch.h\"\n#include \"lathe.cuh\"\n";
  text +=
      "namespace lathe { unsigned char shared_memory[1 << 18] __attribute__((section(\"cuda_shared\"), "
      "aligned(1024))); }\n";
  text += "struct Arguments { void* const* buffers; const long long* dims; unsigned long long* status; };\n";
  for (const kernel::Kernel& given : kernels) {
    const std::string key = kernel::canonical_text(given);
    if (names.contains(key)) continue;
    const std::string name = names[key] = fmt::format("run_{}", names.size());
    kernel::Kernel kernel = given;
    kernel.name = fmt::format("k{}_{}", names.size(), given.name);
    text += kernel_text(kernel) + entry_text(kernel, name);
  }
  write_file(scratch.path() / cuda::prelude_name, prelude);
  write_file(scratch.path() / "kernels.cpp", text);
  const std::string root = LATHE_TEST_DATA "/..", library = (scratch.path() / "kernels.so").string();
  const std::string log = (scratch.path() / "log").string();
  const std::string command = fmt::format(
      "c++ -std=c++20 -O0 -w -ffp-contract=off -fno-strict-aliasing -shared -fPIC -I'{0}' -I'{1}' '{1}/kernels.cpp' "
      "'{0}/tests/cuda/shim/fibers.cpp' '{0}/tests/cuda/shim/machine.cpp' '{0}/tests/cuda/shim/warp_groups.cpp' -o "
      "'{2}' > '{3}' 2>&1",
      root, scratch.path().string(), library, log);
  if (std::system(command.c_str()) != 0) {
    std::ifstream in(log);
    throw InternalError("CUDA text does not compile on the host:\n" +
                        std::string(std::istreambuf_iterator<char>(in), {}));
  }
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw InternalError(fmt::format("the kernels do not load: {}", dlerror()));
  HostCuda result;
  for (const auto& [key, name] : names) result.entries_[key] = reinterpret_cast<Entry>(dlsym(handle, name.c_str()));
  return result;
}

std::int64_t HostCuda::run(const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers,
                           std::span<const std::int64_t> dims, std::uint64_t seed) const {
  const auto entry = entries_.find(kernel::canonical_text(kernel));
  LATHE_ASSERT(entry != entries_.end() && entry->second);
  std::vector<void*> pointers;
  for (const kernel::BoundBuffer& buffer : buffers) pointers.push_back(buffer.data);
  const auto grid = cuda::grid_of(kernel, dims);
  const cuda::Mapping mapping = cuda::mapping_of(kernel);
  const long long blocks[] = {grid[0], grid[1], grid[2]};
  unsigned long long status = 0;
  if (entry->second(pointers.data(), dims.data(), blocks, mapping.threads.data(), seed, &status) != 0)
    throw InternalError(
        fmt::format("kernel {}: threads of a block finish while others wait at a barrier", kernel.name));
  return static_cast<std::int64_t>(status);
}

}  // namespace lathe::test
