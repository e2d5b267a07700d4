#include "ir/kernel/interpret/interpreter_thread.h"

#include <algorithm>
#include <utility>

namespace lathe::kernel {

void CopyQueue::start(std::shared_ptr<Scratch> memory, const Target& to, std::int64_t first,
                      std::vector<Scalar> values, const Actor& actor) {
  for (std::size_t i = 0; i < values.size(); ++i) to.begin_copy(first + static_cast<std::int64_t>(i), actor);
  open_.push_back({std::move(memory), to, first, std::move(values)});
}

void CopyQueue::commit() {
  groups_.push_back(std::move(open_));
  open_.clear();
}

void CopyQueue::wait(int pending, const Actor& actor) {
  for (; groups_.size() > static_cast<std::size_t>(pending); groups_.pop_front())
    for (const Copy& copy : groups_.front())
      for (std::size_t i = 0; i < copy.values.size(); ++i)
        copy.to.end_copy(copy.first + static_cast<std::int64_t>(i), copy.values[i], actor);
}

Thread& BlockThreads::start(std::size_t i, const Thread& outer, const Kernel& kernel,
                            const std::vector<LaneRange>& inherited) {
  if (i == threads_.size()) threads_.push_back(std::make_unique<Thread>(outer));
  Thread& own = *threads_[i];
  for (const auto& [first, count] : inherited)
    std::copy_n(outer.lanes.data() + first, count, own.lanes.data() + first);
  std::copy_n(outer.position, 3, own.position);
  own.copies = outer.copies;
  for (std::size_t b = 0; b < own.scratch.size(); ++b) {
    if (!outer.scratch[b]) continue;
    const bool shared = kernel.buffers[b].space == Space::shared;
    own.scratch[b] = shared ? outer.scratch[b] : std::make_shared<Scratch>(*outer.scratch[b]);
  }
  return own;
}

void BlockThreads::end(std::size_t count, const Kernel& kernel) {
  for (std::size_t b = 0; b < kernel.buffers.size(); ++b)
    if (kernel.buffers[b].space == Space::shared)
      for (std::size_t i = 0; i < count; ++i) threads_[i]->scratch[b].reset();
}

}  // namespace lathe::kernel
