#pragma once

#include <CLI/App.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/mesh/mesh.h"
#include "ir/mesh/shard_options.h"
#include "runtime/ranks/ranks.h"

namespace lathe::tools {

/// Options for distributing a graph over processes.
struct Division {
  std::string mesh_text, splits_text;
  std::string states, parameters;
  std::string ring = "auto";                         ///< "auto", "always" or "never"
  bool keep_gathered = false, gather_again = false;  ///< at most one is set; if neither is, the memory budget decides

  bool is_given() const { return !mesh_text.empty(); }
  shard::Mesh mesh() const { return shard::Mesh::parse(mesh_text); }
  std::vector<shard::Split> splits() const;
  shard::ShardOptions parts() const;
  /// Returns the options as text: "--mesh data=4 --split B:data".
  std::string to_string() const;
};
/// Adds --mesh, --split, --states, --parameters, --keep-gathered, --gather-again and --ring. Returns --mesh.
CLI::Option* add_division(CLI::App& command, Division& division);

/// Settings for connecting and monitoring the processes of a mesh.
struct ProcessOptions {
  std::filesystem::path mpi = {};  ///< the plugin; empty: the installed one
  double watchdog = 600;           ///< seconds without a message; 0: no limit
};
/// Adds --watchdog and --mpi to a command for which add_division() was called.
void add_process_options(CLI::App& command, CLI::Option* mesh, ProcessOptions& options);

/// Connects this process to the others that mpirun started for the mesh. Returns null without a mesh. Throws
/// UserErrors of mpi_processes(), and [mesh_processes], which shows the command line to start them; `command` is for
/// example "train".
std::shared_ptr<Ranks> start_processes(const Division& division, const ProcessOptions& options,
                                       const std::string& command);
/// Runs `body`. If it throws an error, ends all processes. `ranks` may be null.
void run_processes(const std::shared_ptr<Ranks>& ranks, const std::function<void()>& body);

}  // namespace lathe::tools
