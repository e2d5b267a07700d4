#include "runtime/ranks/communicator.h"

#include <fmt/ranges.h>

namespace lathe {

StalledExchange::StalledExchange(std::vector<int> waiting_for)
    : std::runtime_error(fmt::format("waiting for {}", fmt::join(waiting_for, ", "))),
      peers(std::move(waiting_for)) {}

void Communicator::exchange(std::span<const Message> sends, std::vector<Message> receives, double timeout) {
  const std::vector<std::vector<Message>> rounds{std::move(receives)};
  exchange_in_rounds(sends, rounds, timeout, [](std::size_t) {});
}

std::vector<int> others_of(const Communicator& group) {
  std::vector<int> others;
  for (int r = 0; r < group.size(); ++r)
    if (r != group.rank()) others.push_back(r);
  return others;
}

std::vector<std::string> gather_texts(Communicator& group, const std::string& own, double timeout) {
  const auto ranks = static_cast<std::size_t>(group.size()), self = static_cast<std::size_t>(group.rank());
  const auto swap = [&](auto&& sent, auto&& received) {
    std::vector<Message> sends, receives;
    for (std::size_t r = 0; r < ranks; ++r) {
      if (r == self) continue;
      sends.push_back(sent(static_cast<int>(r)));
      receives.push_back(received(r));
    }
    group.exchange(sends, std::move(receives), timeout);
  };
  const auto bytes_of = [](auto& object) { return reinterpret_cast<std::byte*>(&object); };
  std::vector<std::size_t> sizes(ranks, own.size());
  std::size_t own_size = own.size();
  swap([&](int r) { return Message{r, bytes_of(own_size), sizeof(own_size)}; },
       [&](std::size_t r) { return Message{static_cast<int>(r), bytes_of(sizes[r]), sizeof(sizes[r])}; });
  std::vector<std::string> texts(ranks, own);
  for (std::size_t r = 0; r < ranks; ++r) texts[r].resize(sizes[r]);
  std::string copy = own;
  swap([&](int r) { return Message{r, reinterpret_cast<std::byte*>(copy.data()), copy.size()}; },
       [&](std::size_t r) {
         return Message{static_cast<int>(r), reinterpret_cast<std::byte*>(texts[r].data()), texts[r].size()};
       });
  return texts;
}

}  // namespace lathe
