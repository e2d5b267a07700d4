#include "ir/kernel/interpret/interpreter_thread.h"

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

}  // namespace lathe::kernel
