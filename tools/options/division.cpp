#include "tools/options/division.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "runtime/ranks/mpi/mpi_communicator.h"
#include "tools/options/number_option.h"
#include "tools/stop_signals.h"

namespace lathe::tools {

std::vector<shard::Split> Division::splits() const {
  return splits_text.empty() ? std::vector<shard::Split>{} : shard::parse_splits(splits_text);
}

shard::ShardOptions Division::parts() const {
  using shard::RingWay;
  using shard::SecondGather;
  return {.states = states,
          .parameters = parameters,
          .second_gather = keep_gathered  ? SecondGather::never
                           : gather_again ? SecondGather::always
                                          : SecondGather::decide,
          .ring = ring == "always"  ? RingWay::always
                  : ring == "never" ? RingWay::never
                                    : RingWay::decide};
}

std::string Division::to_string() const {
  std::string text = "--mesh " + mesh_text;
  if (!splits_text.empty()) text += " --split " + splits_text;
  if (!states.empty()) text += " --states " + states;
  if (!parameters.empty()) text += " --parameters " + parameters;
  if (keep_gathered) text += " --keep-gathered";
  if (gather_again) text += " --gather-again";
  if (ring != "auto") text += " --ring " + ring;
  return text;
}

CLI::Option* add_division(CLI::App& command, Division& division) {
  CLI::Option* mesh =
      command.add_option("--mesh", division.mesh_text,
                         "Mesh axes and their numbers of processes, such as data=4,model=2 (default: one process)");
  command
      .add_option("--split", division.splits_text,
                  "Dims and the mesh axes to split them over, such as B:data,h:model (default: none; train and "
                  "finetune choose by the names of the axes)")
      ->needs(mesh);
  command
      .add_option(
          "--states", division.states,
          "Mesh axis that shards the optimizer states: each process updates its shard of a parameter (ZeRO-1)")
      ->needs(mesh);
  command
      .add_option(
          "--parameters", division.parameters,
          "Mesh axis that shards parameters and optimizer states; parameters are gathered before use (ZeRO-3, FSDP)")
      ->needs(mesh);
  CLI::Option* keep = command
                          .add_flag("--keep-gathered", division.keep_gathered,
                                    "Keep gathered parameters for the backward pass instead of gathering them again")
                          ->needs(mesh);
  command
      .add_flag("--gather-again", division.gather_again,
                "Gather parameters again for the backward pass, even if keeping them fits in --memory-budget")
      ->needs(mesh)
      ->excludes(keep);
  command
      .add_option("--ring", division.ring,
                  "Ring attention over a split sequence, instead of gathering keys and values: always, never, or "
                  "auto (if it is faster or needed to fit in memory)")
      ->needs(mesh)
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  return mesh;
}

void add_process_options(CLI::App& command, CLI::Option* mesh, ProcessOptions& options) {
  not_negative(command.add_option(
                   "--watchdog", options.watchdog,
                   "Seconds to wait for a process that sends nothing before ending all processes; 0 waits forever"))
      ->needs(mesh)
      ->capture_default_str();
  command.add_option("--mpi", options.mpi, "MPI plugin (default: liblathe_mpi.so next to lathe)")->needs(mesh);
}

std::shared_ptr<Ranks> start_processes(const Division& division, const ProcessOptions& options,
                                       const std::string& command) {
  if (!division.is_given()) return nullptr;
  const shard::Mesh mesh = division.mesh();
  static_cast<void>(division.splits());  // throw before processes are started
  return std::make_shared<Ranks>(
      mpi_processes({.plugin = options.mpi}), mesh,
      RanksOptions{.timeout = options.watchdog,
                   .how_to_start = fmt::format("start them with the mpirun of that MPI: mpirun -n {} lathe {} {} ...",
                                               mesh.size(), command, division.to_string())});
}

void run_processes(const std::shared_ptr<Ranks>& ranks, const std::function<void()>& body) {
  if (!ranks) return body();
  try {
    body();
  } catch (const Stopped&) {
    throw;  // all processes stop
  } catch (const std::exception& error) {
    ranks->abort(error);
    throw;
  }
}

}  // namespace lathe::tools
