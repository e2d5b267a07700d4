#include "models/finetune/fine_tuning.h"
#include "models/finetune/new_model/text_training.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/test_data.h"
#include "tests/tools/command.h"

using namespace lathe;
using test::run_lathe;
using test::Scratch;
namespace fs = std::filesystem;

TEST_CASE("finetune writes the same adapter as the library", "[tools][finetune]") {
  const Scratch scratch;
  fs::copy(test::test_data("hf/models/qwen3/model"), scratch.path("model"));
  std::string lines;
  for (int i = 0; i < 24; ++i)
    lines += R"({"prompt": "and )" + std::to_string(i % 4) + R"(", "completion": " the for"})" + "\n";
  scratch.write("data.jsonl", lines);
  const auto ran =
      run_lathe(scratch,
                "finetune model --data data.jsonl --threads 1 --context 60 --batch 4 --lr 1e-2 --warmup 1 "
                "--schedule constant --valid 0.2 --pack --accumulate 2 --weight-decay 0.1 --seed 3 "
                "--lora r=4,targets=q_proj:v_proj,dropout=0.1 --steps 4 -o command");
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  const TrainingResult result =
      FineTuning(
          {.model = scratch.path("model"),
           .data = scratch.path("data.jsonl"),
           .valid_share = 0.2,
           .output = scratch.path("library"),
           .lora =
               pretrained::LoraConfig{
                   .r = 4, .alpha = 8, .dropout = 0.1, .targets = std::vector<std::string>{"q_proj", "v_proj"}},
           .steps = 4,
           .batch = 4,
           .accumulate = 2,
           .context = 60,
           .pack = true,
           .optimizer = {.decay = RateDecay::constant, .lr = 1e-2, .weight_decay = 0.1, .warmup = 1},
           .seed = 3,
           .compile = {.threads = 1, .cache = test::shared_kernels()}})
          .run();
  CHECK(result.steps == 4);
  for (const char* file : {"adapter_model.safetensors", "adapter_config.json", "tokenizer.json"}) {
    CAPTURE(file);
    CHECK(scratch.read(std::string("library/") + file) == scratch.read(std::string("command/") + file));
  }
}

TEST_CASE("train writes the same model as the library", "[tools][train]") {
  const Scratch scratch;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "abc ab" + std::string(static_cast<std::size_t>(i % 5), 'd') + "\n";
  scratch.write("text.txt", text);
  const auto ran = run_lathe(scratch,
                             "train --text text.txt -o command --model gpt --dropout 0.1 --layers 1 --d-model 8 "
                             "--heads 2 --context 8 --batch 2 --steps 6 --lr 1e-2 --threads 1 --sample 0");
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  TextTraining training(
      {.text = scratch.path("text.txt"),
       .model = {.kind = "gpt", .layers = 1, .d_model = 8, .heads = 2, .context = 8, .dropout = 0.1},
       .output = scratch.path("library"),
       .steps = 6,
       .batch = 2,
       .optimizer = {.lr = 1e-2},
       .compile = {.threads = 1, .cache = test::shared_kernels()}});
  CHECK(training.run().steps == 6);
  for (const char* file : {"model.safetensors", "config.json", "tokenizer.json", "generation_config.json"}) {
    CAPTURE(file);
    CHECK(scratch.read(std::string("library/model/") + file) == scratch.read(std::string("command/model/") + file));
  }
}
