#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "ir/options/lower_options.h"
#include "tools/inputs/files.h"

namespace lathe::tools {

/// Options of `lathe compile`.
struct EmitOptions {
  std::vector<std::string> files;
  GraphSource source;
  std::string output, target, emit;
  int threads = 2;
  LowerOptions lower;
  // Of a C library:
  std::string prefix;
  std::vector<std::string> most, dims, weights;
  std::string part = "logits", dtype = "f32";
  bool evaluation = false, embed_weights = false;
  std::int64_t packed_bytes = 0;
};

/// Writes CUDA C++, its header, PTX or cubins. Throws UserError [usage] for several graphs.
void write_cuda_files(const EmitOptions& options);
/// Writes the files of a C library that `--emit` lists. Throws UserErrors of emit_library().
void write_library_files(const EmitOptions& options);

/// Returns the values of --emit, which are separated by commas.
std::set<std::string> emitted_kinds(const std::string& list);

}  // namespace lathe::tools
