#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/tools/command.h"

/// lathe trace: the JSON for viewers, and the table for people.
using Catch::Matchers::Contains;
using lathe::test::run_lathe;
using lathe::test::Scratch;
using Json = nlohmann::json;

namespace {

constexpr int kernel_row = 1, first_thread_row = 2;

std::string gpt_step(const Scratch& scratch) {
  REQUIRE(run_lathe(scratch, "model gpt --layers 3 --d-model 32 --heads 2 --vocab 61 --step -o step.lathe").status ==
          0);
  return "step.lathe --dim B=2,T=16";
}

Json traced(const Scratch& scratch, const std::string& arguments) {
  const auto ran = run_lathe(scratch, "trace " + arguments + " -o trace.json");
  INFO(ran.err);
  REQUIRE(ran.status == 0);
  return Json::parse(scratch.read("trace.json")).at("traceEvents");
}

std::vector<Json> spans(const Json& events, int row) {
  std::vector<Json> found;
  for (const Json& event : events)
    if (event.at("ph") == "X" && event.at("tid") == row) found.push_back(event);
  return found;
}

}  // namespace

TEST_CASE("a trace has a kernel row with ops, source lines and rates", "[tools]") {
  const Scratch scratch;
  const Json events =
      traced(scratch, scratch.write("small.lathe", lathe::test::small_program) + " --dim n=50 --threads 1 --steps 2");
  bool product = false;
  double end = 0;
  const auto kernels = spans(events, kernel_row);
  REQUIRE(kernels.size() % 2 == 0);
  for (const Json& event : kernels) {
    CHECK(event.at("ts").get<double>() >= end);
    end = event.at("ts").get<double>() + event.at("dur").get<double>();
    const Json& args = event.at("args");
    CHECK(!args.at("ops").empty());
    CHECK(args.at("GB/s").get<double>() >= 0);
    if (args.at("source") != "small.cpp:7" || event.at("cat") != "matrix product") continue;
    product = true;
    CHECK(event.at("name") == "matrix product layer.*");
    CHECK_THAT(args.at("ops").at(0).get<std::string>(), Contains("contract"));
    CHECK(args.at("GFLOP/s").get<double>() > 0);
    CHECK(args.at("MB").get<double>() == Approx((2 * 50 * 4 + 50 * 50) * 4e-6).margin(1e-3));
  }
  CHECK(product);
}

TEST_CASE("the task ranges of a launch cover its iterations, each once, within its time", "[tools]") {
  const Scratch scratch;
  const Json events = traced(scratch, gpt_step(scratch) + " --threads 3 --steps 1");
  struct Range {
    std::int64_t begin, end;
    double start, stop;
  };
  std::map<int, std::vector<Range>> ranges;
  for (int thread = 0; thread < 3; ++thread)
    for (const Json& event : spans(events, first_thread_row + thread)) {
      const double start = event.at("ts"), length = event.at("dur");
      ranges[event.at("args").at("launch")].push_back(
          {event.at("args").at("begin"), event.at("args").at("end"), start, start + length});
    }
  for (const Json& event : spans(events, kernel_row)) {
    auto& parts = ranges[event.at("args").at("launch")];
    std::sort(parts.begin(), parts.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    std::int64_t next = 0;
    for (const Range& part : parts) {
      CHECK(part.begin == next);
      next = part.end;
      CHECK(part.start >= event.at("ts").get<double>());
      CHECK(part.stop <= event.at("ts").get<double>() + event.at("dur").get<double>() + 1e-3);
    }
    CHECK(next == event.at("args").at("tasks").get<std::int64_t>());
  }
}

TEST_CASE("the top table sums layers, and its shares add up to 100%", "[tools]") {
  const Scratch scratch;
  const auto ran = run_lathe(scratch, "trace " + gpt_step(scratch) + " --steps 2 --top 1000");
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  CHECK_THAT(ran.out, Contains("matrix product") && Contains("h.*.attn.c_attn") && Contains("FMA") &&
                          Contains("memory") && Contains("gpt.cpp:") && !Contains("h.0") && !Contains("h.2"));
  double shares = 0;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);)
    if (const auto percent = line.find('%'); percent != std::string::npos)
      if (const auto begin = line.rfind(' ', percent); percent < 20 && begin != std::string::npos)
        shares += std::stod(line.substr(begin));
  CHECK(shares == Approx(100).margin(5));
  const auto brief = run_lathe(scratch, "trace step.lathe --dim B=2,T=16 --steps 1 --top 2");
  CHECK_THAT(brief.out, Contains(" more\n"));
}

TEST_CASE("a trace that cannot be written reports why", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("small.lathe", lathe::test::small_program);
  for (const std::string& arguments : {std::string("none.lathe"), file + " -o none/trace.json"}) {
    const auto ran = run_lathe(scratch, "trace " + arguments);
    CAPTURE(arguments, ran.err);
    CHECK(ran.status == 1);
    CHECK(ran.err.starts_with("lathe: "));
  }
}
