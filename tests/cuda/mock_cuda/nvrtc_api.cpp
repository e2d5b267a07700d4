#include <fmt/args.h>
#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "tests/cuda/host/host_flags.h"
#include "tests/cuda/mock_cuda/cubin.h"

/// A libnvrtc.so.12 whose cubins are for the host: the functions of nvrtc.h that Lathe calls. This machine's C++
/// compiler builds each kernel under tests/cuda/shim.
namespace lathe::test::mock {

namespace fs = std::filesystem;

constexpr int success = 0, compilation = 6;

struct Program {
  std::string text, name, prelude, cubin, log;
};

namespace {

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Without its #include, which stands once, and with extern shared memory as an array of the library.
std::string host_text(const Program& program, const std::string& symbol) {
  std::string text = program.text.substr(program.text.find('\n') + 1);
  const std::string external = "extern __shared__";
  for (auto at = text.find(external); at != std::string::npos; at = text.find(external))
    text.replace(at, external.size(), "extern");
  return fmt::format(
      "#include \"tests/cuda/shim/entry.h\"\n#include \"lathe.cuh\"\n"
      "namespace lathe {{ unsigned char shared_memory[1 << 18] __attribute__((section(\"cuda_shared\"), "
      "aligned(1024))); }}\n{}\nSHIM_ENTRY(lathe::{})\n",
      text, symbol);
}

int compile(Program& program) {
  std::string folder = (fs::temp_directory_path() / "mock_nvrtc_XXXXXX").string();
  if (!mkdtemp(folder.data())) return compilation;
  const std::string symbol = program.name.substr(0, program.name.find('.'));
  std::ofstream(fs::path(folder) / "lathe.cuh") << program.prelude;
  std::ofstream(fs::path(folder) / "kernel.cpp") << host_text(program, symbol);
  const std::string command =
      fmt::format("( " LATHE_HOST_BUILD("kernel.cpp", "kernel.so") " ) > '{scratch}/log' 2>&1",
                  fmt::arg("root", LATHE_SOURCE_ROOT), fmt::arg("scratch", folder));
  const int result = std::system(command.c_str()) == 0 ? success : compilation;
  program.log = result == success ? "ptxas info    : Compiling entry function '" + symbol +
                                        "' for 'sm_90a'\nptxas info    : Used 1 registers\n"
                                  : read(fs::path(folder) / "log");
  if (result == success) program.cubin = pack_cubin(read(fs::path(folder) / "kernel.so"));
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return result;
}

/// Of what kernels are linked with: what is cached of one version is of no use to another.
int shim_number() {
  std::uint32_t hash = 2166136261U;
  std::istringstream files(LATHE_SHIM_FIBERS);
  for (std::string file; files >> file;)
    for (const char c : read(file)) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return static_cast<int>(hash >> 1);
}

int give_size(std::size_t* size, const std::string& text) {
  *size = text.size();
  return success;
}
int give(char* to, const std::string& text) {
  text.copy(to, text.size());
  return success;
}

}  // namespace

}  // namespace lathe::test::mock

using namespace lathe::test::mock;  // NOLINT(google-build-using-namespace)

extern "C" {

const char* nvrtcGetErrorString(int) { return "the host's compiler says:"; }
int nvrtcVersion(int* major, int* minor) {
  static const int number = shim_number();
  *major = 0;
  *minor = number;
  return success;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return success;
}
int nvrtcGetSupportedArchs(int* archs) {
  archs[0] = 80;
  archs[1] = 90;
  return success;
}
int nvrtcCreateProgram(Program** program, const char* text, const char* name, int headers,
                       const char* const* contents, const char* const*) {
  *program =
      new Program{.text = text, .name = name, .prelude = headers > 0 ? contents[0] : "", .cubin = {}, .log = {}};
  return success;
}
int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return success;
}
int nvrtcCompileProgram(Program* program, int, const char* const*) { return compile(*program); }
int nvrtcGetPTXSize(Program*, std::size_t* size) { return give_size(size, ""); }
int nvrtcGetPTX(Program*, char*) { return success; }
int nvrtcGetCUBINSize(Program* program, std::size_t* size) { return give_size(size, program->cubin); }
int nvrtcGetCUBIN(Program* program, char* to) { return give(to, program->cubin); }
int nvrtcGetProgramLogSize(Program* program, std::size_t* size) { return give_size(size, program->log); }
int nvrtcGetProgramLog(Program* program, char* to) { return give(to, program->log); }
}
