#include "runtime/train/progress.h"

#include <catch2/catch.hpp>

using namespace lathe;
using Catch::Contains;

namespace {

/// The output of a run of `last` steps of ten seconds each.
struct ToldRun {
  std::string text;
  Tensors outputs = {{"learning_rate", HostTensor::scalar(0.001)}, {"loss_scale", HostTensor::scalar(1024)}};
  std::int64_t last;
  double now = 100;  ///< seconds

  ProgressOptions options(double items, bool is_terminal) {
    return {.items = items,
            .write =
                [this](std::string_view more) {
                  text += more;
                  return true;
                },
            .is_terminal = is_terminal,
            .clock = [this] { return now; }};
  }
  StepReport report(std::int64_t step, double loss, bool skipped = false) const {
    return {.step = step, .last = last, .loss = loss, .seconds = 10, .skipped = skipped, .outputs = outputs};
  }
};

}  // namespace

TEST_CASE("progress reports loss, rate and the time left after the first and the last step") {
  ToldRun run{.text = {}, .last = 14};
  Progress progress(run.options(50, false));
  CHECK(progress.rate() == 0);
  CHECK(progress.seconds_left() == 0);
  // Steps of earlier processes count as done, but not for the rate.
  progress.step(run.report(12, 2.5));
  CHECK(run.text == "step    12/14  loss 2.500  lr 1.0e-03       5 tokens/s  0:20 left\n");
  CHECK(progress.rate() == 5);
  CHECK(progress.seconds_left() == 20);
  progress.step(run.report(13, 1.5));  // less than five seconds after the previous line
  CHECK(run.text.find("13/14") == std::string::npos);
  progress.line("step 13  something");
  progress.step(run.report(14, 1.5));
  CHECK_THAT(run.text,
             Contains("left\nstep 13  something\nstep    14/14  loss 2.310  lr 1.0e-03") && Contains("0:00 left\n"));
  CHECK_FALSE(progress.output_is_lost());
}

TEST_CASE("progress uses steps if a step has no items, and omits an unknown rate") {
  ToldRun run{.text = {}, .outputs = {}, .last = 1000};
  Progress progress(run.options(0, false));
  progress.step(run.report(1, 0.5));
  CHECK(run.text == "step     1/1000  loss 0.500    0.10 steps/s  2:46:30 left\n");
}

TEST_CASE("a terminal line is rewritten, and ended before another one") {
  ToldRun run{.text = {}, .last = 9};
  {
    Progress progress(run.options(50, true));
    progress.step(run.report(1, 2, true));
    CHECK(run.text.starts_with("\r\x1b[2Kstep     1/9"));
    CHECK_THAT(run.text, Contains("left\nstep     1  skipped: a gradient is not finite at the loss scale 1024\n"));
    progress.step(run.report(9, 2));
    CHECK(run.text.ends_with("0:00 left"));
  }
  CHECK(run.text.ends_with("0:00 left\n"));
}

TEST_CASE("a failed write of progress is reported, and does not throw") {
  ToldRun run{.text = {}, .last = 9};
  bool open = true;
  ProgressOptions options = run.options(1, false);
  options.write = [&](std::string_view) { return open; };
  Progress progress(options);
  progress.step(run.report(1, 2));
  CHECK_FALSE(progress.output_is_lost());
  open = false;
  progress.line("more");
  open = true;
  progress.line("more");
  CHECK(progress.output_is_lost());
}

TEST_CASE("durations print as minutes and seconds, with hours if needed") {
  CHECK(format_duration(0.4) == "0:00");
  CHECK(format_duration(65) == "1:05");
  CHECK(format_duration(7384) == "2:03:04");
  CHECK(format_duration(-3) == "0:00");
}

TEST_CASE("an evaluation has a live line with the time left, which a terminal erases at the end") {
  ToldRun run{.text = {}, .outputs = {}, .last = 9};
  SECTION("on a terminal, below the line of the last step") {
    Progress progress(run.options(0, true));
    progress.step(run.report(9, 2));
    run.text.clear();
    progress.evaluation({.done = 1, .count = 8, .seconds = 2});  // less than 0.25 seconds after the step's line
    CHECK(run.text.empty());
    run.now += 0.3;
    progress.evaluation({.done = 2, .count = 8, .seconds = 4});
    CHECK(run.text == "\n\r\x1b[2Kvalidating  2/8 batches  0:12 left");
    run.text.clear();
    progress.evaluation({.done = 8, .count = 8, .seconds = 16});
    CHECK(run.text == "\r\x1b[2K");
    progress.line("validation loss 1");
    CHECK(run.text == "\r\x1b[2Kvalidation loss 1\n");
  }
  SECTION("in a file") {
    Progress progress(run.options(0, false));
    progress.evaluation({.done = 1, .count = 8, .seconds = 2});
    progress.evaluation({.done = 2, .count = 8, .seconds = 4});
    progress.evaluation({.done = 8, .count = 8, .seconds = 16});
    CHECK(run.text == "validating  1/8 batches  0:14 left\n");
  }
}
