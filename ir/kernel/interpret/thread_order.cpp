#include "ir/kernel/interpret/thread_order.h"

#include <algorithm>
#include <set>

namespace lathe::kernel {

namespace {

/// The buffers that statements access and that threads share.
class SharedAccesses {
 public:
  explicit SharedAccesses(const Kernel& kernel) : kernel_(kernel) {}

  void add(const DecodedStatement& s) {
    switch (s.kind) {
      case DecodedKind::load: return add(s.buffer, Access::read);
      case DecodedKind::store: return add(s.buffer, Access::write);
      case DecodedKind::intrinsic:
        for (const IntrinsicBuffer& buffer : s.instruction->machine->buffers) add(buffer.id, buffer.access);
        return;
      case DecodedKind::check: checks_ = true; return;  // the status is the code of the first that fails
      case DecodedKind::branch:
      case DecodedKind::loop:
        for (const DecodedBlock* inside : {s.nested->body, s.nested->else_body})
          if (inside)
            for (const DecodedStatement& each : *inside) add(each);
        return;
      case DecodedKind::nothing:
      case DecodedKind::compute:
      case DecodedKind::allocate:
      case DecodedKind::barrier:
      case DecodedKind::region: return;
    }
  }

  bool allow_any_order() const {
    return !checks_ && std::none_of(read_.begin(), read_.end(), [&](BufferId id) { return written_.contains(id); });
  }

 private:
  void add(BufferId id, Access access) {
    const BufferInfo& buffer = kernel_.buffers[static_cast<std::size_t>(id)];
    if (buffer.space != Space::parameter && buffer.space != Space::shared) return;
    // Parameters that may alias others count as one buffer.
    const BufferId memory = buffer.space == Space::parameter && !buffer.noalias ? none : id;
    if (access != Access::write) read_.insert(memory);
    if (access != Access::read) written_.insert(memory);
  }

  const Kernel& kernel_;
  std::set<BufferId> read_, written_;
  bool checks_ = false;
};

}  // namespace

void mark_thread_order(const Kernel& kernel, DecodedBlock& block) {
  for (auto first = block.begin(); first != block.end();) {
    const auto end = std::find_if(first, block.end(), [](const DecodedStatement& s) { return !s.alone; });
    SharedAccesses accesses(kernel);
    std::for_each(first, end, [&](const DecodedStatement& s) { accesses.add(s); });
    const bool in_any_order = accesses.allow_any_order();
    std::for_each(first, end, [&](DecodedStatement& s) { s.in_any_order = in_any_order; });
    first = end == block.end() ? end : end + 1;
  }
}

}  // namespace lathe::kernel
