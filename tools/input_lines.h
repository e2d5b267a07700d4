#pragma once

#include <cstddef>
#include <string>

namespace lathe::tools {

/// The lines of standard input, as they come. A signal that StopSignals takes ends the wait for one.
class InputLines {
 public:
  static constexpr std::size_t longest = std::size_t{1} << 24;  ///< bytes of a line

  /// The next line without its end; false at the end of the input, or once a signal came. UserError [file_too_large]
  /// for a line of more than `longest` bytes, [file_read].
  bool next(std::string& line);

 private:
  /// Waits for more input; false if there is none.
  bool read_more();

  std::string waiting_;  ///< read, and not yet returned
  bool is_at_end_ = false;
};

}  // namespace lathe::tools
