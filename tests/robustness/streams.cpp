#include <fmt/core.h>

#include <algorithm>

#include "tests/robustness/support/work_folder.h"

namespace lathe::robustness {

namespace {

/// Commands that write to standard output, and their inputs.
std::vector<std::vector<std::string>> talkers() {
  return {{"--help"},
          {"--version"},
          {"train", "--help"},
          {"dump", "small.lathe"},
          {"dump", "-"},
          {"dump", "--after", "all", "small.lathe"},
          {"explain", "small.lathe"},
          {"explain", "--html", "--dim", "n=3", "small.lathe"},
          {"explain", "--memory", "--dim", "n=3", "--svg", "-", "small.lathe"},
          {"diff", "small.lathe", "small.lathe"},
          {"tokenize", "nowhere", "text"},
          {"chat", "nowhere", "--render", "text"},
          {"opt", "--times", "small.lathe"},
          {"grad", "small.lathe"},
          {"run", "--random", "--dim", "n=3", "small.lathe"},
          {"verify", "--dim", "n=3", "small.lathe"},
          {"bench", "--repeat", "1", "--dim", "n=3", "small.lathe"},
          {"trace", "--steps", "1", "--dim", "n=3", "small.lathe"},
          {"model", "gpt"},
          {"compile", "--emit", "cuda", "small.lathe"},
          {"doctor"},
          training(2),
          {"dump", "nowhere.lathe"},
          {"nonsense"},
          {}};
}

}  // namespace

void attack_streams(Report& report) {
  const WorkFolder work(report.options());
  write_bytes(work / "small.lathe", small_program);
  write_bytes(work / "text.txt", training_text());
  const std::string fine_out = (work / "stdout").string(), fine_err = (work / "stderr").string();
  std::vector<test::Command> all;
  for (const std::vector<std::string>& words : talkers())
    for (const char* in : {"/dev/null", "closed", ".", "small.lathe"})
      for (const std::string& out : {fine_out, std::string("closed"), std::string("/dev/full")})
        for (const std::string& err : {fine_err, std::string("closed"), std::string("/dev/full")}) {
          test::Command command = work.command(words);
          command.in = in, command.out = out, command.err = err;
          all.push_back(std::move(command));
        }
  // With a limited number of cases, select them evenly from all.
  const auto wanted = static_cast<std::size_t>(report.options().count);
  const std::size_t step = wanted > 0 ? std::max<std::size_t>(1, all.size() / wanted) : 1;
  for (std::size_t i = report.options().seed % step; i < all.size(); i += step) {
    const Ran ran = work.run(all[i]);
    const std::string name = fmt::format("{}, in {}, out {}, err {}", all[i].words.size() > 1 ? all[i].words[1] : "",
                                         all[i].in, all[i].out, all[i].err);
    if (judge(report, name, ran) && all[i].out != fine_out && ran.ending.status == 0)
      report.fail(name, "exit status 0, although the output could not be written");
  }
}

}  // namespace lathe::robustness
