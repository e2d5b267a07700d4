#include "ir/support/share_jobs.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace lathe {

void share_jobs(std::size_t jobs, int threads, const std::function<void(const NextJob& next)>& worker) {
  std::atomic<std::size_t> taken = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  std::exception_ptr failure;
  const NextJob next = [&]() -> std::optional<std::size_t> {
    if (failed) return std::nullopt;
    const std::size_t job = taken++;
    return job < jobs ? std::optional(job) : std::nullopt;
  };
  const auto work = [&] {
    try {
      worker(next);
    } catch (...) {
      failed = true;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  const std::size_t wanted = std::min(static_cast<std::size_t>(std::max(threads, 1)), jobs);
  std::vector<std::thread> others;
  others.reserve(wanted);
  try {
    while (others.size() + 1 < wanted) others.emplace_back(work);
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): the threads that there are take all jobs
  }
  if (wanted > 0) work();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lathe
