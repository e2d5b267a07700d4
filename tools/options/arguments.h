#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/options/lower_options.h"
#include "ir/tensor/interpret/interpreter.h"
#include "runtime/parameters/parameters.h"

namespace lathe::tools {

/// Sources of the values of a graph's arguments.
struct ArgumentOptions {
  std::vector<std::string> files;  ///< .safetensors; later files take precedence
  std::vector<std::string> dims;   ///< "n_seq=16"
  std::uint64_t seed = 0;
  bool random = false;  ///< use random values for arguments that are in no file
};

/// Adds FILE.safetensors options: --input, --dim, --seed and --random.
void add_argument_options(CLI::App& command, ArgumentOptions& options);

/// Adds --chunk-rows: auto, off or a number of rows. Errors: [chunk_rows].
void add_chunk_option(CLI::App& command, std::optional<RowChunks>& chunks);
/// Returns the sizes to compile for exclusively (CompileOptions::sizes): all sizes of the run if --chunk-rows is a
/// number of rows, because only known sizes can be split; otherwise none.
DimBindings sizes_for_chunks(const LowerOptions& options, const DimBindings& sizes);
/// Throws UserError [chunk_rows] if --chunk-rows is a number of rows and a dim of the graph is not in `sizes`: the
/// option would have no effect on products of that size. `dim_option` is the option that gives sizes.
void require_chunk_sizes(const LowerOptions& options, const ir::Graph& graph, const DimBindings& sizes,
                         std::string_view dim_option = "--dim");
/// Adds --require-fused, --no-fused-attention and --chunk-rows.
void add_lower_options(CLI::App& command, LowerOptions& options);
/// Parses the values of --dim or of another option with sizes, `name`. Throws UserError [dim_option].
DimBindings parse_dims(const std::vector<std::string>& options, std::string_view name = "--dim");
/// Returns the sizes of unknown dims given by such options. Throws UserError [dim_option].
DimBindings given_dims(const ir::Graph& graph, const std::vector<std::string>& options,
                       std::string_view name = "--dim");

struct Arguments {
  Tensors tensors;   ///< one per argument of the graph
  DimBindings dims;  ///< from --dim
};

/// Returns the size of every dim of the graph that follows from the arguments.
DimBindings bound_dims(const ir::Graph& graph, const Arguments& arguments);

/// Reads arguments from files and generates the rest. `weights` are values from the graph's own file, over which the
/// files of the options take precedence. With `cast`, converts floats to the graph's dtypes. Random
/// floats are scaled so that values stay near 1, and random indices are within their tables. Unknown dims become
/// small primes. Throws UserError [argument_missing], [dim_option], and the errors of the files.
Arguments load_arguments(const ir::Graph& graph, const ArgumentOptions& options, bool cast,
                         const Parameters& weights = {});

}  // namespace lathe::tools
