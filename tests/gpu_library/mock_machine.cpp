#include "tests/gpu_library/mock_machine.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <sstream>

#include "tests/support/texts/test_data.h"

namespace lathe::test {

namespace {

constexpr std::uint64_t least_address = std::uint64_t{1} << 40;

}  // namespace

std::filesystem::path mock_folder() { return LATHE_MOCK_CUDA; }

std::string helper_folder() { return source_path("include/lathe/aot").string(); }

bool has_mock_compiler() {
  static const bool has = std::system("c++ --version > /dev/null 2>&1") == 0;
  if (!has) WARN("SKIP: kernels of mock GPUs want a C++ compiler named c++");
  return has;
}

Target mock_target(const std::filesystem::path& log) {
  // The runtime opens libcuda.so.1 by this name, and gets the library that is loaded already.
  static void* const library = dlopen((mock_folder() / "libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  static const Target target = Target::named("cuda:sm_90a").on_device(nullptr, {mock_folder()});
  auto* const start_log = reinterpret_cast<void (*)(const char*)>(dlsym(library, "mock_cuda_log"));
  start_log(log.c_str());
  return target;
}

std::vector<MockLaunch> launches_of(const std::filesystem::path& log) {
  std::vector<MockLaunch> launches;
  std::istringstream lines(slurp(log));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    MockLaunch& launch = launches.emplace_back();
    launch.sizes.resize(7);
    words >> launch.kernel;
    for (std::int64_t& size : launch.sizes) words >> size;
    std::size_t count = 0;
    words >> count;
    launch.arguments.resize(count);
    for (std::uint64_t& argument : launch.arguments) words >> std::hex >> argument;
    words >> std::dec >> launch.maps;
    REQUIRE(words);
  }
  return launches;
}

std::vector<std::vector<std::uint64_t>> renamed_arguments(const std::vector<MockLaunch>& launches) {
  std::map<std::uint64_t, std::uint64_t> names;
  std::vector<std::vector<std::uint64_t>> all;
  for (const MockLaunch& launch : launches) {
    std::vector<std::uint64_t>& arguments = all.emplace_back(launch.arguments);
    arguments.pop_back();
    for (std::uint64_t& argument : arguments)
      if (argument >= least_address)
        argument = least_address + names.try_emplace(argument, names.size()).first->second;
  }
  return all;
}

std::vector<std::vector<std::uint64_t>> numbers(const std::vector<MockLaunch>& launches) {
  std::vector<std::vector<std::uint64_t>> all;
  for (const MockLaunch& launch : launches) {
    std::vector<std::uint64_t>& arguments = all.emplace_back(launch.arguments);
    std::erase_if(arguments, [](std::uint64_t argument) { return argument >= least_address; });
  }
  return all;
}

ShellRun run_on_mock(const ScratchFolder& folder, const std::string& command) {
  const std::string output = (folder / "output").string();
  const std::string whole = fmt::format("cd '{}' && export LD_LIBRARY_PATH='{}' && {{ {}; }} > '{}' 2>&1",
                                        folder.path().string(), mock_folder().string(), command, output);
  const int status = std::system(whole.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, slurp(output)};
}

}  // namespace lathe::test
