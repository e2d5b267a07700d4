#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "codegen/cuda/arch.h"

namespace lathe::cuda {

enum class Output { ptx, cubin };

struct Compiled {
  std::string code;  ///< PTX text, or a cubin
  std::string log;   ///< output of the compiler and of ptxas, with its resource report
};

/// NVIDIA's run-time compiler, loaded on demand. Nothing is linked, so everything else works without it. Needs no GPU
/// and no driver. Thread-safe.
class Nvrtc {
 public:
  /// Loads libnvrtc of CUDA 13 or 12. Searches these folders (and their lib and lib64), then the dynamic linker's
  /// path, then /usr/local/cuda. Throws UserError [nvrtc_missing] with the searched locations and how to install it.
  explicit Nvrtc(const std::vector<std::filesystem::path>& folders = {});
  ~Nvrtc();
  Nvrtc(Nvrtc&&) noexcept;
  Nvrtc& operator=(Nvrtc&&) noexcept;

  std::string version() const;             ///< "13.0"
  const std::string& library() const;      ///< the name or path that was loaded
  std::vector<int> architectures() const;  ///< supported architectures: 80, 90, 100, ...

  /// Compiles text that may include lathe.cuh, without contraction (-fmad=false) and with subnormals. Throws
  /// UserError [unknown_arch] if this NVRTC does not support the architecture, and InternalError with the log if the
  /// text does not compile.
  Compiled compile(const std::string& text, const std::string& name, const Arch& arch, Output output) const;

  /// Returns the options of compile(), for cache keys.
  static std::vector<std::string> options(const Arch& arch, Output output);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

/// Returns the names that Nvrtc tries, in order.
std::vector<std::string> nvrtc_candidates(const std::vector<std::filesystem::path>& folders);

}  // namespace lathe::cuda
