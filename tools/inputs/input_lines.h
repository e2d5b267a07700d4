#pragma once

#include <cstddef>
#include <string>

namespace lathe::tools {

/// Reads standard input line by line, interactively. A signal handled by StopSignals interrupts the wait.
class InputLines {
 public:
  static constexpr std::size_t longest = std::size_t{1} << 24;  ///< bytes per line

  /// Reads the next line without its line end. Returns false at the end of the input or after a signal. Throws
  /// UserError [file_too_large] for lines longer than `longest`, [file_read].
  bool next(std::string& line);

 private:
  /// Waits for more input. Returns false if there is none.
  bool read_more();

  std::string waiting_;  ///< read but not yet returned
  bool is_at_end_ = false;
};

}  // namespace lathe::tools
