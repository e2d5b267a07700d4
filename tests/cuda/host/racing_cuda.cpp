#include "tests/cuda/host/racing_cuda.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "codegen/cuda/mapping.h"
#include "ir/kernel/printer.h"
#include "ir/support/error.h"
#include "tests/cuda/host/shim_maps.h"
#include "tests/cuda/shim/tensor_map.h"

namespace lathe::test {

namespace {

constexpr int race_found = 66;

/// A launch in the format that tests/cuda/shim/run_file.cpp reads: 8-byte words, then memories.
class LaunchFile {
 public:
  LaunchFile(const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers,
             std::span<const std::int64_t> dims, std::uint64_t seed) {
    const auto grid = host_grid(kernel, dims, seed);
    const cuda::Mapping mapping = cuda::mapping_of(kernel, gpu_info("sm_80"));
    add(static_cast<std::int64_t>(seed));
    for (const auto blocks : grid) add(blocks);
    for (const auto threads : mapping.threads) add(threads);
    add(std::ssize(dims));
    for (const std::int64_t dim : dims) add(dim);
    std::vector<std::int64_t> sizes, bound;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const auto known = std::find(memories_.begin(), memories_.end(), buffers[i].data);
      bound.push_back(known - memories_.begin());
      if (known != memories_.end()) continue;
      memories_.push_back(buffers[i].data);
      sizes.push_back(buffers[i].count * static_cast<std::int64_t>(size_in_bytes(kernel.buffers[i].dtype)));
    }
    for (const auto* list : {&sizes, &bound}) {
      add(std::ssize(*list));
      for (const std::int64_t word : *list) add(word);
    }
    add_maps(kernel, buffers, dims, bound);
    first_ = bytes_.size();
    for (std::size_t i = 0; i < sizes.size(); ++i)
      bytes_.append(static_cast<const char*>(memories_[i]), static_cast<std::size_t>(sizes[i]));
    sizes_ = sizes;
  }

  const std::string& bytes() const { return bytes_; }

  /// Copies back the memories after the launch and returns the status word.
  std::int64_t read_back(const std::string& bytes) const {
    LATHE_ASSERT(bytes.size() == bytes_.size());
    std::size_t at = first_;
    for (std::size_t i = 0; i < memories_.size(); at += static_cast<std::size_t>(sizes_[i++]))
      std::memcpy(memories_[i], bytes.data() + at, static_cast<std::size_t>(sizes_[i]));
    std::int64_t status;
    std::memcpy(&status, bytes.data(), sizeof status);
    return status;
  }

 private:
  /// Encodes addresses for the other process: the memory's number and an offset.
  void add_maps(const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers,
                std::span<const std::int64_t> dims, const std::vector<std::int64_t>& bound) {
    std::vector<cuda::Driver::TensorMap> maps = shim_maps(kernel, buffers, dims);
    add(std::ssize(maps) * static_cast<std::int64_t>(sizeof(cuda::Driver::TensorMap) / 8));
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const auto buffer = static_cast<std::size_t>(kernel.maps[i].from);
      ShimTensorMap map;
      std::memcpy(&map, maps[i].words.data(), sizeof map);
      map.made = static_cast<unsigned long long>(bound[buffer]);
      map.address -= reinterpret_cast<std::uintptr_t>(buffers[buffer].data);
      std::memcpy(maps[i].words.data(), &map, sizeof map);
      for (const std::uint64_t word : maps[i].words) add(static_cast<std::int64_t>(word));
    }
  }
  void add(std::int64_t word) { bytes_.append(reinterpret_cast<const char*>(&word), sizeof word); }

  std::string bytes_;
  std::vector<void*> memories_;
  std::vector<std::int64_t> sizes_;
  std::size_t first_ = 0;
};

}  // namespace

/// The running program, with its folder as working directory; race reports go to the file "log" there.
class RacingCuda::Process {
 public:
  explicit Process(const std::string& folder) {
    const std::string answers = folder + "/answers";
    ::unlink(answers.c_str());
    if (::mkfifo(answers.c_str(), 0600) != 0) throw InternalError("no pipe in the scratch folder");
    const std::string command = fmt::format(
        "cd '{}' && ulimit -s 2048 && TSAN_OPTIONS='halt_on_error=1 exitcode={}' exec ./kernels > answers 2> log",
        folder, race_found);
    commands_ = ::popen(command.c_str(), "w");
    answers_ = std::fopen(answers.c_str(), "r");
    if (!commands_ || !answers_) throw InternalError("the kernels do not start");
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (commands_) end();
    std::fclose(answers_);
  }

  /// Returns whether the launch finished.
  bool run(const std::string& entry, const char* file) {
    fmt::print(commands_, "{} {}\n", entry, file);
    std::fflush(commands_);
    char answer[16];
    return std::fgets(answer, sizeof answer, answers_) != nullptr;
  }
  /// Returns the exit status.
  int end() { return ::pclose(std::exchange(commands_, nullptr)); }

 private:
  std::FILE *commands_ = nullptr, *answers_ = nullptr;
};

void RacingCuda::EndProcess::operator()(Process* process) const { delete process; }

std::optional<RacingCuda> RacingCuda::build(std::span<const kernel::Kernel> kernels, const std::string& prelude) {
  if (!has_compiler()) return std::nullopt;
  RacingCuda result(kernels);
  build_text(*result.scratch_, result.text_, prelude,
             "cd '{scratch}' && c++ -std=c++20 -O0 -g -w -ffp-contract=off -fno-strict-aliasing -DSHIM_OS_THREADS "
             "-I'{root}' -I. -fsanitize=thread -c kernels.cpp");
  const std::string link = fmt::format("( cd '{0}' && c++ -fsanitize=thread -rdynamic kernels.o " LATHE_SHIM_THREADS
                                       " -o kernels && ./kernels < /dev/null ) > '{0}/log' 2>&1",
                                       result.scratch_->path().string());
  if (std::system(link.c_str()) == 0) return result;
  fmt::print("SKIP: CUDA text under ThreadSanitizer: {}\n", slurp(*result.scratch_ / "log"));
  return std::nullopt;
}

std::int64_t RacingCuda::run(const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers,
                             std::span<const std::int64_t> dims, std::uint64_t seed) {
  const LaunchFile launch(kernel, buffers, dims, seed);
  spit(*scratch_ / "launch", launch.bytes());
  if (!process_) process_.reset(new Process(scratch_->path().string()));
  if (process_->run(text_.entries.at(kernel::canonical_text(kernel)), "launch"))
    return launch.read_back(slurp(*scratch_ / "launch"));
  const int status = process_->end();
  process_.reset();
  const std::string log = slurp(*scratch_ / "log");
  if (WIFEXITED(status) && WEXITSTATUS(status) == race_found) throw Race(log);
  throw InternalError(fmt::format("kernel {} does not end well:\n{}", kernel.name, log));
}

}  // namespace lathe::test
