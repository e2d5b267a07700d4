#pragma once

#include <cstddef>
#include <functional>
#include <optional>

namespace lathe {

/// Gives the number of a job that no other thread has; nothing when all are taken, or one has failed.
using NextJob = std::function<std::optional<std::size_t>()>;

/// Runs worker(next) on up to `threads` threads, of which the caller's is one, and returns when all are done. Threads
/// that the system does not start are done without. There are no more threads than jobs. Throws what a worker threw,
/// the first of several.
void share_jobs(std::size_t jobs, int threads, const std::function<void(const NextJob& next)>& worker);

}  // namespace lathe
