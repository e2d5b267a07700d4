#pragma once

#include <CLI/App.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "passes/shard/mesh.h"
#include "passes/shard/shard_options.h"
#include "runtime/compile.h"
#include "runtime/train/run_settings.h"

namespace lathe::tools {

/// How a graph is divided over processes, as options say it.
struct Division {
  std::string mesh_text, splits_text;
  std::string states, parameters;
  std::string ring = "auto";                         ///< or always, never
  bool keep_gathered = false, gather_again = false;  ///< at most one; neither: the memory budget decides

  bool is_given() const { return !mesh_text.empty(); }
  shard::Mesh mesh() const { return shard::Mesh::parse(mesh_text); }
  std::vector<shard::Split> splits() const;
  shard::ShardOptions parts() const;
  /// The options again, and splits by default: "--mesh data=4 --split B:data".
  std::string to_string() const;
};
/// Adds --mesh, --split, --states, --parameters, --keep-gathered, --gather-again and --ring; gives --mesh.
CLI::Option* add_division(CLI::App& command, Division& division);

/// How the processes of a mesh find and watch each other.
struct ProcessOptions {
  std::filesystem::path mpi = {};  ///< the plugin; empty: where it is installed
  double watchdog = 600;           ///< seconds without a message; 0: no limit
};
/// Adds --watchdog and --mpi to a command that add_division() was called for.
void add_process_options(CLI::App& command, CLI::Option* mesh, ProcessOptions& options);

/// This process among those that mpirun has started for the mesh; null where none is given. UserErrors of
/// mpi_processes(), and [mesh_processes], which says by what command line they are started: `command` is "train".
std::shared_ptr<Ranks> start_processes(const Division& division, const ProcessOptions& options,
                                       const std::string& command);
/// Runs what this process does; an error that it throws ends all processes. `ranks` may be null.
void run_processes(const std::shared_ptr<Ranks>& ranks, const std::function<void()>& body);

/// Whether this process prints and writes for all: it is alone, or rank 0.
bool speaks(const std::shared_ptr<Ranks>& ranks);
/// Throws UserError [ranks_differ] where processes were started with other settings; all call it, with equal names.
void require_same_settings(const std::shared_ptr<Ranks>& ranks, const std::vector<Settings>& settings);

/// With a mesh and no splits: takes those that its axes have by default (passes/shard/plan/default_splits.h), and
/// gives a line that says which; else "".
std::string take_default_splits(Division& division, const ir::Graph& forward);

/// The options of compile() for this process: ranks, splits, parts, and threads, of which processes of one machine
/// share its CPUs where none are given.
void divide(CompileOptions& options, const Division& division, const std::shared_ptr<Ranks>& ranks);
/// The same sizes, and those of unknown dims as a process has them: B=8 is B@data=2 too.
DimBindings sizes_on_process(DimBindings sizes, const Division& division);

}  // namespace lathe::tools
