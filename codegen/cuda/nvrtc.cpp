#include "codegen/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <span>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "codegen/cuda/library_candidates.h"
#include "codegen/cuda/prelude/prelude.h"
#include "ir/support/error.h"

namespace lathe::cuda {

namespace {

// The C interface of nvrtc.h, which may not be installed. Results are ints; 0 is success.
using Program = void*;
constexpr int invalid_option = 5;

struct Functions {
  const char* (*error_string)(int);
  int (*version)(int*, int*);
  int (*arch_count)(int*);
  int (*archs)(int*);
  int (*create)(Program*, const char* text, const char* name, int headers, const char* const* contents,
                const char* const* names);
  int (*destroy)(Program*);
  int (*compile)(Program, int count, const char* const* options);
  int (*ptx_size)(Program, std::size_t*);
  int (*ptx)(Program, char*);
  int (*cubin_size)(Program, std::size_t*);
  int (*cubin)(Program, char*);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
};

template <class F>
bool find(void* handle, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(handle, name));
  return function != nullptr;
}

bool find_all(void* handle, Functions& f) {
  return find(handle, "nvrtcGetErrorString", f.error_string) && find(handle, "nvrtcVersion", f.version) &&
         find(handle, "nvrtcGetNumSupportedArchs", f.arch_count) && find(handle, "nvrtcGetSupportedArchs", f.archs) &&
         find(handle, "nvrtcCreateProgram", f.create) && find(handle, "nvrtcDestroyProgram", f.destroy) &&
         find(handle, "nvrtcCompileProgram", f.compile) && find(handle, "nvrtcGetPTXSize", f.ptx_size) &&
         find(handle, "nvrtcGetPTX", f.ptx) && find(handle, "nvrtcGetCUBINSize", f.cubin_size) &&
         find(handle, "nvrtcGetCUBIN", f.cubin) && find(handle, "nvrtcGetProgramLogSize", f.log_size) &&
         find(handle, "nvrtcGetProgramLog", f.log);
}

constexpr const char* names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

}  // namespace

std::vector<std::string> nvrtc_candidates(const std::vector<std::filesystem::path>& folders) {
  return library_candidates(names, folders);
}

struct Nvrtc::Library {
  void* handle = nullptr;
  Functions call = {};
  std::string name;

  ~Library() {
    if (handle) dlclose(handle);
  }

  /// Keeps the library in memory (RTLD_NODELETE): closing it would leak its per-process allocations.
  bool open(const std::string& candidate) {
    handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) return false;
    name = candidate;
    if (find_all(handle, call)) return true;
    dlclose(handle);
    handle = nullptr;
    return false;
  }

  void check(int result, std::string_view what) const {
    if (result != 0) throw InternalError(fmt::format("NVRTC: {}: {}", what, call.error_string(result)));
  }

  /// Returns a text or binary, given the functions that return its size and copy it.
  std::string fetch(Program program, int (*size)(Program, std::size_t*), int (*copy)(Program, char*)) const {
    std::size_t bytes = 0;
    check(size(program, &bytes), "the size of a result");
    std::string result(bytes, '\0');
    if (bytes > 0) check(copy(program, result.data()), "a result");
    return result;
  }
};

Nvrtc::Nvrtc(const std::vector<std::filesystem::path>& folders) : library_(std::make_unique<Library>()) {
  const std::vector<std::string> candidates = nvrtc_candidates(folders);
  if (std::any_of(candidates.begin(), candidates.end(),
                  [&](const std::string& name) { return library_->open(name); }))
    return;
  throw UserError(
      fmt::format("NVRTC, the compiler of CUDA code, is not on this machine; tried {}", fmt::join(candidates, ", ")),
      "nvrtc_missing",
      "install CUDA 12 or 13 (of it, the package cuda-nvrtc is enough, or nvidia-cuda-nvrtc of pip) and set "
      "CUDA_HOME to its folder");
}

Nvrtc::~Nvrtc() = default;
Nvrtc::Nvrtc(Nvrtc&&) noexcept = default;
Nvrtc& Nvrtc::operator=(Nvrtc&&) noexcept = default;

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  library_->check(library_->call.version(&major, &minor), "its version");
  return fmt::format("{}.{}", major, minor);
}

const std::string& Nvrtc::library() const { return library_->name; }

std::vector<int> Nvrtc::architectures() const {
  int count = 0;
  library_->check(library_->call.arch_count(&count), "its architectures");
  std::vector<int> result(static_cast<std::size_t>(count));
  library_->check(library_->call.archs(result.data()), "its architectures");
  return result;
}

std::vector<std::string> Nvrtc::options(const Arch& arch, Output output) {
  std::vector<std::string> all = {"--std=c++20", "--fmad=false", "--prec-div=true", "--prec-sqrt=true",
                                  "--ftz=false"};
  all.push_back("--gpu-architecture=" + (output == Output::ptx ? arch.virtual_name() : arch.name()));
  if (output == Output::cubin) all.push_back("--ptxas-options=-v");
  return all;
}

Compiled Nvrtc::compile(const std::string& text, const std::string& name, const Arch& arch, Output output) const {
  const std::vector<int> known = architectures();
  if (std::find(known.begin(), known.end(), arch.number) == known.end())
    throw UserError(
        fmt::format("NVRTC {} does not compile for {}, only for {}", version(), arch.name(), fmt::join(known, ", ")),
        "unknown_arch", "install a newer CUDA, or choose another architecture");
  const std::string header = prelude();
  const char *contents = header.c_str(), *header_name = prelude_name;
  Program program = nullptr;
  const auto destroy = [this](Program* p) {
    if (*p) library_->call.destroy(p);
  };
  const std::unique_ptr<Program, decltype(destroy)> guard(&program, destroy);
  const std::vector<std::string> all = options(arch, output);
  std::vector<const char*> pointers;
  for (const std::string& option : all) pointers.push_back(option.c_str());
  const auto compiled_with = [&](std::span<const char* const> given) {
    destroy(&program);
    library_->check(library_->call.create(&program, text.c_str(), name.c_str(), 1, &contents, &header_name),
                    "creating a program");
    return library_->call.compile(program, static_cast<int>(given.size()), given.data());
  };
  // With a driver, newer versions take code from its cache, and then ptxas reports nothing about it.
  pointers.push_back("--no-cache");
  int result = compiled_with(pointers);
  if (result == invalid_option) result = compiled_with(std::span(pointers).first(all.size()));
  Compiled compiled{.code = {}, .log = library_->fetch(program, library_->call.log_size, library_->call.log)};
  while (!compiled.log.empty() && compiled.log.back() == '\0') compiled.log.pop_back();
  if (result != 0)
    throw InternalError(fmt::format("NVRTC: {}: {}\n{}", name, library_->call.error_string(result), compiled.log));
  const bool ptx = output == Output::ptx;
  compiled.code = library_->fetch(program, ptx ? library_->call.ptx_size : library_->call.cubin_size,
                                  ptx ? library_->call.ptx : library_->call.cubin);
  if (ptx && !compiled.code.empty() && compiled.code.back() == '\0') compiled.code.pop_back();
  return compiled;
}

}  // namespace lathe::cuda
