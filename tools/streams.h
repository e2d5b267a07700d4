#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

/// The standard streams of a command, whatever they are: a terminal, a file, a closed pipe, a full disk, nothing.
namespace lathe::tools {

/// To be called first of all. Makes descriptors 0, 1 and 2 taken where they are closed, so that no file that is
/// opened later becomes standard output; and lets a write to a closed pipe, or beyond a limit of file sizes, fail
/// instead of ending the process.
void prepare_streams();

/// Writes to standard output, and flushes. Escapes control sequences where standard output is a terminal. Throws
/// Stopped(SIGPIPE) where the reader of a pipe has closed it, so that the command ends quietly with status 141;
/// UserError [file_write] for any other failure.
void print_text(std::string_view text);
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  print_text(fmt::format(format, std::forward<Args>(args)...));
}

/// The same as it is: for commands to the terminal.
void print_raw(std::string_view text);

/// "lathe: out of memory" as a line, of one of several processes "lathe: rank 1 of 2: out of memory". Made by the
/// first call, so that later ones need no memory.
const std::string& out_of_memory_text();

/// Writes to standard error what can be written there, escaped as by print_text().
void print_error(std::string_view text) noexcept;

/// Flushes both; false if anything written there was lost.
bool streams_are_written() noexcept;

}  // namespace lathe::tools
