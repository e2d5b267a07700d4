#include "ir/kernel/intrinsics/handed_elements.h"

#include <fmt/core.h>

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

bool HandedElements::note_read(const Target& from, std::int64_t index, const Actor& actor) {
  if (turn_ < 0) return false;
  const Element& given = elements_.at(from, index);
  if (given.turn < 0) return false;
  const auto reads = [&] { return fmt::format("thread {} reads {}[{}]", actor.thread, from.info->name, index); };
  if (phase_ != Phase::finishing) from.fail(reads() + ", which consumers gave to other threads", "hand_over");
  if (given.turn != turn_)
    from.fail(fmt::format("{}, which turn {} of a hand_over gave, in turn {}", reads(), given.turn, turn_),
              "hand_over");
  if (given.giver / group_threads_ != group_)
    from.fail(fmt::format("{}, which thread {} gave, for warpgroup {}", reads(), given.giver, group_), "hand_over");
  return true;
}

bool HandedElements::note_write(const Target& to, std::int64_t index, const Actor& actor) {
  if (turn_ < 0) return false;
  Element& given = elements_.at(to, index);
  const bool handed = given.turn >= 0;
  if (phase_ == Phase::giving) {
    if (given.turn == turn_ && given.giver != actor.thread)
      to.fail(
          fmt::format("threads {} and {} give {}[{}] in one turn", given.giver, actor.thread, to.info->name, index),
          "race");
    if (handed && given.giver / group_threads_ != actor.thread / group_threads_)
      to.fail(fmt::format("thread {} gives {}[{}], which another warpgroup gave before", actor.thread, to.info->name,
                          index),
              "hand_over");
    given = {turn_, actor.thread};
  } else if (handed) {
    to.fail(fmt::format("thread {} writes {}[{}], which consumers gave to other threads", actor.thread, to.info->name,
                        index),
            "hand_over");
  }
  return handed;
}

}  // namespace lathe::kernel
