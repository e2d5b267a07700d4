#include <fcntl.h>
#include <fmt/args.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/cuda/host/host_flags.h"
#include "tests/cuda/mock_cuda/cubin.h"

/// A libnvrtc.so.12 whose cubins are for the host: the functions of nvrtc.h that Lathe calls. It builds each kernel
/// with this machine's C++ compiler under tests/cuda/shim.
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

/// Returns the text without its #include, which is in the precompiled header, and with extern shared memory, if any,
/// as an array of the library: every block poisons all of it.
std::string host_text(const Program& program, const std::string& symbol) {
  std::string text = program.text.substr(program.text.find('\n') + 1), memory;
  const std::string external = "extern __shared__";
  for (auto at = text.find(external); at != std::string::npos; at = text.find(external)) {
    text.replace(at, external.size(), "extern");
    memory =
        "namespace lathe { unsigned char shared_memory[1 << 18] __attribute__((section(\"cuda_shared\"), "
        "aligned(1024))); }\n";
  }
  return fmt::format("{}{}\nSHIM_ENTRY(lathe::{})\n", memory, text, symbol);
}

/// Version of the files that kernels are linked with; cached libraries of another version are not used.
std::size_t shim_number() {
  std::string all;
  std::istringstream files(LATHE_SHIM_FIBERS);
  for (std::string file; files >> file;) all += read(file);
  return std::hash<std::string>()(all);
}

/// While alive, no other process builds the folder.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder)
      : file_(open((folder.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)),
        is_held_(file_ >= 0 && flock(file_, LOCK_EX) == 0) {}
  ~FolderLock() {
    if (file_ >= 0) close(file_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  bool is_held() const { return is_held_; }

 private:
  int file_;
  bool is_held_;
};

/// Runs a command of host_flags.h in a folder; returns false with its output in `log`.
bool run(const std::string& command, const fs::path& folder, std::string& log) {
  const std::string all = fmt::format(fmt::runtime("( " + command + " ) > '{scratch}/log' 2>&1"),
                                      fmt::arg("root", LATHE_SOURCE_ROOT), fmt::arg("scratch", folder.string()));
  if (std::system(all.c_str()) == 0) return true;
  log = read(folder / "log");
  return false;
}

fs::path folder_of(const std::string& contents) {
  return fs::path(LATHE_MOCK_KERNELS) / fmt::format("{:016x}", std::hash<std::string>()(contents));
}

/// Returns a folder in which start.h is precompiled: the shim and the prelude, which take most of the time to compile
/// a kernel. Compilers do not check whether the files of a precompiled header have changed, so their text chooses the
/// folder. Returns an empty path with the compiler's log in `log` if it does not compile.
fs::path start_folder(const std::string& prelude, std::string& log) {
  std::string contents = prelude;
  for (const char* header : {"launch.h", "cuda_shim.h", "tensor_map.h", "block.h"})
    contents += read(fs::path(LATHE_SOURCE_ROOT) / "tests/cuda/shim" / header);
  const fs::path folder = folder_of(contents);
  const FolderLock lock(folder);
  if (!lock.is_held()) return {};
  if (fs::exists(folder / "start.h.gch")) return folder;
  fs::create_directories(folder);
  std::ofstream(folder / "lathe.cuh") << prelude;
  std::ofstream(folder / "start.h") << "#include \"tests/cuda/shim/launch.h\"\n#include \"lathe.cuh\"\n";
  if (!run(LATHE_HOST_COMPILER "-x c++-header '{scratch}/start.h' -o '{scratch}/made.gch'", folder, log)) return {};
  fs::rename(folder / "made.gch", folder / "start.h.gch");
  return folder;
}

/// Builds a kernel's library in a folder; returns false with the compiler's log in `log`.
bool build(const fs::path& folder, const std::string& text, const std::string& prelude, std::string& log) {
  const fs::path start = start_folder(prelude, log);
  if (start.empty()) return false;
  fs::create_directories(folder);
  std::ofstream(folder / "kernel.cpp") << text;
  if (!run(LATHE_HOST_BUILD("kernel.cpp", "made.so") " -include '" + (start / "start.h").string() + "'", folder, log))
    return false;
  fs::rename(folder / "made.so", folder / "kernel.so");
  return true;
}

/// One process builds a kernel; others wait for it and use the result, because ranks compile the same kernels at the
/// same time.
int compile(Program& program) {
  const std::string symbol = program.name.substr(0, program.name.find('.'));
  const std::string text = host_text(program, symbol);
  fs::create_directories(LATHE_MOCK_KERNELS);
  const fs::path folder = folder_of(fmt::format("{}\n{}\n{}", shim_number(), program.prelude, text));
  const FolderLock lock(folder);
  if (!lock.is_held()) return compilation;
  if (!fs::exists(folder / "kernel.so") && !build(folder, text, program.prelude, program.log)) return compilation;
  program.cubin = pack_cubin(read(folder / "kernel.so"));
  program.log =
      "ptxas info    : Compiling entry function '" + symbol + "' for 'sm_90a'\nptxas info    : Used 1 registers\n";
  return success;
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
  *major = 0;
  *minor = static_cast<int>(shim_number() >> 33);
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
/// Like the real NVRTC: ptxas prints nothing for a program that was compiled before, also by another process, unless
/// the cache is disabled.
int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
  const bool looks =
      std::none_of(options, options + count, [](std::string_view option) { return option == "--no-cache"; });
  const int result = compile(*program);
  if (looks) program->log.clear();
  return result;
}
int nvrtcGetPTXSize(Program*, std::size_t* size) { return give_size(size, ""); }
int nvrtcGetPTX(Program*, char*) { return success; }
int nvrtcGetCUBINSize(Program* program, std::size_t* size) { return give_size(size, program->cubin); }
int nvrtcGetCUBIN(Program* program, char* to) { return give(to, program->cubin); }
int nvrtcGetProgramLogSize(Program* program, std::size_t* size) { return give_size(size, program->log); }
int nvrtcGetProgramLog(Program* program, char* to) { return give(to, program->log); }
}
