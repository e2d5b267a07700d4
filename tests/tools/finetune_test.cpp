#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/files/checkpoint.h"
#include "runtime/files/safetensors.h"
#include "tests/support/test_data.h"
#include "tests/tools/command.h"

using namespace lathe;
using Catch::Matchers::Contains;
using test::run_lathe;
using test::Scratch;
namespace fs = std::filesystem;

namespace {

/// The tiny Qwen3 of the cases, which has a tokenizer and a chat template, and examples for it.
std::string prepare(const Scratch& scratch) {
  fs::copy(test::test_data("hf/models/qwen3/model"), scratch.path("model"));
  std::string lines;
  for (int i = 0; i < 12; ++i) {
    const std::string number = std::to_string(i % 4);
    lines += R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "say )" + number +
             R"("}, {"role": "assistant", "content": "it is )" + number + R"("}]})" + "\n";
    lines += R"({"prompt": "and )" + number + R"(", "completion": " the for"})" + "\n";
  }
  scratch.write("data.jsonl", lines);
  scratch.write("text.txt", "the for the for the for it is 1 it is 2 the for");
  return "finetune model --data data.jsonl --threads 1 --context 60 --batch 4 --lr 1e-2 --warmup 1 "
         "--schedule constant ";
}

std::vector<nlohmann::json> metrics(const Scratch& scratch, const std::string& folder) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(scratch.read(folder + "/training/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

/// "loss 3.5 nats" of `lathe eval`.
double loss_of(const Scratch& scratch, const std::string& arguments) {
  const auto ran = run_lathe(scratch, "eval " + arguments + " --text text.txt --threads 1");
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  const std::size_t at = ran.out.find("\nloss ");
  REQUIRE(at != std::string::npos);
  return std::stod(ran.out.substr(at + 6));
}

}  // namespace

TEST_CASE("finetune trains all weights and writes a directory that goes on to the same bits", "[tools][finetune]") {
  const Scratch scratch;
  const std::string tune = prepare(scratch) + "--save-every 2 --valid 0.2 --eval-every 3 ";
  const auto ran = run_lathe(scratch, tune + "--steps 6 -o whole");
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  CHECK_THAT(ran.out, Contains("to learn") && Contains("of them trained (100.00%)") && Contains("of weights") &&
                          Contains("of optimizer states") && Contains("the first step took") &&
                          Contains("perplexity") && Contains("model in whole"));
  const auto lines = metrics(scratch, "whole");
  std::vector<double> losses;
  int evaluations = 0;
  for (const auto& line : lines) {
    if (line.contains("loss")) losses.push_back(line["loss"]);
    if (!line.contains("validation_loss")) continue;
    ++evaluations;
    CHECK(line["perplexity"].get<double>() == Approx(std::exp(line["validation_loss"].get<double>())));
  }
  CHECK(losses.size() == 6);
  CHECK(losses.back() < losses.front());
  CHECK(evaluations == 2);
  CHECK(scratch.read("whole/training/loss.svg").find("nats a token") != std::string::npos);
  CHECK(scratch.read("whole/tokenizer.json") == scratch.read("model/tokenizer.json"));
  CHECK(scratch.read("whole/config.json") == scratch.read("model/config.json"));
  const auto was = SafetensorsFile::open(scratch.path("model/model.safetensors"));
  const auto is = SafetensorsFile::open(scratch.path("whole/model.safetensors"));
  CHECK(is.names().size() == was.names().size());
  for (const std::string& name : was.names()) CHECK(is.info(name).dtype == was.info(name).dtype);
  CHECK(loss_of(scratch, "whole") < loss_of(scratch, "model"));

  // In two parts, from a checkpoint.
  REQUIRE(run_lathe(scratch, tune + "--steps 2 -o parts").status == 0);
  const auto rest = run_lathe(scratch, tune + "--steps 6 -o parts");
  CHECK_THAT(rest.out, Contains("going on after step 2"));
  CHECK(scratch.read("parts/model.safetensors") == scratch.read("whole/model.safetensors"));
  std::vector<double> again;
  for (const auto& line : metrics(scratch, "parts"))
    if (line.contains("loss")) again.push_back(line["loss"]);
  CHECK(again == losses);
}

TEST_CASE("finetune trains an adapter, packed and accumulated, and eval measures it", "[tools][finetune]") {
  const Scratch scratch;
  const std::string tune = prepare(scratch) + "--pack --accumulate 2 --lora r=4,targets=q_proj:v_proj,dropout=0.1 ";
  const auto ran = run_lathe(scratch, tune + "--steps 6 --save-every 2 -o whole");
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  CHECK_THAT(ran.out, Contains("adapter in whole") && Contains("6 steps of 8 rows"));
  const auto adapter = SafetensorsFile::open(scratch.path("whole/adapter_model.safetensors"));
  CHECK(adapter.names().size() == 8);
  CHECK(adapter.contains("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"));
  CHECK(nlohmann::json::parse(scratch.read("whole/adapter_config.json"))["lora_alpha"] == 8);
  CHECK_FALSE(fs::exists(scratch.path("whole/model.safetensors")));
  const auto lines = metrics(scratch, "whole");
  REQUIRE(lines.size() == 6);
  CHECK(lines.back()["loss"].get<double>() < lines.front()["loss"].get<double>());
  CHECK(loss_of(scratch, "whole") != loss_of(scratch, "model"));

  const auto checkpoint = CheckpointStore(scratch.path("whole/training/checkpoints")).load_newest();
  REQUIRE(checkpoint);
  CHECK(checkpoint->tensors.contains("model.layers.0.self_attn.q_proj.lora_A.weight"));
  CHECK_FALSE(checkpoint->tensors.contains("model.layers.0.self_attn.q_proj.weight"));

  REQUIRE(run_lathe(scratch, tune + "--steps 3 --save-every 2 -o parts").status == 0);
  REQUIRE(run_lathe(scratch, tune + "--steps 6 --save-every 2 -o parts").status == 0);
  CHECK(scratch.read("parts/adapter_model.safetensors") == scratch.read("whole/adapter_model.safetensors"));

  const std::string all_linear = tune.substr(0, tune.find("--lora")) + "--lora r=2 ";
  const auto other = run_lathe(scratch, all_linear + "--steps 7 -o parts");
  CHECK(other.status == 1);
  CHECK_THAT(other.err, Contains("[train_resume]"));
}

TEST_CASE("finetune says what is wrong with what it was given", "[tools][finetune]") {
  const Scratch scratch;
  const std::string tune = prepare(scratch) + "--steps 1 ";
  const auto refused = [&](const std::string& arguments, const std::string& words) {
    const auto ran = run_lathe(scratch, tune + arguments);
    INFO(arguments << "\n" << ran.out << ran.err);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, Contains(words));
  };
  refused("-o model", "[finetune_output]");
  refused("--valid 1.5", "[finetune_valid]");
  refused("--lora r=16,targts=q_proj", "did you mean 'targets'?");
  refused("--lora r=0", "[lora_option]");
  refused("--lora r=x", "[lora_option]");
  refused("--lora targets=q_prj", "[adapter_target]");
  scratch.write("data.jsonl", "{\"text\": \"a b\"}\n{\"txt\": 1}\n");
  refused("", "data.jsonl:2");
  scratch.write("data.jsonl", "{\"prompt\": \"" + std::string(200, 'x') + "\", \"completion\": \"y\"}\n");
  refused("", "[dataset_empty]");
  const auto longer = run_lathe(scratch, "finetune model --data data.jsonl --context 65");
  CHECK_THAT(longer.err, Contains("the model has 64 positions") && Contains("[finetune_context]"));
  const auto eval = run_lathe(scratch, "eval model --text text.txt --context 16 --stride 17");
  CHECK_THAT(eval.err, Contains("[eval_stride]"));
}

TEST_CASE("eval with a stride gives each token more of what stands before it", "[tools][finetune]") {
  const Scratch scratch;
  prepare(scratch);
  const auto one = run_lathe(scratch, "eval model --text text.txt --context 64 --threads 1");
  const auto windows = run_lathe(scratch, "eval model --text text.txt --context 8 --stride 4 --batch 3 --threads 1");
  INFO(one.out << one.err << windows.out << windows.err);
  CHECK(one.status == 0);
  CHECK(windows.status == 0);
  const auto over = [](const std::string& out) { return out.substr(out.find(" tokens, perplexity") - 3, 3); };
  CHECK(over(one.out) == over(windows.out));
  CHECK_THAT(windows.out, Contains("each 4 after the one before") && Contains("tokens/s"));
}
