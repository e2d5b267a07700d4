#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ir/options/init.h"
#include "ir/options/lower_options.h"
#include "ir/support/dim.h"
#include "ir/support/object_store.h"
#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"

namespace lathe {

/// A graph of a library.
struct LibraryGraph {
  std::string name;  ///< part of its functions' names, such as "prompt" in gpt2_prompt_run; empty: the only graph
  ir::Graph graph;
};

struct LibraryOptions {
  std::string prefix;  ///< of all symbols and types: a C identifier
  /// CPU levels, or architectures of GPUs such as "cuda:sm_90a", lowest first. The library uses the last one that the
  /// machine supports.
  std::vector<std::string> targets = {"x86-64-v3"};
  /// Largest sizes of the dims that stay unknown until a call. Memory is planned for them once.
  DimBindings most = {};
  /// Sizes of dims that become numbers.
  DimBindings sizes = {};
  bool evaluation = false;  ///< no dropout
  LowerOptions lower = {};  ///< but for packed_bytes
  /// Maximum bytes of packed copies of parameters, as LowerOptions::packed_bytes. With copies, the library has a
  /// function `pack` for each graph, which writes them into memory of the caller, and calls take that memory as the
  /// input `packed_weights`. After a parameter has changed, the caller packs again. 0: each run packs.
  std::int64_t packed_bytes = 0;
  /// Initial values of parameters and states by name, for the function `init`. Parameters without one have those of
  /// Init::automatic(), and states are zeros.
  std::vector<Initializer> initializers = {};
  /// Values of parameters that become part of the library, read only. The caller has no pointers to them.
  Tensors embedded = {};
  int threads = 0;  ///< that compile; 0: one per CPU
  /// For GPUs: folders with NVRTC, searched first, and a store of compiled kernels, which may be null.
  std::vector<std::filesystem::path> cuda_folders = {};
  ObjectStore* cache = nullptr;
};

/// A file of a library.
struct LibraryFile {
  std::string name;
  std::string bytes;
};

/// A graph as C functions: the files of a library.
struct EmittedLibrary {
  std::string init;                  ///< symbol of the function `init`, which the header renames
  LibraryFile header;                ///< C99 and C++
  std::vector<LibraryFile> objects;  ///< ELF: one with the interface, and one per level
  LibraryFile archive;               ///< the objects as a static library
  std::int64_t packed_bytes = 0;     ///< of the packed weights of all graphs
  LibraryFile sources;               ///< text: the kernels of each level, with their ops and source lines
};

}  // namespace lathe
