#include "tools/inputs/input_lines.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "ir/support/error.h"
#include "tools/stop_signals.h"

namespace lathe::tools {

bool InputLines::next(std::string& line) {
  std::size_t searched = 0;
  for (;;) {
    const std::size_t end = waiting_.find('\n', searched);
    if (std::min(end, waiting_.size()) > longest)
      throw UserError(fmt::format("a line of standard input has more than {} bytes", longest), "file_too_large",
                      "check that it is not a device or a file without line breaks");
    if (end != std::string::npos) {
      line.assign(waiting_, 0, end);
      waiting_.erase(0, end + 1);
      return true;
    }
    searched = waiting_.size();
    if (is_at_end_ || !read_more()) break;
  }
  if (StopSignals::received() != 0 || waiting_.empty()) return false;
  line = std::move(waiting_);
  waiting_.clear();
  return true;
}

bool InputLines::read_more() {
  // Unlike reads, polls are not restarted after a signal. A signal just before the poll is noticed at the timeout.
  constexpr int timeout = 200;  // ms
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  int ready = 0;
  while (ready <= 0) {
    if (StopSignals::received() != 0) return false;
    ready = ::poll(&input, 1, timeout);
    if (ready < 0 && errno != EINTR) break;
  }
  std::array<char, std::size_t{1} << 16> block;
  ssize_t count = 0;
  do {
    count = ::read(STDIN_FILENO, block.data(), block.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0)
    throw UserError(fmt::format("cannot read standard input: {}", std::generic_category().message(errno)),
                    "file_read");
  is_at_end_ = count == 0;
  waiting_.append(block.data(), static_cast<std::size_t>(count));
  return !is_at_end_;
}

}  // namespace lathe::tools
