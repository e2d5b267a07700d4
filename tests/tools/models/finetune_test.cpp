#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/files/checkpoint.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/support/texts/test_data.h"
#include "tests/tools/command.h"

using namespace lathe;
using Catch::Matchers::Contains;
using test::run_lathe;
using test::Scratch;
namespace fs = std::filesystem;

namespace {

/// Prepares the tiny Qwen3 of the cases, which has a tokenizer and a chat template, and training examples.
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

/// Returns the loss that `lathe eval` prints, such as "loss 3.5 nats".
double loss_of(const Scratch& scratch, const std::string& arguments) {
  const auto ran = run_lathe(scratch, "eval " + arguments + " --text text.txt --threads 1");
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  const std::size_t at = ran.out.find("\nloss ");
  REQUIRE(at != std::string::npos);
  return std::stod(ran.out.substr(at + 6));
}

}  // namespace

TEST_CASE("finetune trains all weights and writes a directory that resumes to the same bits", "[tools][finetune]") {
  const Scratch scratch;
  const std::string tune = prepare(scratch) + "--save-every 2 --valid 0.2 --eval-every 3 ";
  const auto ran = run_lathe(scratch, tune + "--steps 6 -o whole");
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  CHECK_THAT(ran.out, Contains("to train on)") && Contains("parameters, ") && Contains("trained (100.00%)") &&
                          Contains("of weights") && Contains("of optimizer states") &&
                          Contains("the first step took") && Contains("perplexity") && Contains("model in whole"));
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
  CHECK(scratch.read("whole/training/loss.svg").find("nats per token") != std::string::npos);
  CHECK(scratch.read("whole/tokenizer.json") == scratch.read("model/tokenizer.json"));
  CHECK(scratch.read("whole/config.json") == scratch.read("model/config.json"));
  const auto was = SafetensorsFile::open(scratch.path("model/model.safetensors"));
  const auto is = SafetensorsFile::open(scratch.path("whole/model.safetensors"));
  CHECK(is.names().size() == was.names().size());
  for (const std::string& name : was.names()) CHECK(is.info(name).dtype == was.info(name).dtype);
  CHECK(loss_of(scratch, "whole") < loss_of(scratch, "model"));

  // In two runs, the second one resumed from a checkpoint.
  REQUIRE(run_lathe(scratch, tune + "--steps 2 -o parts").status == 0);
  const auto rest = run_lathe(scratch, tune + "--steps 6 -o parts");
  CHECK_THAT(rest.out, Contains("resuming after step 2"));
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

TEST_CASE("finetune generates samples while it trains, without a change in the result", "[tools][finetune]") {
  const Scratch scratch;
  const std::string tune = prepare(scratch) + "--lora r=2 --steps 5 ";
  const auto ran = run_lathe(
      scratch, tune + "--sample-prompt 'the for' --sample-prompt and --sample-every 2 --sample-tokens 5 -o sampled");
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  CHECK_THAT(ran.out, Contains("step     2  prompt \"the for\", sample \"") &&
                          Contains("step     5  prompt \"and\", sample \""));
  std::vector<nlohmann::json> samples;
  for (const auto& line : metrics(scratch, "sampled"))
    if (line.contains("sample")) samples.push_back(line);
  REQUIRE(samples.size() == 6);  // for two prompts after 2, 4 and 5 steps
  CHECK(samples[1]["step"] == 2);
  CHECK(samples[1]["prompt"] == "and");
  CHECK(samples[5]["step"] == 5);
  // The last sample equals the output of the saved adapter.
  const auto generated = run_lathe(scratch, "generate sampled and -n 5 -q --threads 1");
  CHECK(generated.out == samples[5]["sample"].get<std::string>() + "\n");
  REQUIRE(run_lathe(scratch, tune + "-o plain").status == 0);
  CHECK(scratch.read("sampled/adapter_model.safetensors") == scratch.read("plain/adapter_model.safetensors"));
  CHECK(run_lathe(scratch, tune + "--sample-every 2 -o other").status == 2);
  CHECK(run_lathe(scratch, tune + "--sample-prompt and --sample-chat --sample-tokens 2 -o chat").status == 0);
}
TEST_CASE("an adapter with dropout generates, samples and is a graph without dropout", "[tools][finetune]") {
  const Scratch scratch;
  const std::string tune = prepare(scratch) + "--lora r=2,dropout=0.5 --steps 3 ";
  const auto ran = run_lathe(scratch, tune + "--sample-prompt and --sample-tokens 5 -o adapter");
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  std::string sample;
  for (const auto& line : metrics(scratch, "adapter"))
    if (line.contains("sample")) sample = line["sample"];
  const auto text = run_lathe(scratch, "generate adapter and -n 5 -q --threads 1");
  CHECK(text.status == 0);
  CHECK(text.out == sample + "\n");
  REQUIRE(run_lathe(scratch, "merge adapter -o merged").status == 0);
  CHECK(run_lathe(scratch, "generate merged and -n 5 -q --threads 1").out == text.out);
  for (const char* part : {"logits", "loss", "prompt", "ragged", "step"}) {
    const auto graph = run_lathe(scratch, std::string("model model --adapter adapter --part ") + part);
    CHECK(graph.status == 0);
    CHECK_THAT(graph.out, Contains("lora_A") && !Contains("dropout") && !Contains("rng"));
  }
  CHECK_THAT(run_lathe(scratch, "model model --adapter adapter --step").out, Contains("dropout"));
}

TEST_CASE("an adapter can replace its model in every command, and merges into a standalone model",
          "[tools][finetune]") {
  const Scratch scratch;
  REQUIRE(run_lathe(scratch, prepare(scratch) + "--lora r=4 --steps 6 -o adapter").status == 0);
  const auto merged = run_lathe(scratch, "merge adapter -o merged");
  INFO(merged.out << merged.err);
  REQUIRE(merged.status == 0);
  CHECK_THAT(merged.out, Contains("14 layers merged; model in merged"));
  for (const char* file : {"config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"})
    CHECK(scratch.read(std::string("merged/") + file) == scratch.read(std::string("model/") + file));
  REQUIRE(run_lathe(scratch, "merge model --adapter adapter -o again").status == 0);
  CHECK(scratch.read("again/model.safetensors") == scratch.read("merged/model.safetensors"));

  const auto logits = [&](const std::string& folder) {
    REQUIRE(run_lathe(scratch, "model " + folder + " --dtype f64 -o graph.lathe").status == 0);
    const std::string of = folder.substr(0, folder.find(' '));
    REQUIRE(
        run_lathe(scratch, "run graph.lathe --input " + of + " --random --dim B=2,T=7 -o out.safetensors").status ==
        0);
    return SafetensorsFile::open(scratch.path("out.safetensors")).tensor("logits");
  };
  const HostTensor with = logits("adapter"), alone = logits("merged"), before = logits("model");
  double difference = 0, change = 0;
  for (std::int64_t i = 0; i < with.numel(); ++i) {
    difference = std::max(difference, std::abs(with.get(i) - alone.get(i)));
    change = std::max(change, std::abs(with.get(i) - before.get(i)));
  }
  CHECK(difference < 1e-5);
  CHECK(change > 1e-2);

  const std::string told = "'the for' -n 8 -q --threads 1";
  const auto text = run_lathe(scratch, "generate adapter " + told);
  CHECK(text.status == 0);
  CHECK(run_lathe(scratch, "generate merged " + told).out == text.out);
  CHECK(run_lathe(scratch, "generate model --adapter adapter " + told).out == text.out);
  CHECK(run_lathe(scratch, "generate adapter --chat and -n 2 -q --threads 1").status == 0);
  const double loss = loss_of(scratch, "adapter");
  CHECK(loss_of(scratch, "model --adapter adapter") == loss);
  CHECK(loss_of(scratch, "merged") == Approx(loss).epsilon(1e-5));
  CHECK_THAT(run_lathe(scratch, "model model --adapter adapter").out, Contains("lora_A"));

  const auto refused = [&](const std::string& arguments, const std::string& label) {
    const auto ran = run_lathe(scratch, arguments);
    INFO(arguments << "\n" << ran.out << ran.err);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, Contains("[" + label + "]"));
  };
  refused("merge model -o other", "adapter_base");
  refused("merge adapter -o model", "output_folder");
  refused("merge adapter -o adapter", "output_folder");
  fs::rename(scratch.path("model"), scratch.path("moved"));
  refused("generate adapter x", "adapter_base");
  CHECK(run_lathe(scratch, "generate moved --adapter adapter " + told).out == text.out);
}

TEST_CASE("finetune continues to train an adapter", "[tools][finetune]") {
  const Scratch scratch;
  const std::string tune = prepare(scratch);
  REQUIRE(run_lathe(scratch, tune + "--lora r=4 --steps 6 -o adapter").status == 0);
  const std::string further = "finetune adapter" + tune.substr(tune.find(" --"));
  const auto ran = run_lathe(scratch, further + "--steps 12 -o further");
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  // It starts at the loss where the previous run ended.
  CHECK(metrics(scratch, "further").front()["loss"] < metrics(scratch, "adapter").front()["loss"]);
  // The same as naming the model that the adapter belongs to.
  REQUIRE(run_lathe(scratch, tune + "--adapter adapter --steps 12 -o named").status == 0);
  CHECK(scratch.read("named/adapter_model.safetensors") == scratch.read("further/adapter_model.safetensors"));
  const auto refused = [&](const std::string& arguments, const std::string& label) {
    const auto failed = run_lathe(scratch, arguments);
    INFO(arguments << "\n" << failed.out << failed.err);
    CHECK(failed.status == 1);
    CHECK_THAT(failed.err, Contains("[" + label + "]"));
  };
  refused(further + "--lora r=8 -o other", "lora_option");
  refused(tune + "--lora r=1048577 -o other", "lora_option");
  refused(further + "-o adapter", "output_folder");
}

TEST_CASE("model writes the step of fine-tuning: all weights, a new adapter, or an existing one",
          "[tools][finetune]") {
  const Scratch scratch;
  const std::string tune = prepare(scratch);
  const auto step = [&](const std::string& arguments) {
    const auto ran = run_lathe(scratch, "model " + arguments + " --step --lr 1e-2 -o step.lathe");
    INFO(ran.out << ran.err);
    REQUIRE(ran.status == 0);
    CHECK(run_lathe(scratch, "verify step.lathe").status == 0);
    return scratch.read("step.lathe");
  };
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  const std::string moment = "state %optimizer.m.";
  const std::string whole = step("model");
  CHECK(count(whole, moment) > 10);
  CHECK(count(whole, "lora_A") == 0);
  const std::string adapter = step("model --lora r=4,targets=q_proj");
  CHECK(count(adapter, moment) == 4);  // A and B in two layers
  CHECK(count(adapter, moment + "model.layers.0.self_attn.q_proj.lora_A") == 1);
  REQUIRE(run_lathe(scratch, tune + "--lora r=4,targets=q_proj --steps 1 -o adapter").status == 0);
  CHECK(step("adapter") == adapter);
  CHECK(step("model --adapter adapter") == adapter);
  const auto ran = run_lathe(scratch, "model model --lora --step -o step.lathe");
  CHECK(ran.status == 0);
  CHECK(count(scratch.read("step.lathe"), "lora_B") > 10);
  for (const auto& [arguments, message] : std::map<std::string, std::string>{
           {"gpt --step --lora r=4", "--lora has no effect on gpt, a built-in model"},
           {"gpt --part step", "--part has no effect on"},
           {"model --layers 3", "--layers has no effect on model, a model directory"},
           {"model --step --dropout 0.1", "--dropout has no effect on"},
           {"model --fix-dim B=3", "--fix-dim has no effect on"},
           {"gpt --batch 2", "--batch has no effect on"},
           {"gpt --dtype bf16", "--dtype has no effect on"},
           {"gpt --weights q8", "--weights has no effect on"},
           {"adapter --step --lora r=4", "the adapter in adapter has its own settings"},
           {"model --lora r=4", "--lora requires --step"},
           {"model --step --part loss", "--part excludes --step"},
           {"model --step --weights q8", "--weights excludes --step"},
           {"model --step --lora r=0", "r is 0"}}) {
    const auto refused = run_lathe(scratch, "model " + arguments);
    INFO(arguments << ": " << refused.err);
    CHECK(refused.status != 0);
    CHECK_THAT(refused.err, Contains(message));
  }
}

TEST_CASE("finetune trains on plain text and source files in windows", "[tools][finetune]") {
  const Scratch scratch;
  prepare(scratch);
  const std::string tune = "finetune model --threads 1 --context 8 --batch 2 --steps 2 --valid 0.5 ";
  const auto text = run_lathe(scratch, tune + "--text text.txt -o text");
  INFO(text.out << text.err);
  CHECK(text.status == 0);
  CHECK_THAT(text.out, Contains("training: ") && Contains("validation: ") && Contains("model in text"));
  fs::create_directories(scratch.path("sources"));
  scratch.write("sources/a.cpp", "the for the for the for it is 1 it is 2 the for");
  CHECK(run_lathe(scratch, tune + "--sources sources -o code").status == 0);
  CHECK(run_lathe(scratch, tune + "-o none").status == 2);
  CHECK(run_lathe(scratch, tune + "--text text.txt --data data.jsonl -o both").status == 2);
}

TEST_CASE("finetune reports invalid input", "[tools][finetune]") {
  const Scratch scratch;
  const std::string tune = prepare(scratch) + "--steps 1 ";
  const auto refused = [&](const std::string& arguments, const std::string& words) {
    const auto ran = run_lathe(scratch, tune + arguments);
    INFO(arguments << "\n" << ran.out << ran.err);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, Contains(words));
  };
  refused("-o model", "[output_folder]");
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

TEST_CASE("eval with a stride gives each token more context", "[tools][finetune]") {
  const Scratch scratch;
  prepare(scratch);
  const auto one = run_lathe(scratch, "eval model --text text.txt --context 64 --threads 1");
  const auto windows = run_lathe(scratch, "eval model --text text.txt --context 8 --stride 4 --batch 3 --threads 1");
  INFO(one.out << one.err << windows.out << windows.err);
  CHECK(one.status == 0);
  CHECK(windows.status == 0);
  const auto over = [](const std::string& out) { return out.substr(out.find(" tokens, perplexity") - 3, 3); };
  CHECK(over(one.out) == over(windows.out));
  CHECK_THAT(windows.out, Contains("windows of up to 8 tokens, stride 4") && Contains("tokens/s"));
}
