#include <sys/stat.h>

#include "tests/support/programs/process.h"
#include "tests/tools/command.h"

using namespace lathe;
using Catch::Matchers::Contains;
using test::Ending;
using test::run_lathe;
using test::Scratch;
namespace fs = std::filesystem;

namespace {

Ending run_with(const Scratch& scratch, std::vector<std::string> words, const std::string& in, const std::string& out,
                const std::string& err) {
  words.insert(words.begin(), LATHE_BINARY);
  return test::run({.words = std::move(words),
                    .folder = scratch.path(""),
                    .environment = {{"LATHE_CACHE_DIR", scratch.cache()}},
                    .in = in,
                    .out = out,
                    .err = err,
                    .limits = {},
                    .user = {}});
}

/// Returns the bytes that a command writes to the FIFO "pipe".
std::string written_to_pipe(const Scratch& scratch, const std::string& arguments) {
  test::Process reader({.words = {"/bin/cat", "pipe"},
                        .folder = scratch.path(""),
                        .environment = {},
                        .out = scratch.path("read"),
                        .limits = {},
                        .user = {}});
  CHECK(run_lathe(scratch, arguments).status == 0);
  CHECK(reader.wait_for(std::chrono::seconds(60)) == Ending{});
  return scratch.read("read");
}

}  // namespace

TEST_CASE("closed or full standard streams end in status 1, not in a signal", "[tools]") {
  const Scratch scratch;
  scratch.write("small.lathe", test::small_program);
  const std::string good = scratch.path("good"), none = "closed", full = "/dev/full";
  // A command without output needs no stream.
  for (const std::string& stream : {good, none, full}) {
    INFO(stream);
    CHECK(run_with(scratch, {"opt", "small.lathe", "-o", "copy.lathe"}, none, stream, stream) == Ending{});
  }
  for (const std::string& stream : {none, full}) {
    INFO(stream);
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"dump", "small.lathe"},
          {"explain", "small.lathe"},
          {"--help"},
          {"--version"},
          {"run", "small.lathe", "--random", "--dim", "n=3"},
          {"model", "gpt"},
          {"opt", "--list"},
          {"doctor"},
          {"train", "--text", "small.lathe", "-o", "run", "--steps", "1", "--layers", "1", "--d-model", "8",
           "--heads", "1", "--context", "8", "--sample", "0"}}) {
      INFO(words[0]);
      CHECK(run_with(scratch, words, "/dev/null", stream, good) == Ending{.status = 1});
      CHECK_THAT(scratch.read("good"), Contains("standard output cannot be written"));
    }
    // An error that cannot be printed still sets the exit status; so does a report that cannot be printed.
    CHECK(run_with(scratch, {"dump", "nowhere.lathe"}, "/dev/null", good, stream) == Ending{.status = 1});
    CHECK(run_with(scratch, {"opt", "--times", "small.lathe"}, "/dev/null", good, stream) == Ending{.status = 1});
    CHECK(run_with(scratch, {"nonsense"}, "/dev/null", good, stream) == Ending{.status = 2});
  }
  for (const std::string& in : {none, scratch.path("")}) {
    CHECK(run_with(scratch, {"dump", "-"}, in, good, scratch.path("err")) == Ending{.status = 1});
    CHECK_THAT(scratch.read("err"), Contains("cannot read standard input"));
  }
}

TEST_CASE("a closed standard stream does not receive an opened file", "[tools]") {
  const Scratch scratch;
  scratch.write("small.lathe", test::small_program);
  // If descriptor 1 or 2 were free, the output file would get it, and printed text would end up in the file.
  CHECK(run_with(scratch, {"run", "small.lathe", "--random", "--dim", "n=3", "-o", "out.safetensors"}, "closed",
                 "closed", "closed") == Ending{});
  CHECK(run_lathe(scratch, "run small.lathe --random --dim n=3 -o again.safetensors").status == 0);
  CHECK(scratch.read("out.safetensors") == scratch.read("again.safetensors"));
}

TEST_CASE("a reader that closes its pipe ends a command quietly, with the status of SIGPIPE", "[tools]") {
  const Scratch scratch;
  CHECK(run_lathe(scratch, "model gpt --layers 24 --step -o step.lathe").status == 0);
  for (const std::string command : {"model gpt --layers 24 --step", "dump step.lathe", "explain step.lathe"}) {
    INFO(command);
    const std::string pipeline = "( '" LATHE_BINARY "' " + command + " 2>errors; echo $? >status ) | sed 1q >first";
    CHECK(test::run({.words = {"/bin/sh", "-c", pipeline},
                     .folder = scratch.path(""),
                     .environment = {{"LATHE_CACHE_DIR", scratch.cache()}},
                     .limits = {},
                     .user = {}}) == Ending{});
    CHECK_THAT(scratch.read("first"), Contains("gpt_step"));
    CHECK(scratch.read("status") == std::to_string(128 + SIGPIPE) + "\n");
    CHECK(scratch.read("errors").empty());
  }
}

TEST_CASE("a stack that is too small is reported before use", "[tools]") {
  const Scratch scratch;
  scratch.write("small.lathe", test::small_program);
  const auto with_stack = [&](rlim_t bytes) {
    return test::run({.words = {LATHE_BINARY, "run", "small.lathe", "--random", "--dim", "n=3"},
                      .folder = scratch.path(""),
                      .environment = {{"LATHE_CACHE_DIR", scratch.cache()}},
                      .err = scratch.path("err"),
                      .limits = {{RLIMIT_STACK, bytes}},
                      .user = {}});
  };
  CHECK(with_stack(256 << 10) == Ending{});
  CHECK(with_stack(64 << 10) == Ending{.status = 1});
  CHECK_THAT(scratch.read("err"), Contains("[stack_limit]") && Contains("ulimit -s 256"));
}

TEST_CASE("output is written into an existing device or pipe or file at its path", "[tools]") {
  const Scratch scratch;
  scratch.write("small.lathe", test::small_program);
  const std::string text = run_lathe(scratch, "dump small.lathe").out;
  CHECK(run_lathe(scratch, "dump small.lathe -o /dev/stdout").out == text);
  CHECK(run_lathe(scratch, "dump small.lathe -o /dev/null").status == 0);
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(run_lathe(scratch, "dump small.lathe -o /dev/full").status == 1);
  scratch.write("private", "a text that is longer than what comes");
  fs::permissions(scratch.path("private"), fs::perms(0600));
  fs::create_symlink("private", scratch.path("link"));
  CHECK(run_lathe(scratch, "dump small.lathe -o link").status == 0);
  CHECK(fs::is_symlink(scratch.path("link")));
  CHECK(scratch.read("private") == text);
  CHECK(fs::status(scratch.path("private")).permissions() == fs::perms(0600));
  REQUIRE(::mkfifo(scratch.path("pipe").c_str(), 0600) == 0);
  CHECK(written_to_pipe(scratch, "dump small.lathe -o pipe") == text);
  CHECK(fs::is_fifo(scratch.path("pipe")));
  CHECK(written_to_pipe(scratch, "run small.lathe --random --dim n=2 -o pipe").substr(8, 1) == "{");
}

TEST_CASE("out of memory is reported in one line, with the rank of one of several processes", "[tools]") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  WARN("SKIP: sanitizers take more addresses than any limit");
#else
  const Scratch scratch;
  const auto said = [&](const std::map<std::string, std::string>& environment) {
    const Ending ending = test::run({.words = {LATHE_BINARY, "model", "gpt", "--layers", "1000", "--step"},
                                     .folder = scratch.path(""),
                                     .environment = environment,
                                     .err = scratch.path("err"),
                                     .limits = {{RLIMIT_AS, rlim_t{450} << 20}},
                                     .user = {}});
    CHECK(ending == Ending{.status = 1});
    return scratch.read("err");
  };
  CHECK(said({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}) ==
        "lathe: rank 1 of 2: out of memory\n");
  CHECK(said({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}) == "lathe: rank 3 of 4: out of memory\n");
  CHECK(said({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}) == "lathe: out of memory\n");
#endif
}
