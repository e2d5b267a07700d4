#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace lathe::tools {

/// metrics.jsonl: a JSON object on a line for each step, evaluation and sample, with the number "step" first.
class MetricsFile {
 public:
  using Fields = std::vector<std::pair<std::string, std::variant<double, std::string>>>;

  /// Keeps the lines of steps up to `step`, after which a run resumes; none where it is 0. `done`: no step is left,
  /// and the run repeats the validation of the last one, whose line goes. Throws UserError [file_write].
  MetricsFile(std::filesystem::path path, std::int64_t step, bool done = false);
  /// A number that is none is written as null, bytes that are not UTF-8 as U+FFFD. UserError [file_write].
  void write(std::int64_t step, const Fields& fields);

 private:
  std::filesystem::path path_;
};

}  // namespace lathe::tools
