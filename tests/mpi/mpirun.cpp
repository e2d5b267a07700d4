#include "tests/mpi/mpirun.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace lathe::test {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Other MPIs do not need these options, and do not accept them.
bool is_open_mpi() {
  static const bool is = [] {
    const Scratch scratch;
    run({.words = {LATHE_MPIRUN, "--version"},
         .environment = {},
         .out = scratch.path("out"),
         .limits = {},
         .user = {}});
    return scratch.read("out").find("open-mpi.org") != std::string::npos;
  }();
  return is;
}

/// Ignore memory that MPI itself does not free.
const std::map<std::string, std::string> surroundings{{"LSAN_OPTIONS", "detect_leaks=0"}};

/// The state letter of a process, and its parent.
struct State {
  char letter = 0;
  pid_t parent = 0;
};
std::optional<State> state_of(const std::string& process) {
  std::ifstream file("/proc/" + process + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // "12 (name) S 1 ...", where the name may contain any character
  std::istringstream rest(line.substr(line.rfind(')') + 1));
  State state;
  if (!(rest >> state.letter >> state.parent)) return std::nullopt;
  return state;
}

/// Returns the parent of each process.
std::map<pid_t, pid_t> parents() {
  std::map<pid_t, pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (const auto state = state_of(name)) found[std::stoi(name)] = state->parent;
  }
  return found;
}

}  // namespace

bool has_mpi() {
  const bool has = *LATHE_MPIRUN != 0 && *LATHE_MPI_PLUGIN != 0;
  if (!has) WARN("SKIP: there is no MPI: install one (Debian: libopenmpi-dev openmpi-bin) and configure again");
  return has;
}

std::vector<std::string> mpirun(int processes) {
  std::vector<std::string> words{LATHE_MPIRUN};
  if (is_open_mpi())
    words.insert(words.end(), {"--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "--mca",
                               "btl_vader_single_copy_mechanism", "none", "--mca", "btl", "self,vader", "--mca",
                               "mpi_yield_when_idle", "0"});
  words.insert(words.end(), {"-n", std::to_string(processes)});
  return words;
}

RanMany run_many(const Scratch& scratch, const Command& command) {
  const auto start = Clock::now();
  RanMany ran{.ending = run(command), .out = {}, .err = {}};
  ran.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  ran.out = scratch.read("out");
  ran.err = scratch.read("err");
  return ran;
}

RanMany run_body(int processes, const std::string& name) {
  const Scratch scratch;
  std::vector<std::string> words = mpirun(processes);
  words.insert(words.end(), {LATHE_MPI_BODY, LATHE_MPI_PLUGIN, name});
  return run_many(scratch, {.words = words,
                            .environment = surroundings,
                            .out = scratch.path("out"),
                            .err = scratch.path("err"),
                            .limits = {},
                            .user = {}});
}

Command command_of(const Scratch& scratch, int processes, const std::vector<std::string>& words) {
  std::vector<std::string> all = processes > 0 ? mpirun(processes) : std::vector<std::string>{};
  all.emplace_back(LATHE_BINARY);
  all.insert(all.end(), words.begin(), words.end());
  std::map<std::string, std::string> environment = surroundings;
  environment["LATHE_CACHE_DIR"] = kernel_folder().string();
  return {.words = all,
          .folder = scratch.path(""),
          .environment = environment,
          .out = scratch.path("out"),
          .err = scratch.path("err"),
          .limits = {},
          .user = {}};
}

RanMany run_many(const Scratch& scratch, int processes, const std::vector<std::string>& words) {
  return run_many(scratch, command_of(scratch, processes, words));
}

void run_before(const Scratch& scratch, Command& command, const std::string& lines) {
  // OpenMPI and MPICH have different variables for the rank.
  const std::string script =
      scratch.write("start.sh", "rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}\n" + lines + "\nexec \"$@\"\n");
  const auto program = std::ranges::find(command.words, std::string(LATHE_BINARY));
  command.words.insert(program, {"/bin/sh", script});
}

bool is_running(pid_t process) {
  const auto state = state_of(std::to_string(process));
  return state && state->letter != 'Z' && state->letter != 'X';
}

std::vector<pid_t> descendants(pid_t process, const std::string& program) {
  const auto all = parents();
  std::vector<pid_t> found;
  for (const auto& [id, parent] : all) {
    pid_t above = parent;
    while (above != process && all.contains(above)) above = all.at(above);
    std::error_code ignored;
    if (above == process && fs::read_symlink("/proc/" + std::to_string(id) + "/exe", ignored).filename() == program)
      found.push_back(id);
  }
  return found;
}

}  // namespace lathe::test
