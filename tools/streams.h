#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

/// Standard streams of a command. They may be a terminal, a file, a closed pipe, a full disk or closed.
namespace lathe::tools {

/// Must be called first. Opens descriptors 0, 1 and 2 if they are closed, so that files opened later cannot become
/// standard output. Makes writes to a closed pipe, or beyond a file size limit, fail instead of killing the process.
void prepare_streams();

/// Writes to standard output and flushes. Escapes control sequences if standard output is a terminal. Throws
/// Stopped(SIGPIPE) if the reader of a pipe closed it, so that the command ends silently with status 141. Throws
/// UserError [file_write] for any other failure.
void print_text(std::string_view text);
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  print_text(fmt::format(format, std::forward<Args>(args)...));
}

/// Same without escaping, for terminal control sequences.
void print_raw(std::string_view text);

/// Returns the line "lathe: out of memory", or with several processes "lathe: rank 1 of 2: out of memory". The first
/// call creates the text, so that later calls need no memory.
const std::string& out_of_memory_text();

/// Writes to standard error, escaped like in print_text(). Ignores failures.
void print_error(std::string_view text) noexcept;

/// Flushes both streams. Returns false if any output was lost.
bool streams_are_written() noexcept;

}  // namespace lathe::tools
