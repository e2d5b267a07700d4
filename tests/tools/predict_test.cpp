#include <fmt/format.h>

#include <sstream>

#include "tests/tools/command.h"

using lathe::test::Ran;
using lathe::test::run_lathe;
using lathe::test::Scratch;

namespace {

const std::string shard_step =
    "shard step.lathe --mesh data=4,model=2 --split B:data,h:model,d_ff:model,vocab:model ";
const std::string rates = "--rate 1TFLOP/s --bandwidth '80 Gbit/s' --latency 1us ";

void make_step(const Scratch& scratch) {
  const Ran made =
      run_lathe(scratch, "model gpt --layers 1 --d-model 32 --heads 4 --vocab 64 --context 16 --step -o step.lathe");
  INFO(made.err);
  REQUIRE(made.status == 0);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("shard --predict prints its model and one line per mesh", "[tools]") {
  const Scratch scratch;
  make_step(scratch);
  const Ran ran = run_lathe(scratch, shard_step + rates + "--dim B=32,T=16 --predict --svg curve.svg");
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  const auto lines = lines_of(ran.out);
  REQUIRE(lines.size() == 3 + 13 + 3);
  CHECK(lines[0] ==
        "predicted, not measured: a process computes 1.00 TFLOP/s, sends 10.0 GB/s, and takes 1.00 us for a message "
        "(given)");
  CHECK(lines[1] ==
        "axis data grows, with the dims that are split over it; other axes and sizes are fixed: data=4,model=2 with "
        "B=32, T=16");
  for (const std::string_view column : {"ranks", "mesh", "step", "waiting", "efficiency", "sent", "memory"})
    CHECK(holds(lines[2], column));
  for (int i = 0; i <= 12; ++i) {
    const std::string mesh = i == 0 ? "data=1,model=1" : fmt::format("data={},model=2", 1 << (i - 1));
    CHECK(lines[static_cast<std::size_t>(3 + i)].rfind(fmt::format("{:>6}  {} ", 1 << i, mesh), 0) == 0);
  }
  CHECK(holds(lines[3], "100.0%"));
  const std::string svg = scratch.read("curve.svg");
  CHECK(svg.rfind("<svg", 0) == 0);
  CHECK(holds(svg, "predicted, not measured"));
  CHECK(holds(svg, ">4096</text>"));
}

TEST_CASE("shard --predict uses table entries for options that are not given, and says so", "[tools]") {
  const Scratch scratch;
  make_step(scratch);
  const auto first_line = [&](const std::string& options) {
    const Ran ran = run_lathe(scratch, shard_step + "--dim B=32,T=16 --predict " + options);
    INFO(ran.err);
    REQUIRE(ran.status == 0);
    return lines_of(ran.out)[0];
  };
  CHECK(holds(first_line(""), "1.28 TFLOP/s"));
  CHECK(holds(first_line(""), "the peak of x86-64-v4"));
  CHECK(holds(first_line("--machine sm_90a"), "594 TFLOP/s"));
  CHECK(holds(first_line("--latency 0s"), "takes 0 s for a message"));
}

TEST_CASE("shard --predict for a GPU uses times and memory of the compiled program", "[tools]") {
  const Scratch scratch;
  make_step(scratch);
  const auto predicted = [&](const std::string& options) {
    const Ran ran = run_lathe(scratch, shard_step + "--dim B=32,T=16 --predict " + options);
    INFO(ran.err);
    REQUIRE(ran.status == 0);
    return ran.out;
  };
  const std::string ampere = predicted("--target cuda:sm_80"),
                    hopper = predicted("--target cuda:sm_90a --svg gpu.svg");
  CHECK(
      lines_of(hopper)[0] ==
      "predicted, not measured: a process computes 594 TFLOP/s by tensor cores and 66.9 TFLOP/s without, moves "
      "3.00 TB/s of its memory, takes 3.00 us for a kernel, sends 12.5 GB/s, and takes 2.00 us for a message (rates "
      "that are not given: the peak of sm_90a)");
  CHECK(holds(lines_of(ampere)[0], "486 TFLOP/s by tensor cores and 19.4 TFLOP/s without"));
  CHECK(holds(lines_of(hopper)[2], "others"));
  CHECK(holds(hopper, "nothing has been measured on a GPU yet"));
  CHECK(holds(scratch.read("gpu.svg"), "planned memory</text>"));
  // Compares the time of the matmuls (ranks, mesh, step, matmuls): the same f32 work on both, at different rates.
  const auto products = [](const std::string& table) {
    std::istringstream cells(lines_of(table)[3]);
    std::string ranks, mesh, step_unit, unit;
    double step = 0, time = 0;
    cells >> ranks >> mesh >> step >> step_unit >> time >> unit;
    return time * (unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : unit == "ns" ? 1e-9 : 0);
  };
  CHECK(products(hopper) > 0);
  CHECK(products(ampere) / products(hopper) == Approx(0.507 * 132 / (0.18 * 108)).epsilon(0.01));
  CHECK(products(predicted("--target cuda:sm_80 --rate 9.72TFLOP/s")) == Approx(2 * products(ampere)).epsilon(0.01));
  // The link rates are printed.
  CHECK(holds(predicted("--target cuda:sm_90a --bandwidth 450GB/s --latency 5us"),
              "sends 450 GB/s, and takes 5.00 us"));
}

TEST_CASE("shard --explain for a GPU prints its memory plan if the sizes are known", "[tools]") {
  const Scratch scratch;
  make_step(scratch);
  const std::string explained = shard_step + "--explain --target cuda:sm_90a ";
  const Ran unknown = run_lathe(scratch, explained), known = run_lathe(scratch, explained + "--dim B=32,T=16");
  CHECK(unknown.status == 0);
  CHECK_FALSE(holds(unknown.out, "planned for "));
  CHECK(holds(known.out, "\nmemory planned for sm_90a, per process: "));
  CHECK(run_lathe(scratch, explained + "--machine sm_90a").status == 2);
}

TEST_CASE("shard --explain reports how a memory budget decides about gathered parameters", "[tools]") {
  const Scratch scratch;
  make_step(scratch);
  const std::string by_parameters =
      "shard step.lathe --mesh data=4 --split B:data --parameters data --explain --dim B=32,T=16 ";
  const auto explained = [&](const std::string& options) {
    const Ran ran = run_lathe(scratch, by_parameters + options);
    INFO(ran.err);
    REQUIRE(ran.status == 0);
    return ran.out;
  };
  const std::string room = explained("--memory-budget 1GiB");
  CHECK(holds(room, "\ngathered parameters are kept for the backward pass: this needs "));
  CHECK(holds(room, "(budget: 1073741824 bytes)\n"));
  CHECK_FALSE(holds(room, "not kept from the forward pass"));
  const std::string start = "this needs ";
  const std::size_t at = room.rfind(start) + start.size();
  const std::string kept = room.substr(at, room.find(' ', at) - at);
  CHECK(explained("--memory-budget " + kept).find("gathered parameters are kept") != std::string::npos);
  const std::string tight = explained("--memory-budget " + std::to_string(std::stoll(kept) - 1));
  CHECK(holds(tight, "\nparameters are gathered again for the backward pass: "));
  CHECK(holds(tight, "not kept from the forward pass"));
  // With explicit options, no choice is made.
  CHECK(explained("--gather-again --memory-budget 1GiB") == explained(""));
  CHECK_FALSE(holds(explained("--keep-gathered --memory-budget " + kept), "budget: "));
  CHECK(run_lathe(scratch, by_parameters + "--gather-again --keep-gathered").status != 0);
  CHECK(holds(run_lathe(scratch, by_parameters + "--memory-budget 1KiB").err, "[memory_budget]"));
  CHECK(
      holds(run_lathe(scratch, by_parameters + "--memory-budget 1GiB --target cuda:sm_90a").err, "[memory_target]"));
}

TEST_CASE("shard --explain prints times if the sizes are known", "[tools]") {
  const Scratch scratch;
  make_step(scratch);
  const auto times = [&](const std::string& options) {
    const Ran ran = run_lathe(scratch, shard_step + rates + "--explain " + options);
    INFO(ran.err);
    REQUIRE(ran.status == 0);
    int found = 0, all = 0;
    for (const std::string& line : lines_of(ran.out)) {
      found += holds(line, ", predicted ");
      all += holds(line, " bytes, sends ");
    }
    return std::pair(found, all);
  };
  const auto [known, all] = times("");
  CHECK(known > 0);
  CHECK(known < all);
  CHECK(times("--dim B=32,T=16") == std::pair(all, all));
}

TEST_CASE("shard --predict rejects invalid rates and sizes", "[tools]") {
  const Scratch scratch;
  make_step(scratch);
  const auto refused = [&](const std::string& options, const std::string& label) {
    const Ran ran = run_lathe(scratch, shard_step + "--predict " + options);
    INFO(options << ": " << ran.err);
    CHECK(ran.status == 1);
    CHECK(holds(ran.err, label));
  };
  for (const std::string option :
       {"--rate 5", "--rate 5GB/s", "--rate=-1GFLOP/s", "--rate 0FLOP/s", "--rate nanTFLOP/s", "--rate fastFLOP/s",
        "--bandwidth 3", "--bandwidth 0GB/s", "--bandwidth 1e400B/s", "--latency 2", "--latency=-1us",
        "--latency 2us2", "--latency 1m"})
    refused("--dim B=32,T=16 " + std::string(option), "[rate_text]");
  refused("--dim B=32,T=16 --machine x86", "[machine_name]");
  refused("--dim B=32,T=16 --grow batch", "[mesh_axis]");
  refused("--dim B=33,T=16", "[mesh_divide]");
  refused("--dim B=32", "[dim_unbound]");
  CHECK(run_lathe(scratch, shard_step + "--svg curve.svg").status == 2);
}
