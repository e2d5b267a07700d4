#pragma once

#include <string>
#include <vector>

#include "runtime/target.h"
#include "tests/runtime/files/files_scratch.h"

/// This machine with the mocks of CUDA's libraries (tests/cuda/mock_cuda), in this process and in programs.
namespace lathe::test {

/// A launch that the mock driver ran.
struct MockLaunch {
  std::string kernel;
  std::vector<std::int64_t> sizes;       ///< blocks along x, y and z, threads, bytes of shared memory
  std::vector<std::uint64_t> arguments;  ///< buffers, dims, and the address of the status word
  int maps = 0;
};

/// Returns the target "cuda:sm_90a" on the mock GPU of this process, whose launches are logged to a file from now on.
Target mock_target(const std::filesystem::path& log);

/// Reads the launches of a log.
std::vector<MockLaunch> launches_of(const std::filesystem::path& log);

/// Returns the arguments of launches but the status words, with memory as numbers by first use: the same for two runs
/// that pass the same buffers, wherever these are.
std::vector<std::vector<std::uint64_t>> renamed_arguments(const std::vector<MockLaunch>& launches);
/// Returns the arguments of launches that are no memory.
std::vector<std::vector<std::uint64_t>> numbers(const std::vector<MockLaunch>& launches);

struct ShellRun {
  int status = 0;
  std::string output;  ///< standard output and error
};
/// Runs a command of the shell in a folder, where the mocks are CUDA's libraries.
ShellRun run_on_mock(const ScratchFolder& folder, const std::string& command);

/// Returns the folder of the headers that help programs.
std::string helper_folder();

/// Returns the folder of the mocks, for LibraryOptions::cuda_folders.
std::filesystem::path mock_folder();

/// Whether this machine has a C++ compiler for the mock of NVRTC; prints SKIP if not.
bool has_mock_compiler();

}  // namespace lathe::test
