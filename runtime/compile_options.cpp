#include "runtime/compile_options.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "ir/support/error.h"
#include "runtime/compile.h"
#include "runtime/ranks/mpi/mpi_communicator.h"

namespace lathe {

namespace {

template <class Value>
void require(bool holds, std::string_view option, const Value& value, std::string_view hint) {
  if (!holds) throw UserError(fmt::format("compile: {} is {}", option, value), "compile_options", hint);
}

void check_sizes(std::string_view option, const DimBindings& dims) {
  for (const auto& [dim, size] : dims)
    require(size >= 0, fmt::format("{} of the dim {}", option, dim), size, "a size is 0 or more");
}

}  // namespace

void check(const CompileOptions& options) {
  if (options.threads < 0)
    throw UserError(fmt::format("compile: {} threads", options.threads), "thread_count", "0 takes one for each CPU");
  check_sizes("reserve", options.reserve);
  check_sizes("the size", options.sizes);
  if (const auto& memory = options.lower.memory) {
    require(memory->bytes >= 0, "the memory budget", memory->bytes, "give the bytes that a run may take");
    check_sizes("the memory budget's size", memory->dims);
  }
  if (const auto& chunks = options.lower.chunks) {
    require(chunks->least_rows >= 1, "least_rows of a chunk", chunks->least_rows, "a chunk has 1 row or more");
    require(chunks->least_saved >= 0, "least_saved by chunks", chunks->least_saved, "give bytes, 0 or more");
  }
  if (!options.ranks && (!options.split.empty() || options.parts != shard::ShardOptions{})) {
    const std::string what = options.split.empty() ? "states or parameters are" : options.split[0].dim + " is";
    throw UserError(fmt::format("compile: {} split, but no processes are given", what), "mesh_processes",
                    "set CompileOptions::mesh or ranks, the processes that run the graph together");
  }
  require(options.lower.packed_bytes >= 0, "the bytes of packed parameters", options.lower.packed_bytes,
          "give 0 or more");
  require(options.lower.bucket_bytes >= 0, "the bytes of a bucket", options.lower.bucket_bytes, "give 0 or more");
  if (const auto& tune = options.tune) {
    if (options.ranks)
      throw UserError("compile: tiles are not tuned for several processes", "compile_options",
                      "compile for one process to tune");
    require(tune->seconds >= 0 && std::isfinite(tune->seconds), "the time to tune for", tune->seconds,
            "give seconds, 0 or more");
    check_sizes("the tuned size", tune->dims);
  }
}

CompileOptions spelled_out(CompileOptions options) {
  if (std::string states = std::exchange(options.shard_states, {}); !states.empty()) {
    require(options.parts.states.empty() || options.parts.states == states, "parts.states", options.parts.states,
            fmt::format("shard_states says {}: give one of both", states));
    options.parts.states = std::move(states);
  }
  if (const Mesh mesh = std::exchange(options.mesh, {}); mesh.axis_count() > 0) {
    if (!options.ranks) options.ranks = std::make_shared<Ranks>(mpi_processes(), mesh);
    require(options.ranks->mesh().axes() == mesh.axes(), "the mesh of the ranks", options.ranks->mesh().to_string(),
            fmt::format("CompileOptions::mesh is {}: give one of both", mesh.to_string()));
  }
  return options;
}

}  // namespace lathe
