#include "tools/plugins/op_libraries.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "frontend/ops/op_library.h"
#include "ir/support/error.h"

namespace lathe::tools {

namespace {

UserError refused(const std::string& path, const std::string& why, const std::string& hint) {
  return {fmt::format("--ops {}: {}", path, why), "ops_library", hint};
}

/// Opens a library. A path without a slash is a file in the current folder, not one in the system's folders.
void* open_library(const std::string& path) {
  const std::string file = path.find('/') == path.npos ? "./" + path : path;
  if (void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
  const char* const why = dlerror();
  std::error_code ignored;
  const bool exists = std::filesystem::exists(file, ignored);
  throw refused(path, why ? why : "cannot be loaded",
                exists ? "build it as a shared library with the headers of this version of Lathe (docs/custom-ops.md)"
                       : "give the path of a shared library");
}

template <class Function>
Function symbol(void* library, const std::string& path, const char* name) {
  if (void* const found = dlsym(library, name)) return reinterpret_cast<Function>(found);
  throw refused(path, fmt::format("it has no function {}", name),
                "define LATHE_OP_LIBRARY in it (docs/custom-ops.md)");
}

}  // namespace

CLI::Option* add_ops_option(CLI::App& command, std::vector<std::string>& libraries) {
  return command
      .add_option("--ops", libraries,
                  "Shared library of custom ops that the graph uses (repeatable; docs/custom-ops.md)")
      ->allow_extra_args(false);
}

ir::OpSet load_ops(const std::vector<std::string>& libraries) {
  ir::OpSet ops;
  for (const std::string& path : libraries) {
    void* const library = open_library(path);
    const auto abi = symbol<std::uint64_t (*)()>(library, path, "lathe_op_library_abi");
    const auto add = symbol<void (*)(ir::OpSet&)>(library, path, "lathe_op_library");
    if (const std::uint64_t found = abi(); found != op_library_abi())
      throw refused(path, fmt::format("its interface is {:016x}, this command's is {:016x}", found, op_library_abi()),
                    "build it again with the headers and the compiler of this version of Lathe");
    try {
      add(ops);
    } catch (const UserError& error) {
      throw error.with_note(fmt::format("in the op library {}", path));
    }
  }
  return ops;
}

}  // namespace lathe::tools
