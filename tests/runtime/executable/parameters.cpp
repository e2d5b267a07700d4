#include "runtime/parameters/parameters.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "ir/tensor/text/parser.h"
#include "runtime/compile.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/parameters/lend.h"
#include "runtime/train/trained_tensors.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/texts/error_label.h"

using namespace lathe;
using test::error_label;
using test::ScratchFolder;

namespace {

/// Each run subtracts x from w.
constexpr std::string_view trains = R"(graph @trains(input %x: f32[4], parameter %w: f32[4]) {
  %1 = sub %w, %x
  output "next" %1
  update %w <- %1
})";
constexpr std::string_view evaluates = R"(graph @evaluates(input %x: f32[n, 4], parameter %w: f32[4]) {
  %1 = mul %x, %w
  output "y" %1
})";

HostTensor four(double a, double b, double c, double d) { return HostTensor::from({4}, {a, b, c, d}); }

/// Resident file-backed memory of the process, in KiB.
std::int64_t mapped_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::int64_t kib = 0; word == "RssFile:" && status >> kib) return kib;
  return 0;
}

}  // namespace

TEST_CASE("executables for training and evaluation share one store") {
  Parameters weights({{"w", four(1, 2, 3, 4)}});
  Executable train = compile(ir::parse_graph(trains), {.parameters = weights});
  Executable evaluate = compile(ir::parse_graph(evaluates), {.parameters = weights});
  CHECK(train.parameters() == weights);
  const HostTensor* where = &weights.get("w");
  const std::byte* data = where->data();
  train.run({{"x", four(1, 1, 1, 1)}});
  const HostTensor ones = HostTensor::from({1, 4}, {1, 1, 1, 1});
  CHECK(evaluate.run({{"x", ones}}).at("y").same_bits(HostTensor::from({1, 4}, {0, 1, 2, 3})));
  CHECK(weights.get("w").same_bits(four(0, 1, 2, 3)));
  CHECK(weights.get("w").data() == data);  // stored once, updated in place

  weights.set("w", four(5, 5, 5, 5));
  CHECK(evaluate.run({{"x", ones}}).at("y").get(0) == 5);
  train.run({{"x", ones.reshaped({4})}});
  CHECK(evaluate.run({{"x", ones}}).at("y").get(0) == 4);
}

TEST_CASE("an executable without a store creates one, and can switch to another") {
  const CompileOptions options;
  Executable a = compile(ir::parse_graph(evaluates), options), b = compile(ir::parse_graph(evaluates), options);
  CHECK_FALSE(a.parameters() == b.parameters());
  Parameters weights({{"w", four(1, 1, 1, 1)}, {"other", HostTensor(f64, {2})}});
  a.use(weights);
  b.use(weights);
  CHECK(a.run({{"x", HostTensor::from({1, 4}, {1, 2, 3, 4})}}).at("y").get(3) == 4);
}

TEST_CASE("values trained by one process are saved without a copy") {
  const Executable train = compile(ir::parse_graph(trains), {.parameters = Parameters({{"w", four(1, 2, 3, 4)}})});
  const std::vector<std::string> names{"w"};
  const Tensors wholes = TrainedTensors(nullptr).wholes(train, names);
  CHECK(wholes.at("w").data() == train.parameters().get("w").data());
}

TEST_CASE("a store reports values that do not fit") {
  Parameters weights({{"w", four(1, 2, 3, 4)}});
  Executable exe = compile(ir::parse_graph(evaluates), {.parameters = weights});
  CHECK(error_label([&] { weights.set("w", HostTensor(f64, {4})); }) == "argument_dtype");
  CHECK(error_label([&] { weights.set("w", HostTensor(f32, {5})); }) == "argument_shape");
  CHECK(error_label([&] { weights.set("ww", HostTensor(f32, {4})); }) == "argument_unknown");
  CHECK(error_label([&] { (void)weights.get("ww"); }) == "argument_unknown");
  CHECK(weights.get("w").same_bits(four(1, 2, 3, 4)));
  CHECK(error_label([&] {
          compile(ir::parse_graph(evaluates), {.parameters = Parameters({{"w", HostTensor(f32, {5})}})});
        }) == "parameters_conflict");
  const auto wider =
      ir::parse_graph("graph @g(input %x: f32[5], parameter %w: f32[5]) {\n%1 = add %x, %w\noutput \"y\" %1\n}");
  CHECK(error_label([&] { compile(wider, {.parameters = weights}); }) == "parameters_conflict");
  weights.erase("w");
  CHECK(error_label([&] { exe.run({{"x", HostTensor(f32, {1, 4})}}); }) == "state_unset");
  CHECK(error_label([&] { (void)weights.get("w"); }) == "state_unset");
}

TEST_CASE("a store maps a file, and training does not modify the file") {
  const ScratchFolder scratch;
  const auto file = scratch / "w.safetensors";
  Parameters({{"w", four(1, 2, 3, 4)}, {"extra", HostTensor::from_ints({1}, {7})}}).save(file);
  Parameters weights = Parameters::load(file);
  CHECK(weights.names() == std::vector<std::string>{"extra", "w"});
  CHECK(weights.get("w").is_borrowed());
  Executable train = compile(ir::parse_graph(trains), {.parameters = weights});
  train.run({{"x", four(1, 1, 1, 1)}});
  CHECK(weights.get("w").is_borrowed());
  CHECK(weights.get("w").same_bits(four(0, 1, 2, 3)));
  CHECK(SafetensorsFile::open(file).tensor("w").same_bits(four(1, 2, 3, 4)));
  weights.save(file);  // overwrites the mapped file
  CHECK(weights.get("w").same_bits(four(0, 1, 2, 3)));
  CHECK(Parameters::load(file).get("w").same_bits(four(0, 1, 2, 3)));
}

TEST_CASE("a store reports where its values are: memory, a mapped file, borrowed memory") {
  using Host = ParameterLocation::Host;
  const ScratchFolder scratch;
  const auto file = scratch / "w.safetensors";
  Parameters({{"w", four(1, 2, 3, 4)}}).save(file);
  Parameters weights = Parameters::load(file);
  weights.set("own", four(1, 2, 3, 4));
  const HostTensor callers = four(5, 6, 7, 8);
  weights.set("lent", lend(callers));
  const auto mapped = ParameterLocation{.host = Host::file, .file = file};
  CHECK(weights.location("w") == mapped);
  CHECK(weights.location("own") == ParameterLocation{});
  CHECK(weights.location("lent") == ParameterLocation{.host = Host::lent});
  CHECK(weights.location("w").newest().type == dlpack::Device::cpu);
  CHECK(error_label([&] { (void)weights.location("W"); }) == "argument_unknown");
  CHECK(to_string(weights) ==
        "3 values, 48 B\n  1 value, 16 B in lent memory\n  1 value, 16 B in memory\n  1 value, 16 B in " +
            file.string() + ", mapped\n");

  const Parameters borrowed = weights.borrowed();
  CHECK(borrowed.location("w") == mapped);
  CHECK(borrowed.location("own") == ParameterLocation{.host = Host::lent});
  weights.set("w", weights.get("w"));  // a copy
  CHECK(weights.location("w") == ParameterLocation{});

  Parameters copied = Parameters::load(file);
  compile(ir::parse_graph(trains), {.parameters = copied}).run({{"x", four(1, 1, 1, 1)}});
  CHECK(copied.location("w") == mapped);  // written by a run
  copied.copy_to_memory();
  CHECK(copied.location("w").host != Host::file);
  CHECK(copied.shares().size() == 1);
}

TEST_CASE("a store with borrowed values keeps them whatever happens to the other store") {
  const ScratchFolder scratch;
  const auto file = scratch / "w.safetensors";
  // Large enough to have its own pages.
  HostTensor large(f32, {std::int64_t{5} << 20});
  for (std::int64_t i = 0; i < large.numel(); i += 1000) large.set(i, static_cast<double>(i));
  Parameters({{"large", large}, {"small", four(1, 2, 3, 4)}}).save(file);
  Parameters weights = Parameters::load(file);
  weights.set("own", four(5, 6, 7, 8));
  const Parameters borrowed = weights.borrowed();
  // Values that a run has written in place are not in the file.
  HostTensor& written = const_cast<HostTensor&>(borrowed.get("large"));
  written.set(4096, -1);
  CHECK(weights.get("large").get(4096) == -1);
  const auto holds = [&](const Parameters& store) {
    HostTensor want = large;
    want.set(4096, -1);
    CHECK(store.get("large").same_bits(want));
    CHECK(store.get("small").same_bits(four(1, 2, 3, 4)));
    CHECK(store.get("own").same_bits(four(5, 6, 7, 8)));
  };
  SECTION("copied") {
    weights.copy_to_memory();
    holds(weights);
    written.set(8192, -2);
    CHECK(weights.get("large").get(8192) == 0);
    written.set(8192, 0);
  }
  SECTION("set") {
    for (const std::string& name : weights.names()) weights.set(name, four(0, 0, 0, 0));
  }
  SECTION("destroyed") { weights = Parameters(); }
  holds(borrowed);
}

TEST_CASE("copying to memory releases the mapped pages, and keeps written values") {
  const ScratchFolder scratch;
  const auto file = scratch / "w.safetensors";
  HostTensor large(f32, {std::int64_t{16} << 20});  // 64 MiB
  for (std::int64_t i = 0; i < large.numel(); i += 1024) large.set(i, static_cast<double>(i));
  Parameters({{"large", large}}).save(file);
  Parameters weights = Parameters::load(file);
  const_cast<HostTensor&>(weights.get("large")).set(3 << 20, -1);
  large.set(3 << 20, -1);
  const std::int64_t before = mapped_kib();
  std::int64_t most = 0;
  std::atomic<bool> done = false;
  std::thread watch([&] {
    while (!done) most = std::max(most, mapped_kib());
  });
  weights.copy_to_memory();
  done = true;
  watch.join();
  CHECK(weights.get("large").same_bits(large));
  CHECK(most - before < 40 << 10);
}

TEST_CASE("a store saves the values that a filter selects") {
  const ScratchFolder scratch;
  const Parameters store({{"w", four(1, 2, 3, 4)}, {"optimizer.m.w", four(5, 6, 7, 8)}});
  store.save(scratch / "model.safetensors", [](std::string_view name) { return !name.starts_with("optimizer."); });
  CHECK(Parameters::load(scratch / "model.safetensors").names() == std::vector<std::string>{"w"});
  store.save(scratch / "all.safetensors");
  CHECK(Parameters::load(scratch / "all.safetensors").names().size() == 2);
  CHECK(error_label([&] { store.save(scratch / "none", [](std::string_view) { return false; }); }) ==
        "argument_unknown");
  CHECK_FALSE(std::filesystem::exists(scratch / "none"));
}

TEST_CASE("a snapshot of a value keeps it when runs update it") {
  Parameters store({{"w", four(1, 2, 3, 4)}});
  Executable train = compile(ir::parse_graph(trains), {.parameters = store});
  const HostTensor before = store.snapshot("w");
  const HostTensor& now = store.get("w");
  train.run({{"x", four(1, 1, 1, 1)}});
  CHECK(before.same_bits(four(1, 2, 3, 4)));
  CHECK(now.same_bits(four(0, 1, 2, 3)));
  CHECK(error_label([&] { (void)store.snapshot("v"); }) == "argument_unknown");
}

TEST_CASE("runs on one store from several threads take turns if they update it") {
  Parameters weights({{"w", four(0, 0, 0, 0)}});
  std::vector<Executable> trainers;
  for (int i = 0; i < 3; ++i)
    trainers.push_back(compile(ir::parse_graph(trains), {.parameters = weights, .threads = 1}));
  Executable evaluate = compile(ir::parse_graph(evaluates), {.parameters = weights, .threads = 1});
  std::vector<std::thread> threads;
  for (Executable& trainer : trainers)
    threads.emplace_back([&trainer] {
      for (int i = 0; i < 50; ++i) trainer.run({{"x", four(-1, -1, -1, -1)}});
    });
  for (int i = 0; i < 50; ++i) {
    const HostTensor y = evaluate.run({{"x", HostTensor::from({1, 4}, {1, 1, 1, 1})}}).at("y");
    CHECK(y.get(0) == y.get(3));
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(weights.get("w").same_bits(four(150, 150, 150, 150)));
}
