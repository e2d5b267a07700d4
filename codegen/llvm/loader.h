#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lathe::codegen {

/// A function of this process that compiled kernels may call.
struct LibraryFunction {
  const char* name;
  void* address;
};

/// Compiled objects linked into this process; the code is freed with this object.
class LoadedCode {
 public:
  /// Links the objects (x86-64 ELF) with each other and with C library math functions.
  explicit LoadedCode(const std::vector<std::string>& objects);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  /// Returns the addresses in the order of the names. Throws InternalError for a name that no object defines.
  std::vector<void*> addresses(const std::vector<std::string>& names);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace lathe::codegen
