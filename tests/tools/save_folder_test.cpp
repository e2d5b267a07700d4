#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/files/safetensors/tensor_folder.h"
#include "runtime/files/sha256.h"
#include "tests/support/programs/process.h"
#include "tests/support/texts/test_data.h"
#include "tests/tools/command.h"

/// Commands that overwrite directories of other models.
using namespace lathe;
using Catch::Matchers::Contains;
using test::run_lathe;
using test::Scratch;
namespace fs = std::filesystem;

namespace {

fs::path model_of(const std::string& name) { return test::test_data("hf/models") / name / "model"; }
std::string llama_adapter() { return (test::test_data("hf/adapters") / "llama_lora" / "adapter").string(); }

void succeed(const Scratch& scratch, const std::string& arguments) {
  const auto ran = run_lathe(scratch, arguments);
  INFO(arguments << "\n" << ran.out << ran.err);
  REQUIRE(ran.status == 0);
}

/// Returns the digests of the files in a folder.
std::map<std::string, std::string> files_in(const Scratch& scratch, const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(scratch.path(folder)))
    if (entry.is_regular_file())
      files[entry.path().filename().string()] =
          sha256_hex(scratch.read(folder + "/" + entry.path().filename().string()));
  return files;
}

/// Writes the sharded Llama of the cases as a single file, with other values.
void write_single(const Scratch& scratch) {
  const TensorFolder folder = TensorFolder::open(model_of("llama"));
  Tensors tensors;
  for (const std::string& name : folder.names()) {
    HostTensor value = folder.file(name).tensor(name);
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, -value.get(i));
    tensors.emplace(name, std::move(value));
  }
  fs::create_directory(scratch.path("single"));
  write_safetensors(scratch.path("single/model.safetensors"), tensors);
  fs::copy(model_of("llama") / "config.json", scratch.path("single/config.json"));
}

/// Writes the same model with its two files swapped, so that the second one is larger.
void write_small_file_first(const Scratch& scratch) {
  const char *first = "model-00001-of-00002.safetensors", *second = "model-00002-of-00002.safetensors";
  fs::create_directory(scratch.path("model"));
  fs::copy(model_of("llama") / "config.json", scratch.path("model/config.json"));
  fs::copy(model_of("llama") / first, scratch.path("model") + "/" + second);
  fs::copy(model_of("llama") / second, scratch.path("model") + "/" + first);
  std::ifstream file(model_of("llama") / "model.safetensors.index.json");
  auto index = nlohmann::json::parse(file);
  for (auto& [tensor, where] : index["weight_map"].items()) where = where == first ? second : first;
  scratch.write("model/model.safetensors.index.json", index.dump());
}

}  // namespace

TEST_CASE("merge replaces a sharded model by a single-file model", "[tools][merge]") {
  const Scratch scratch;
  write_single(scratch);
  const std::string sharded = "merge " + model_of("llama").string() + " --adapter " + llama_adapter() + " -o ";
  const std::string single = "merge single --adapter " + llama_adapter() + " -o ";
  succeed(scratch, sharded + "out");
  CHECK(files_in(scratch, "out").contains("model.safetensors.index.json"));
  succeed(scratch, single + "out");
  succeed(scratch, single + "fresh");
  CHECK(files_in(scratch, "out") == files_in(scratch, "fresh"));

  // Files of other programs are not removed.
  fs::copy(model_of("llama"), scratch.path("theirs"));
  const auto before = files_in(scratch, "theirs");
  const auto ran = run_lathe(scratch, single + "theirs");
  CHECK(ran.status == 1);
  CHECK_THAT(ran.err, Contains("[output_folder]") && Contains("model-00001-of-00002.safetensors"));
  CHECK(files_in(scratch, "theirs") == before);
}

TEST_CASE("a merge that runs out of disk space keeps the previous model", "[tools][merge]") {
  const Scratch scratch;
  write_small_file_first(scratch);
  succeed(scratch, "merge model --adapter " + llama_adapter() + " -o out");
  const auto before = files_in(scratch, "out");
  // This adapter changes weights in both files.
  const fs::path adapter = test::test_data("hf/adapters") / "llama_rslora" / "adapter";
  test::Command command;
  command.words = {LATHE_BINARY, "merge", "model", "--adapter", adapter.string(), "-o", "out"};
  command.folder = scratch.path("");
  command.environment = {{"LATHE_CACHE_DIR", scratch.cache()}};
  command.err = scratch.path("stderr");
  for (const rlim_t bytes : {1000, 50000}) {
    INFO("files of " << bytes << " bytes at most");
    command.limits = {{RLIMIT_FSIZE, bytes}};
    const test::Ending ending = test::run(command);
    CHECK(ending.status == 1);
    CHECK_THAT(scratch.read("stderr"), Contains("File too large"));
    CHECK(files_in(scratch, "out") == before);
  }
  command.limits.clear();
  REQUIRE(test::run(command) == test::Ending{});
  const auto after = files_in(scratch, "out");
  CHECK(after.size() == before.size());
  for (const char* name : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"})
    CHECK(after.at(name) != before.at(name));
}

TEST_CASE("finetune writes an adapter over a model, and a model over an adapter", "[tools][finetune]") {
  const Scratch scratch;
  fs::copy(model_of("qwen3"), scratch.path("model"));
  std::string lines;
  for (int i = 0; i < 8; ++i)
    lines += R"({"text": "the for the for the for"})"
             "\n";
  scratch.write("data.jsonl", lines);
  const std::string tune = "finetune model --data data.jsonl --threads 1 --context 16 --steps 2 --fresh ",
                    lora = tune + "--lora r=4,targets=q_proj --lr 1e-2 ";
  succeed(scratch, lora + "-o adapter");
  succeed(scratch, tune + "-o both");
  CHECK(files_in(scratch, "both").contains("model.safetensors"));
  succeed(scratch, lora + "-o both");
  CHECK(files_in(scratch, "both") == files_in(scratch, "adapter"));
  succeed(scratch, tune + "-o both");
  CHECK_FALSE(files_in(scratch, "both").contains("adapter_config.json"));

  // Nothing is written or trained next to a model of another program.
  fs::copy(model_of("qwen3"), scratch.path("theirs"));
  const auto before = files_in(scratch, "theirs");
  const auto ran = run_lathe(scratch, lora + "-o theirs");
  CHECK(ran.status == 1);
  CHECK_THAT(ran.err, Contains("[output_folder]") && Contains("model.safetensors"));
  CHECK(ran.out.find("the first step took") == std::string::npos);
  CHECK(files_in(scratch, "theirs") == before);
}

TEST_CASE("every command rejects a folder whose save was interrupted", "[tools]") {
  const Scratch scratch;
  fs::copy(model_of("qwen3"), scratch.path("model"));
  scratch.write("model/.lathe-save.json", R"({"complete": false, "files": []})");
  scratch.write("data.jsonl", R"({"text": "the for"})");
  for (const std::string command :
       {"generate model the -n 1", "eval model --text data.jsonl", "model model", "run model --random --dim B=1,T=1",
        "finetune model --data data.jsonl --steps 1 -o tuned",
        "train --text data.jsonl --tokenizer model --steps 1"}) {
    INFO(command);
    const auto ran = run_lathe(scratch, command);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, Contains("[model_folder]") && Contains("interrupted"));
  }
}

TEST_CASE("train saves its model over an earlier one", "[tools][train]") {
  const Scratch scratch;
  scratch.write("text.txt", std::string(400, 'a') + std::string(400, 'b'));
  const std::string train =
      "train --text text.txt --layers 1 --d-model 8 --heads 1 --context 8 --batch 2 --steps 1 --sample 0 --fresh ";
  succeed(scratch, train + "--model gpt -o run");
  succeed(scratch, train + "--model llama -o run");
  succeed(scratch, train + "--model llama -o fresh");
  CHECK(files_in(scratch, "run/model") == files_in(scratch, "fresh/model"));
  scratch.write("run/model/chat_template.jinja", "mine");
  const auto ran = run_lathe(scratch, train + "--model llama -o run");
  CHECK(ran.status == 1);
  CHECK_THAT(ran.err, Contains("[output_folder]") && Contains("chat_template.jinja"));
}
