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
  std::string log;   ///< of the compiler and of ptxas, with its resource report
};

/// NVIDIA's run-time compiler, found when it is asked for: nothing is linked, and a machine without it runs all else.
/// It needs no GPU and no driver. May be used by several threads at once.
class Nvrtc {
 public:
  /// Loads libnvrtc of CUDA 13 or 12: from these folders (and their lib and lib64) first, then by the dynamic
  /// linker's own search, then from /usr/local/cuda. UserError [nvrtc_missing] tells where it looked and how to get
  /// it.
  explicit Nvrtc(const std::vector<std::filesystem::path>& folders = {});
  ~Nvrtc();
  Nvrtc(Nvrtc&&) noexcept;
  Nvrtc& operator=(Nvrtc&&) noexcept;

  std::string version() const;             ///< "13.0"
  const std::string& library() const;      ///< the name or path that it was loaded by
  std::vector<int> architectures() const;  ///< 80, 90, 100, ...: those it compiles for

  /// Compiles text that may include lathe.cuh. Nothing is contracted (-fmad=false), subnormals stay. UserError
  /// [unknown_arch] where this NVRTC does not know the architecture; InternalError with the log where the text does
  /// not compile.
  Compiled compile(const std::string& text, const std::string& name, const Arch& arch, Output output) const;

  /// What compile() passes, as part of cache keys.
  static std::vector<std::string> options(const Arch& arch, Output output);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

/// The names that Nvrtc tries, in order.
std::vector<std::string> nvrtc_candidates(const std::vector<std::filesystem::path>& folders);

}  // namespace lathe::cuda
