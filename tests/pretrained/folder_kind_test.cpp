#include <algorithm>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "models/pretrained/encoders/encoder.h"
#include "models/pretrained/image_models/image_model.h"
#include "models/pretrained/lora/adapted_model.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
#include "runtime/files/write/folder_save.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/texts/test_data.h"

/// Directories that are not models: each kind has its own message. Directories that hold two models.
using namespace lathe;
using Catch::Contains;
using test::Failure;
using test::failure_of;
using test::ScratchFolder;
using test::spit;
using test::test_data;
namespace fs = std::filesystem;

namespace {

fs::path model_of(const std::string& name) { return test_data("hf/models") / name / "model"; }
fs::path llama_adapter() { return test_data("hf/adapters") / "llama_lora" / "adapter"; }

/// Returns the error, which must be the same for every function that takes a model directory.
Failure failure_of_all(const fs::path& folder) {
  const Failure failure = failure_of([&] { (void)pretrained::find_adapted(folder); });
  INFO(failure.text);
  CHECK(failure_of([&] { (void)pretrained::load_pretrained<pretrained::CausalLm>(folder); }).text == failure.text);
  CHECK(failure_of([&] { (void)pretrained::load_pretrained<pretrained::Encoder>(folder); }).text == failure.text);
  CHECK(failure_of([&] { (void)pretrained::load_pretrained<pretrained::Seq2SeqLm>(folder); }).text == failure.text);
  CHECK(failure_of([&] { (void)pretrained::load_pretrained<pretrained::ImageModel>(folder); }).text == failure.text);
  return failure;
}

void check_kind(const fs::path& folder, const std::vector<std::string>& words) {
  const Failure failure = failure_of_all(folder);
  CHECK(failure.label == "model_folder");
  for (const std::string& word : words) CHECK_THAT(failure.text, Contains(word));
}

}  // namespace

TEST_CASE("a directory that is not a model is reported by its contents") {
  const ScratchFolder scratch;
  const fs::path folder = scratch / "given";
  SECTION("nothing") { check_kind(folder, {"there is no directory", "given"}); }
  SECTION("a file") {
    spit(folder, "{}");
    check_kind(folder, {"is a file, not a directory"});
  }
  SECTION("a GGUF file") {
    spit(scratch / "m.gguf", "GGUF");
    check_kind(scratch / "m.gguf", {"m.gguf", "is a GGUF file"});
  }
  SECTION("an empty directory") {
    fs::create_directory(folder);
    check_kind(folder, {"no config.json", "it is empty"});
  }
  SECTION("weights in another format only") {
    for (const auto& [file, kind] : {std::pair{"model-Q4_K_M.gguf", "a GGUF file"},
                                     {"pytorch_model.bin", "a file of PyTorch"},
                                     {"tf_model.h5", "TensorFlow"}}) {
      fs::remove_all(folder);
      fs::create_directory(folder);
      spit(folder / file, "");
      check_kind(folder, {"no config.json", file, kind});
    }
  }
  SECTION("a Hugging Face cache folder") {
    const fs::path snapshot = folder / "snapshots" / "c1899de289a04d12100db370d81485cdf75e47ca";
    fs::create_directories(snapshot);
    fs::create_directories(folder / "refs");
    spit(snapshot / "config.json", "{}");
    check_kind(folder, {"Hugging Face cache", "c1899de289a04d12100db370d81485cdf75e47ca"});
  }
  SECTION("a lathe train run") {
    fs::create_directories(folder / "model");
    fs::create_directories(folder / "checkpoints");
    spit(folder / "model" / "config.json", "{}");
    check_kind(folder, {"in a folder below it", "given/model"});
  }
  SECTION("formats of other libraries") {
    fs::create_directory(folder);
    spit(folder / "model_index.json", "{}");
    check_kind(folder, {"diffusers"});
    fs::remove(folder / "model_index.json");
    spit(folder / "params.json", "{}");
    check_kind(folder, {"params.json"});
  }
  SECTION("an adapter without its configuration") {
    fs::create_directory(folder);
    spit(folder / "adapter_model.safetensors", "");
    check_kind(folder, {"no adapter_config.json"});
  }
  SECTION("something else") {
    fs::create_directory(folder);
    spit(folder / "notes.txt", "");
    check_kind(folder, {"no config.json", "not the directory of a model"});
  }
}

TEST_CASE("a model without .safetensors files is reported by its format") {
  const ScratchFolder scratch;
  fs::copy(model_of("qwen3") / "config.json", scratch / "config.json");
  CHECK_THAT(failure_of([&] { (void)pretrained::load_pretrained<pretrained::CausalLm>(scratch.path()); }).text,
             Contains("neither model.safetensors nor"));
  spit(scratch / "pytorch_model.bin", "PK");
  const Failure failure =
      failure_of([&] { (void)pretrained::load_pretrained<pretrained::CausalLm>(scratch.path()); });
  CHECK(failure.label == "model_folder");
  CHECK_THAT(failure.text, Contains("pytorch_model.bin") && Contains("PyTorch") && Contains("safe_serialization"));
}

TEST_CASE("large files that Git LFS has not fetched are reported as such") {
  const ScratchFolder scratch;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '0') + "\nsize 988097824\n";
  for (const char* file : {"model.safetensors", "config.json"}) {
    const fs::path folder = scratch / file;
    fs::copy(model_of("qwen3"), folder);
    spit(folder / file, pointer);
    const Failure failure = failure_of([&] { (void)pretrained::load_pretrained<pretrained::CausalLm>(folder); });
    CHECK(failure.label == "file_format");
    CHECK_THAT(failure.text, Contains(file) && Contains("git lfs pull"));
  }
}

TEST_CASE("an adapter in PyTorch format, or without weights, is reported as such") {
  const ScratchFolder scratch;
  fs::copy(llama_adapter() / "adapter_config.json", scratch / "adapter_config.json");
  const auto failure = [&] {
    return failure_of(
        [&] { (void)pretrained::load_adapted<pretrained::CausalLm>({model_of("llama"), scratch.path()}); });
  };
  CHECK(failure().label == "adapter_missing");
  CHECK_THAT(failure().text, Contains("no adapter_model.safetensors"));
  spit(scratch / "adapter_model.bin", "PK");
  CHECK(failure().label == "adapter_missing");
  CHECK_THAT(failure().text, Contains("adapter_model.bin") && Contains("PyTorch"));
}

TEST_CASE("a directory with a model and an adapter is rejected unless both are named") {
  const ScratchFolder scratch;
  const fs::path both = scratch / "both";
  fs::copy(model_of("llama"), both);
  for (const char* file : {"adapter_config.json", "adapter_model.safetensors"})
    fs::copy(llama_adapter() / file, both / file);
  const Failure failure = failure_of([&] { (void)pretrained::find_adapted(both); });
  CHECK(failure.label == "model_folder");
  CHECK_THAT(failure.text, Contains("a model and an adapter") && Contains("--adapter"));
  CHECK(pretrained::load_adapted<pretrained::CausalLm>({both, both}).lora->layers.size() ==
        pretrained::load_adapted<pretrained::CausalLm>({model_of("llama"), llama_adapter()}).lora->layers.size());
}

TEST_CASE("a config.json without weights next to an adapter is not a model") {
  const ScratchFolder scratch;
  for (const char* file : {"adapter_config.json", "adapter_model.safetensors"})
    fs::copy(llama_adapter() / file, scratch / file);
  nlohmann::json config = nlohmann::json::parse(test::slurp(scratch / "adapter_config.json"));
  config["base_model_name_or_path"] = model_of("llama").string();
  spit(scratch / "adapter_config.json", config.dump());
  fs::copy(model_of("llama") / "config.json", scratch / "config.json");
  const pretrained::AdaptedFolders found = pretrained::find_adapted(scratch.path());
  CHECK(found.adapter == scratch.path());
  CHECK(found.model == model_of("llama"));
}

TEST_CASE("the model that an adapter names: a base path that cannot be accessed is an adapter error") {
  const ScratchFolder scratch;
  fs::create_symlink("loop", scratch / "loop");
  nlohmann::json config = nlohmann::json::parse(test::slurp(llama_adapter() / "adapter_config.json"));
  for (const auto& [name, reason] : {std::pair<std::string, std::string>{std::string(300, 'a'), "File name too long"},
                                     {(scratch / "loop").string(), "symbolic links"},
                                     {"meta-llama/Llama-3.2-1B", "No such file"},
                                     {"", "does not name its model"}}) {
    config["base_model_name_or_path"] = name;
    spit(scratch / "adapter_config.json", config.dump());
    const Failure failure = failure_of([&] { (void)pretrained::find_adapted(scratch.path()); });
    CHECK(failure.label == "adapter_base");
    CHECK_THAT(failure.text, Contains(reason));
  }
}

TEST_CASE("an index and a model.safetensors that it does not list are two models") {
  const ScratchFolder scratch;
  const fs::path folder = scratch / "model";
  fs::copy(model_of("llama"), folder);
  spit(folder / "model.safetensors", "");
  const Failure failure = failure_of([&] { (void)pretrained::load_pretrained<pretrained::CausalLm>(folder); });
  CHECK(failure.label == "model_folder");
  CHECK_THAT(failure.text, Contains("two models"));
  // A save that would leave two models in a folder is rejected.
  const auto qwen = pretrained::load_pretrained<pretrained::CausalLm>(model_of("qwen3"));
  CHECK(failure_of([&] { pretrained::save(qwen, folder); }).label == "output_folder");
}

TEST_CASE("saving over an existing model gives the same files as an empty folder") {
  const ScratchFolder scratch;
  const fs::path folder = scratch / "model", fresh = scratch / "fresh";
  for (const char* name : {"llama", "qwen3", "bert_embed", "t5", "llama"}) {
    const auto save_to = [&](const fs::path& to) {
      if (name == std::string("bert_embed"))
        pretrained::save(pretrained::load_pretrained<pretrained::Encoder>(model_of(name)), to);
      else if (name == std::string("t5"))
        pretrained::save(pretrained::load_pretrained<pretrained::Seq2SeqLm>(model_of(name)), to);
      else
        pretrained::save(pretrained::load_pretrained<pretrained::CausalLm>(model_of(name)), to);
    };
    fs::remove_all(fresh);
    save_to(fresh);
    save_to(folder);
    const auto names = [](const fs::path& of) {
      std::vector<std::string> found;
      for (const auto& entry : fs::directory_iterator(of)) found.push_back(entry.path().filename().string());
      std::sort(found.begin(), found.end());
      return found;
    };
    INFO(name);
    CHECK(names(folder) == names(fresh));
    for (const std::string& file : names(fresh)) CHECK(test::slurp(folder / file) == test::slurp(fresh / file));
  }
}
