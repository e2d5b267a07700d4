#include <set>
#include <vector>

#include "tests/tools/command.h"

using Catch::Matchers::Contains;
using lathe::test::run_lathe;
using lathe::test::Scratch;

namespace {

/// Options that take numbers, the values that they reject and the range in their error messages.
struct NumberCase {
  std::string command, option;
  std::vector<std::string> values;
  std::string range;
};

const std::string whole = "a whole number ", real = "a number ";
const std::string sizes = whole + "from 1 to 16777216", steps = whole + "from 1 to 1000000000",
                  counts = whole + "from 0 to 1000000000", seeds = whole + "from 0 to 18446744073709551615",
                  threads = whole + "from 0 to 1024", tops = whole + "from 0 to 100000",
                  at_least_0 = real + "of at least 0", above_0 = real + "above 0";

const std::vector<NumberCase>& cases() {
  const std::vector<std::string> no_size{"0"}, no_steps{"0"}, no_count{"-1"}, no_seed{"-1"}, no_positive{"nan"},
      below_0{"-0.1", "nan"};
  static const std::vector<NumberCase> all{
      {"train", "--steps", {"0", "-1", "1e3", "1000000001"}, steps},
      {"train", "--batch", {"0", "-3", "1.5", "x", "16777217", "99999999999999999999", "nan"}, sizes},
      {"train", "--context", no_size, sizes},
      {"train", "--layers", {"0", "1001", "5000000000"}, whole + "from 1 to 1000"},
      {"train", "--d-model", no_size, sizes},
      {"train", "--heads", no_size, sizes},
      {"train", "--dropout", {"-0.1", "1", "nan"}, real + "from 0 to 0.99"},
      {"train", "--lr", {"0", "-1", "nan", "inf", "1e999", "x"}, above_0},
      {"train", "--warmup", {"-1", "0.5", "99999999999999999999"}, counts},
      {"train", "--weight-decay", below_0, at_least_0},
      {"train", "--clip", {"-0.1", "nan", "-inf", "inf", "1x"}, at_least_0},
      {"train", "--seed", {"-1", "1.5", "18446744073709551616", "x"}, seeds},
      {"train", "--evaluate-every", no_steps, steps},
      {"train", "--save-every", no_steps, steps},
      {"train", "--sample", no_count, counts},
      {"train", "--temperature", below_0, at_least_0},
      {"train", "--top-k", {"-1", "0.5", "nan"}, whole + "of at least 0"},
      {"train", "--threads", {"-1", "1025", "x"}, threads},
      {"train", "--tune", {"0", "nan", "2e6"}, real + "from 0.001 to 1000000"},
      {"train --mesh data=2", "--watchdog", below_0, at_least_0},
      {"finetune . --text x", "--steps", no_steps, steps},
      {"finetune . --text x", "--epochs", {"0", "-1", "nan", "inf", "1e7"}, real + "above 0, at most 1000000"},
      {"finetune . --text x", "--batch", no_size, sizes},
      {"finetune . --text x", "--accumulate", no_size, sizes},
      {"finetune . --text x", "--context", {"1", "-1", "16777217"}, whole + "from 2 to 16777216"},
      {"finetune . --text x", "--lr", no_positive, above_0},
      {"finetune . --text x", "--warmup", no_count, counts},
      {"finetune . --text x", "--weight-decay", below_0, at_least_0},
      {"finetune . --text x", "--clip", below_0, at_least_0},
      {"finetune . --text x", "--seed", no_seed, seeds},
      {"finetune . --text x", "--eval-every", no_steps, steps},
      {"finetune . --text x", "--save-every", no_steps, steps},
      {"finetune . --text x --sample-prompt a", "--sample-every", no_steps, steps},
      {"finetune . --text x --sample-prompt a", "--sample-tokens", no_steps, steps},
      {"eval . --text x", "--context", {"-1", "16777217"}, whole + "from 0 to 16777216"},
      {"eval . --text x", "--stride", {"-1", "nan"}, whole + "from 0 to 16777216"},
      {"eval . --text x", "--batch", no_size, sizes},
      {"generate .", "--max-new-tokens", no_steps, steps},
      {"generate .", "--temperature", below_0, at_least_0},
      {"generate .", "--top-k", {"-1", "2.5"}, whole + "of at least 0"},
      {"generate .", "--top-p", {"0", "1.5", "nan"}, real + "above 0, at most 1"},
      {"generate .", "--min-p", {"-0.1", "1.5", "nan"}, real + "from 0 to 1"},
      {"generate .", "--repetition-penalty", no_positive, above_0},
      {"generate .", "--seed", no_seed, seeds},
      {"generate .", "--beams", no_size, sizes},
      {"generate .", "--typical-p", {"0", "1.5", "nan"}, real + "above 0, at most 1"},
      {"generate .", "--no-repeat-ngram", {"-1", "2.5"}, whole + "of at least 0"},
      {"generate .", "--results", no_size, sizes},
      {"generate .", "--chunk", no_size, sizes},
      {"embed .", "--batch", no_size, sizes},
      {"model gpt", "--layers", {"0", "1001"}, whole + "from 1 to 1000"},
      {"model gpt", "--d-model", no_size, sizes},
      {"model gpt", "--heads", no_size, sizes},
      {"model gpt", "--vocab", no_size, sizes},
      {"model gpt", "--context", no_size, sizes},
      {"model gpt", "--dropout", {"-1", "1.1", "nan"}, real + "from 0 to 1"},
      {"model gpt", "--lr", no_positive, above_0},
      {"run x", "--seed", no_seed, seeds},
      {"run x", "--threads", {"-1", "1025"}, threads},
      {"verify x", "--tolerance", below_0, at_least_0},
      {"trace x", "--steps", {"0", "10001"}, whole + "from 1 to 10000"},
      {"trace x", "--warmup", {"-1", "10001"}, whole + "from 0 to 10000"},
      {"trace x", "--top", {"-1", "100001"}, tops},
      {"bench x", "--repeat", {"0", "1000001"}, whole + "from 1 to 1000000"},
      {"bench x", "--top", {"-1", "100001"}, tops},
      {"compile x", "--threads", {"0", "65"}, whole + "from 1 to 64"},
  };
  return all;
}

}  // namespace

TEST_CASE("a number out of range for an option is rejected with a clear message, before anything is done",
          "[tools]") {
  const Scratch scratch;
  for (const NumberCase& each : cases())
    for (const std::string& value : each.values) {
      const auto ran = run_lathe(scratch, each.command + " " + each.option + "=" + value);
      INFO(each.command << " " << each.option << "=" << value << "\n" << ran.out << ran.err);
      CHECK(ran.status == 2);
      CHECK(ran.out.empty());
      CHECK_THAT(ran.err, Catch::StartsWith(each.option + " is " + value + "; it must be " + each.range + "\n"));
    }
  CHECK_FALSE(std::filesystem::exists(scratch.path("lathe-run")));
  CHECK_THAT(run_lathe(scratch, "train --batch ''").err, Contains("--batch is empty; it must be " + sizes));
}

TEST_CASE("help states the range of every option that takes a number", "[tools]") {
  const Scratch scratch;
  std::set<std::string> commands;
  for (const NumberCase& each : cases()) commands.insert(each.command.substr(0, each.command.find(' ')));
  std::size_t seen = 0;
  for (const std::string& command : commands) {
    const std::string help = run_lathe(scratch, command + " --help").out;
    for (std::size_t at = help.find("\n  -"); at != std::string::npos; at = help.find("\n  -", at + 1)) {
      const std::string line = help.substr(at + 1, help.find('\n', at + 1) - at - 1);
      // The number types in CLI11's help, such as "--batch INT:..".
      if (line.find(" INT") == line.npos && line.find(" UINT") == line.npos && line.find(" FLOAT") == line.npos)
        continue;
      ++seen;
      INFO(command << ": " << line);
      CHECK((line.find(":a whole number ") != line.npos || line.find(":a number ") != line.npos));
    }
  }
  CHECK(seen > 40);
}
