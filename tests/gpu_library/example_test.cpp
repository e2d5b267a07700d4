#include <fmt/core.h>

#include <catch2/catch.hpp>

#include "frontend/initial_values.h"
#include "frontend/models/loss_graph.h"
#include "frontend/train/step.h"
#include "runtime/compile.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/gpu_library/library_case.h"
#include "tests/gpu_library/mock_machine.h"
#include "tests/support/tensors/compare_tensors.h"
#include "tests/support/texts/test_data.h"

/// examples/embedded/train_gpu, built by its own Makefile, next to Lathe itself.
using namespace lathe;
using namespace lathe::test;

TEST_CASE("gpu library: a program in C trains GPT-2 like a compiled step, bit for bit") {
  if (!has_mock_compiler()) return;
  constexpr std::int64_t steps = 3, B = 4, T = 32;  // as in train_gpu.c
  models::LossGraph forward = models::loss_graph(models::GptConfig{
      .vocab = {"vocab", 256}, .context = {"context", 32}, .d_model = {"d_model", 32}, .h = {"h", 2}, .layers = 1});
  const ir::Graph graph = training_step(forward.graph, "loss", AdamW{.lr = 3e-3}, {});
  LibraryOptions options = GpuLibrary::options({{"B", B}, {"T", T}}, forward.initializers);
  options.prefix = "gpt";
  const GpuLibrary library(graph, options);
  const ScratchFolder& folder = library.folder();
  std::string text;
  for (int i = 0; text.size() < 2000; ++i) text += fmt::format("to be or not to be, {} times; ", i * i);
  spit(folder / "text.txt", text);
  const Tensors start = initial_values(graph, forward.initializers, 5);
  write_safetensors(folder / "start.safetensors", start);
  for (const char* const file : {"Makefile", "train_gpu.c"})
    std::filesystem::copy_file(source_path("examples/embedded/train_gpu") / file, folder / file);
  const ShellRun built = run_on_mock(
      folder,
      fmt::format("make LIBRARY=. CFLAGS=\"-O2 -std=c99 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -pedantic -I'{}'\"",
                  helper_folder()));
  INFO(built.output);
  REQUIRE(built.status == 0);
  const ShellRun trained =
      run_on_mock(folder, fmt::format("./train_gpu text.txt {} start.safetensors trained.safetensors", steps));

  Executable jit = compile(graph, {.target = mock_target(folder / "log"), .threads = 2});
  jit.parameters().set(start);
  std::string expected;
  for (std::int64_t s = 0; s < steps; ++s) {
    HostTensor tokens(i64, {B, T + 1});
    for (std::int64_t b = 0; b < B; ++b)
      for (std::int64_t t = 0; t <= T; ++t)
        tokens.set_int(b * (T + 1) + t, text[static_cast<std::size_t>((s * B + b) * T % (std::ssize(text) - T) + t)]);
    const auto loss = jit.run({{"tokens", tokens}}).at("loss").item<float>();
    expected += fmt::format("step {}: loss {:.9g}\n", s + 1, loss);
  }
  CHECK(trained.output == expected);
  CHECK(trained.status == 0);
  const SafetensorsFile result = SafetensorsFile::open(folder / "trained.safetensors");
  CHECK(result.names().size() == start.size());
  for (const std::string& name : result.names()) {
    CAPTURE(name);
    CHECK(same_bits(result.tensor(name), jit.parameters().get(name)));
  }
  const ShellRun wrong = run_on_mock(folder, "./train_gpu text.txt 1 text.txt other.safetensors");
  CHECK(wrong.status == 1);
  CHECK_THAT(wrong.output, Catch::Contains("the header is longer than the file"));
  const ShellRun alone =
      run_on_mock(folder, "LD_LIBRARY_PATH= ./train_gpu text.txt 1 start.safetensors other.safetensors");
  CHECK(alone.status == 1);
  CHECK_THAT(alone.output,
             Catch::Contains("libcuda.so.1 is not found") || Catch::Contains("the CUDA driver finds no GPU"));
}
