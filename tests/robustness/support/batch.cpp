#include "tests/robustness/support/batch.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <stdexcept>

#include "ir/support/error.h"
#include "tests/robustness/support/work_folder.h"
#include "tests/support/programs/isolated.h"

namespace lathe::robustness {

namespace {

/// Progress messages of a process that checks mutants; it may not reach its end.
struct Progress {
  std::uint64_t seed = 0;
  std::int64_t taken = 0, refused = 0;
};

class SharedProgress {
 public:
  SharedProgress() {
    void* memory = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no shared memory");
    progress_ = new (memory) Progress;
  }
  ~SharedProgress() { ::munmap(progress_, sizeof(Progress)); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  volatile Progress& operator*() const { return *progress_; }

 private:
  Progress* progress_;
};

Answer answer(const Mutants& mutants, std::uint64_t seed) {
  try {
    return mutants.check(seed, mutants.make(seed));
  } catch (const UserError&) {
  } catch (const ParseError&) {
  } catch (const std::bad_alloc&) {
  }
  return Answer::refused;
}

std::optional<std::string> check_range(const Mutants& mutants, std::uint64_t from, std::uint64_t to,
                                       volatile Progress& progress) {
  const rlimit limit{mutants.memory, mutants.memory};
  if (limits_memory) ::setrlimit(RLIMIT_AS, &limit);
  for (std::uint64_t seed = from; seed < to; ++seed) {
    progress.seed = seed;
    if (answer(mutants, seed) == Answer::taken)
      progress.taken = progress.taken + 1;
    else
      progress.refused = progress.refused + 1;
  }
  progress.seed = to;
  return std::nullopt;
}

}  // namespace

void try_mutants(Report& report, std::int64_t by_default, const Mutants& mutants) {
  using Clock = std::chrono::steady_clock;
  constexpr std::uint64_t batch = 100;
  const Options& options = report.options();
  const auto end = Clock::now() + std::chrono::duration<double>(options.minutes * 60);
  const auto count = static_cast<std::uint64_t>(options.count > 0 ? options.count : by_default);
  const std::uint64_t last = options.minutes > 0 ? ~std::uint64_t{0} : options.seed + count;
  for (std::uint64_t seed = options.seed; seed < last && (options.minutes <= 0 || Clock::now() < end);) {
    const SharedProgress progress;
    const std::uint64_t to = seed + std::min(batch, last - seed);
    const auto complaint = test::isolated([&] { return check_range(mutants, seed, to, *progress); }, mutants.seconds);
    report.count("accepted", (*progress).taken);
    report.count("rejected", (*progress).refused);
    seed = to;
    if (!complaint) continue;
    const std::uint64_t culprit = (*progress).seed;
    report.count("wrong");
    report.fail(fmt::format("{}{}", culprit, mutants.ending), *complaint, mutants.make(culprit));
    seed = culprit + 1;
  }
}

}  // namespace lathe::robustness
