#include <nlohmann/json.hpp>

#include "tests/support/programs/process.h"
#include "tests/support/texts/test_data.h"
#include "tests/tools/command.h"

/// Paths that cannot be accessed: names that are too long, links to themselves, folders of other users.
using namespace lathe;
using Catch::Matchers::Contains;
using test::run_lathe;
using test::Scratch;
namespace fs = std::filesystem;

namespace {

/// Returns every command with `path` in each place that takes a path.
std::vector<std::string> commands_with(const std::string& path) {
  std::vector<std::string> commands;
  for (const char* start : {"generate @ hi -n 1",
                            "generate model hi -n 1 --adapter @",
                            "generate model -f @",
                            "embed @ hi",
                            "embed model hi --adapter @",
                            "eval @ --text data.jsonl",
                            "eval model --text @",
                            "model @",
                            "model model --adapter @",
                            "merge @ -o out",
                            "merge model --adapter @ -o out",
                            "merge model --adapter model -o @/out",
                            "finetune @ --data data.jsonl -o out",
                            "finetune model --data @ -o out",
                            "finetune model --data data.jsonl --valid @ -o out",
                            "finetune model --data data.jsonl --adapter @ -o out",
                            "finetune model --sources @ -o out",
                            "finetune model --data data.jsonl --steps 1 -o @/out",
                            "train --text @ -o out",
                            "train --sources @ -o out",
                            "train --text data.jsonl --tokenizer @ -o out",
                            "train --text data.jsonl --steps 1 -o @/out",
                            "tokenize @ hi",
                            "tokenize model -f @",
                            "tokenize model hi -o @/out",
                            "chat @ --render hi",
                            "chat model --render --messages @",
                            "chat model --render --tools @ hi",
                            "chat model --render hi -o @/out",
                            "diff @ model",
                            "diff model @",
                            "diff model model -o @/out",
                            "explain @",
                            "explain model --memory --dim B=1,T=1 --svg @/out",
                            "opt @",
                            "grad @",
                            "verify @",
                            "bench @",
                            "bench model --ops @",
                            "trace @",
                            "run @",
                            "dump @",
                            "run model --random --dim B=1,T=1 -i @",
                            "run model --random --dim B=1,T=1 -o @/out",
                            "dump model -o @/out",
                            "compile @ -o out",
                            "compile model -o @/out"}) {
    std::string command = start;
    const auto at = command.find('@');
    commands.push_back(command.replace(at, 1, "'" + path + "'"));
  }
  return commands;
}

void expect_user_errors(const Scratch& scratch, const std::string& path) {
  for (const std::string& command : commands_with(path)) {
    const auto ran = run_lathe(scratch, command);
    INFO(command << ": status " << ran.status << "\n" << ran.err);
    CHECK((ran.status == 1 || ran.status == 2));
    CHECK(ran.err.find("internal error") == std::string::npos);
  }
}

void prepare(const Scratch& scratch) {
  fs::copy(test::test_data("hf/models/qwen3/model"), scratch.path("model"));
  scratch.write("data.jsonl", R"({"text": "the for"})"
                              "\n");
}

}  // namespace

TEST_CASE("a name that is too long is a user error in every place", "[tools]") {
  const Scratch scratch;
  prepare(scratch);
  expect_user_errors(scratch, std::string(300, 'a'));
  std::string prompt;
  for (int i = 0; i < 20; ++i) prompt += "Once upon a time ";
  const auto ran = run_lathe(scratch, "generate '" + prompt + "'");
  CHECK(ran.status == 1);
  CHECK_THAT(ran.err, Contains("File name too long") && Contains("[file_open]"));
}

TEST_CASE("a link to itself is a user error in every place", "[tools]") {
  const Scratch scratch;
  prepare(scratch);
  fs::create_symlink("loop", scratch.path("loop"));
  expect_user_errors(scratch, "loop");
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
        "chat_template.jinja", "chat_template.json", "additional_chat_templates", "model.safetensors",
        "model.safetensors.index.json", "adapter_config.json", ".lathe-save.json"}) {
    INFO(name);
    fs::remove_all(scratch.path("linked"));
    fs::copy(scratch.path("model"), scratch.path("linked"));
    fs::remove(scratch.path(std::string("linked/") + name));
    fs::create_symlink(name, scratch.path(std::string("linked/") + name));
    for (const std::string command :
         {"generate linked --chat hi -n 1", "finetune linked --data data.jsonl --context 16 -o out"}) {
      const auto ran = run_lathe(scratch, command);
      INFO(command << ": " << ran.err);
      CHECK(ran.status == 1);
      CHECK_THAT(ran.err, Contains(name));
    }
  }
}

TEST_CASE("an index cannot name files outside its folder, and files that cannot be opened are errors", "[tools]") {
  const Scratch scratch;
  fs::copy(test::test_data("hf/models/llama/model"), scratch.path("model"));
  const auto index = nlohmann::json::parse(scratch.read("model/model.safetensors.index.json"));
  for (const std::string& file : {std::string(300, 'a') + ".safetensors", std::string("../model.safetensors"),
                                  std::string("none.safetensors"), std::string()}) {
    auto changed = index;
    for (auto& [tensor, where] : changed["weight_map"].items()) where = file;
    scratch.write("model/model.safetensors.index.json", changed.dump());
    const auto ran = run_lathe(scratch, "model model");
    INFO(ran.err);
    CHECK(ran.status == 1);
    CHECK((ran.err.find("[file_open]") != std::string::npos || ran.err.find("[model_index]") != std::string::npos));
  }
}

TEST_CASE("an unreadable folder is a user error in every place", "[tools]") {
  if (::geteuid() != 0) {
    WARN("SKIP: needs root, to be another user");
    return;
  }
  const Scratch scratch;
  prepare(scratch);
  fs::create_directories(scratch.path("closed/model"));
  fs::permissions(scratch.path(""), fs::perms(0755));
  fs::permissions(scratch.path("closed"), fs::perms(0700));
  const fs::path lathe = scratch.path("lathe-of-all");  // other users may have no access to the build
  fs::copy_file(LATHE_BINARY, lathe);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"generate", "closed/model", "hi"},
                                                {"model", "closed/model"},
                                                {"embed", "closed/model", "hi"},
                                                {"eval", "closed/model", "--text", "data.jsonl"},
                                                {"merge", "closed/model", "-o", "out"},
                                                {"finetune", "closed/model", "--data", "data.jsonl", "-o", "out"},
                                                {"run", "closed/model"},
                                                {"generate", "model", "hi", "--adapter", "closed/model"},
                                                {"train", "--text", "data.jsonl", "--tokenizer", "closed/model"}}) {
    INFO(words[0] << " " << words[1]);
    test::Command command;
    command.words = {lathe.string()};
    command.folder = scratch.path("");
    command.environment = {{"LATHE_CACHE_DIR", ""}};
    command.err = scratch.path("stderr");
    command.user = 65534;
    command.words.insert(command.words.end(), words.begin(), words.end());
    const test::Ending ending = test::run(command);
    INFO(scratch.read("stderr"));
    CHECK(ending.signal == 0);
    CHECK(ending.status == 1);
    CHECK_THAT(scratch.read("stderr"), Contains("Permission denied"));
  }
}
