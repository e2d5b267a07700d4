#include <nlohmann/json.hpp>

#include "runtime/files/safetensors/safetensors.h"
#include "tests/support/texts/test_data.h"
#include "tests/tools/command.h"

/// The commands that show what a model reads: tokenize, chat --render, and model for encoders and image models.
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using lathe::SafetensorsFile;
using lathe::test::run_lathe;
using lathe::test::Scratch;
using lathe::test::test_data;

namespace {

std::string model(const std::string& name) { return "'" + test_data("hf/models/" + name + "/model").string() + "'"; }

}  // namespace

TEST_CASE("tokenize: ids, ranges and tokens of texts", "[tools][text]") {
  const Scratch scratch;
  const std::string folder = model("qwen3");
  const auto json = run_lathe(scratch, "tokenize " + folder + " 'the and' --json");
  REQUIRE(json.status == 0);
  const auto tokens = nlohmann::json::parse(json.out);
  REQUIRE(tokens["ids"].size() >= 2);
  CHECK(tokens["ids"].size() == tokens["tokens"].size());
  CHECK(tokens["offsets"].front()[0] == 0);
  CHECK(tokens["offsets"].back()[1] == 7);
  std::string ids;
  for (const auto& id : tokens["ids"]) ids += (ids.empty() ? "" : " ") + id.dump();
  CHECK(run_lathe(scratch, "tokenize " + folder + " 'the and' --ids").out == ids + "\n");
  const auto table = run_lathe(scratch, "tokenize " + folder + " 'the and'");
  CHECK_THAT(table.out, Contains(tokens["ids"][0].dump() + "  ") && Contains("0..") && Contains("..7  "));
  // From files, standard input, and several texts.
  scratch.write("text.txt", "the and");
  CHECK(run_lathe(scratch, "tokenize " + folder + " -f text.txt --ids").out == ids + "\n");
  CHECK(run_lathe(scratch, "tokenize " + folder + " --ids < text.txt").out == ids + "\n");
  CHECK(run_lathe(scratch, "tokenize " + folder + " 'the and' 'the and' --ids").out == ids + "\n" + ids + "\n");
}

TEST_CASE("tokenize: special tokens, and errors", "[tools][text]") {
  const Scratch scratch;
  const std::string folder = "'" + test_data("hf/tokenizers/bert").string() + "'";
  CHECK_THAT(run_lathe(scratch, "tokenize " + folder + " the").out,
             Contains("added  [CLS]\n") && Contains("0..3  the\n"));
  CHECK(run_lathe(scratch, "tokenize " + folder + " the --plain").out.find("added") == std::string::npos);
  const auto missing = run_lathe(scratch, "tokenize nowhere the");
  CHECK(missing.status == 1);
  CHECK_THAT(missing.err, StartsWith("lathe: ") && Contains("nowhere"));
  CHECK(run_lathe(scratch, "tokenize " + model("qwen3") + " the --ids --json").status == 2);
}

TEST_CASE("chat --render: prints what the model would read", "[tools][text]") {
  const Scratch scratch;
  const std::string folder = model("qwen3");
  const auto render = [&](const std::string& options) {
    const auto ran = run_lathe(scratch, "chat " + folder + " --render " + options);
    INFO(ran.err);
    CHECK(ran.status == 0);
    return ran.out;
  };
  const std::string asked = render("'and the' --system be");
  CHECK_THAT(asked, Contains("and the") && Contains("be") && Contains("user") && Contains("assistant"));
  const std::string without = render("'and the' --system be --no-generation-prompt");
  CHECK_THAT(asked, StartsWith(without));
  CHECK(asked.size() > without.size());
  scratch.write("messages.json", R"([{"role": "system", "content": "be"}, {"role": "user", "content": "and the"}])");
  CHECK(render("--messages messages.json") == asked);
  CHECK(render("--messages - < messages.json") == asked);
  CHECK_THAT(render("one two three"), Contains("one") && Contains("two") && Contains("three"));
  CHECK_THAT(render("one two"), !EndsWith("assistant\n"));
  CHECK_THAT(render("one two --continue-final"), EndsWith("two"));
}

TEST_CASE("chat: errors", "[tools][text]") {
  const Scratch scratch;
  const std::string folder = model("qwen3");
  const auto error = [&](const std::string& arguments) {
    const auto ran = run_lathe(scratch, "chat " + arguments);
    CHECK(ran.status == 1);
    return ran.err;
  };
  CHECK_THAT(error(folder + " hi"), Contains("give --render") && Contains("[usage]"));
  CHECK_THAT(error(folder + " --render"), Contains("there is no message to render"));
  scratch.write("messages.json", "[]");
  CHECK_THAT(error(folder + " --render hi --messages messages.json"),
             Contains("--messages holds the whole conversation"));
  CHECK_THAT(error(folder + " --render --messages messages.json"), Contains("[chat_messages]"));
  CHECK_THAT(error(model("vit") + " --render hi"), Contains("[chat_template]"));
}

TEST_CASE("model: encoders and image models, with masks and positions as inputs", "[tools][text]") {
  const Scratch scratch;
  const auto graph = [&](const std::string& arguments) {
    const auto ran = run_lathe(scratch, "model " + arguments + " -o g.lathe");
    INFO(arguments << "\n" << ran.err);
    REQUIRE(ran.status == 0);
    return scratch.read("g.lathe");
  };
  CHECK_THAT(graph(model("bert")), Contains("input %input_ids: i64[B, T]") && !Contains("%attention_mask"));
  CHECK_THAT(graph(model("bert") + " --part states --inputs mask,positions,types"),
             Contains("input %attention_mask: i64[B, T]") && Contains("input %position_ids: i64[B, T]") &&
                 Contains("input %token_type_ids: i64[B, T]") && Contains("output \"last_hidden_state\""));
  CHECK(run_lathe(scratch, "run g.lathe --input " + model("bert") + " --random --dim B=2,T=3 -o out.safetensors")
            .status == 0);
  CHECK_THAT(graph(model("vit")), Contains("input %pixel_values: f32[B, "));
  CHECK(run_lathe(scratch, "run " + model("vit") + " --random --dim B=2 -o out.safetensors").status == 0);
  CHECK_THAT(graph(model("vit") + " --part states"), Contains("output \"last_hidden_state\""));
  CHECK_THAT(graph(model("llama") + " --inputs mask,positions"),
             Contains("%attention_mask") && Contains("%position_ids"));
  for (const std::string& wrong :
       {model("bert") + " --part step", model("vit") + " --inputs mask", model("llama") + " --part pooled",
        model("bert") + " --inputs nonsense", std::string("gpt --inputs mask"),
        model("llama") + " --part prompt --inputs mask", model("t5") + " --part step --inputs mask"}) {
    const auto ran = run_lathe(scratch, "model " + wrong);
    INFO(wrong << "\n" << ran.err);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, Contains("[usage]"));
  }
}

TEST_CASE("model --values: the initial values of a built-in model, by seed", "[tools][text]") {
  const Scratch scratch;
  const std::string command = "model gpt --step --layers 1 --d-model 8 --heads 2 --vocab 10 --context 4 -o ";
  for (const std::string file : {"a --seed 1", "b --seed 1", "c --seed 2"}) {
    const auto ran = run_lathe(scratch, command + "step.lathe --values " + file);
    INFO(ran.err);
    CHECK(ran.status == 0);
  }
  CHECK(scratch.read("a") == scratch.read("b"));
  CHECK(scratch.read("a") != scratch.read("c"));
  const auto run = run_lathe(scratch, "run step.lathe --input a --random --dim B=1,T=2");
  INFO(run.err);
  CHECK(run.status == 0);
  // Norms start from ones, and moments from zeros.
  const SafetensorsFile values = SafetensorsFile::open(scratch.path("a"));
  CHECK(values.tensor("ln_f.weight").get(3) == 1);
  CHECK(values.tensor("optimizer.m.wte").get(3) == 0);
  const auto folder = run_lathe(scratch, "model " + model("gpt2") + " --step --values a");
  CHECK(folder.status == 1);
  CHECK_THAT(folder.err, Contains("--values has no effect on") && Contains("[usage]"));
  CHECK(run_lathe(scratch, command + "step.lathe --seed 1").status == 2);
}

TEST_CASE("model --step: the optimizer, its schedule and its defaults", "[tools][text]") {
  const Scratch scratch;
  const std::string gpt = "gpt --step --layers 1 --d-model 8 --heads 2 --vocab 10 --context 4 ",
                    folder = model("gpt2") + " --step ";
  const auto text = [&](const std::string& options) {
    const auto ran = run_lathe(scratch, "model " + options);
    INFO(options << "\n" << ran.err);
    CHECK(ran.status == 0);
    return ran.out;
  };
  CHECK(text(gpt) == text(gpt + "--optimizer adamw --clip 0 --weight-decay 0.01 --beta2 0.999 --lr 3e-4"));
  CHECK(text(folder) == text(folder + "--clip 1 --weight-decay 0 --schedule constant"));
  CHECK(text(folder) != text(folder + "--clip 0"));
  CHECK_THAT(text(gpt + "--optimizer lion"), !Contains("optimizer.v.wte") && Contains("optimizer.m.wte"));

  REQUIRE(run_lathe(scratch, "model " + gpt + "-o a.lathe --values start").status == 0);
  const auto after = [&](const std::string& options) {
    REQUIRE(run_lathe(scratch, "model " + gpt + options + " -o step.lathe").status == 0);
    REQUIRE(run_lathe(scratch, "run step.lathe --input start --random --dim B=1,T=2 -o next").status == 0);
    return SafetensorsFile::open(scratch.path("next"));
  };
  const auto same = [&](const SafetensorsFile& a, const SafetensorsFile& b, const std::string& name) {
    return a.tensor(name).same_bits(b.tensor(name));
  };
  const SafetensorsFile plain = after("--weight-decay 0"), decayed = after("--weight-decay 0.5");
  CHECK(same(plain, decayed, "ln_f.weight"));  // weight decay is for matrices
  CHECK(!same(plain, decayed, "wte"));
  CHECK(plain.tensor("learning_rate").get(0) == Approx(3e-4));
  CHECK(after("--total-steps 10 --warmup 4").tensor("learning_rate").get(0) == Approx(3e-4 / 4));

  for (const auto& [options, message] : std::vector<std::pair<std::string, std::string>>{
           {"--warmup 3", "--warmup is given, but not the number of steps  [usage]"},
           {"--schedule cosine", "--schedule is given, but not the number of steps  [usage]"},
           {"--schedule constant --warmup 3", "--warmup is given, but not the number of steps  [usage]"},
           {"--total-steps 10 --warmup 10", "10 warmup steps leave none of the 10 training steps  [train_warmup]"},
           {"--optimizer sgd --beta1 0.5", "beta1 is given, which the optimizer sgd does not have  [train_options]"}})
    CHECK_THAT(run_lathe(scratch, "model " + gpt + options).err, Contains(message));
}
