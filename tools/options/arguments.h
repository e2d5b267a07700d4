#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/tensor/interpret/interpreter.h"
#include "passes/lowering/lower_options.h"

namespace lathe::tools {

/// Where a command takes the values of a graph's arguments from.
struct ArgumentOptions {
  std::vector<std::string> files;  ///< .safetensors, later ones first
  std::vector<std::string> dims;   ///< "n_seq=16"
  std::uint64_t seed = 0;
  bool random = false;  ///< make up what no file has
};

/// Adds FILE.safetensors options: --input, --dim, --seed and --random.
void add_argument_options(CLI::App& command, ArgumentOptions& options);

/// Where FILE is a model's directory, its weights are arguments too.
void add_weights_of(const std::string& file, ArgumentOptions& options);

/// Adds --chunk-rows auto, off or a number of rows [chunk_rows].
void add_chunk_option(CLI::App& command, std::optional<RowChunks>& chunks);
/// Of the sizes of a run those that it is compiled for alone (CompileOptions::sizes): all where --chunk-rows has a
/// number of rows, for only known sizes can be cut.
DimBindings sizes_for_chunks(const LowerOptions& options, const DimBindings& sizes);
/// Adds --require-fused, --no-fused-attention and --chunk-rows.
void add_lower_options(CLI::App& command, LowerOptions& options);
/// The sizes that --dim options give to unknown dims of the graph. UserError [dim_option].
DimBindings given_dims(const ir::Graph& graph, const std::vector<std::string>& options);

struct Arguments {
  Tensors tensors;   ///< one for each argument of the graph
  DimBindings dims;  ///< what --dim says
};

/// Every dim of the graph, as the arguments tell it.
DimBindings bound_dims(const ir::Graph& graph, const Arguments& arguments);

/// Reads, converts floats to the graph's dtypes with `cast`, and makes up the rest: floats of a size that keeps
/// values near 1, indices in the range of the tables that they index, dims that nothing tells as small primes.
/// UserError [argument_missing], [dim_option], and those of the files.
Arguments load_arguments(const ir::Graph& graph, const ArgumentOptions& options, bool cast);

}  // namespace lathe::tools
