#include "tools/streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>

#include "ir/support/error.h"
#include "ir/support/visible.h"
#include "runtime/files/write/write_stream.h"
#include "tools/environment.h"
#include "tools/stop_signals.h"

namespace lathe::tools {

void prepare_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    // open() returns the lowest free descriptor, which is `stream`. The access mode is inverted, so that using it
    // still fails.
    const int taken = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    static_cast<void>(taken);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void print_raw(std::string_view text) {
  errno = 0;
  if (write_stream(stdout, text)) return;
  // `lathe dump ...
  // head`: the reader stops early, which is not an error.
  if (errno == EPIPE) throw Stopped(SIGPIPE);
  throw UserError("standard output cannot be written", "file_write", "is it closed, or the disk full?");
}

void print_text(std::string_view text) {
  if (::isatty(STDOUT_FILENO) == 1)
    print_raw(visible_lines(text));
  else
    print_raw(text);
}

const std::string& out_of_memory_text() {
  static const std::string text = [] {
    const std::string place = place_among_processes();
    return fmt::format("lathe: {}{}out of memory\n", place, place.empty() ? "" : ": ");
  }();
  return text;
}

void print_error(std::string_view text) noexcept {
  try {
    const std::string shown = visible_lines(text);
    std::fwrite(shown.data(), 1, shown.size(), stderr);
  } catch (const std::bad_alloc&) {
    std::fputs(out_of_memory_text().c_str(), stderr);
  }
}

bool streams_are_written() noexcept {
  const bool flushed = std::fflush(stdout) == 0 && std::fflush(stderr) == 0;
  return flushed && std::ferror(stdout) == 0 && std::ferror(stderr) == 0;
}

}  // namespace lathe::tools
