#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace lathe {

/// Returns the number of the next job, or nothing if none is left or one has failed.
using NextJob = std::function<std::optional<std::size_t>()>;

/// Runs worker(next) on up to `threads` threads, including the caller's, and returns when all are done. Uses at most
/// one thread per job, and fewer threads if the system cannot start them. Rethrows the first exception of a worker.
void share_jobs(std::size_t jobs, int threads, const std::function<void(const NextJob& next)>& worker);

}  // namespace lathe
