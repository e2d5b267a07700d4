#include <filesystem>

#include "tests/support/texts/test_data.h"
#include "tests/support/texts/word_tokenizer.h"
#include "tests/tools/command.h"

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using lathe::test::run_lathe;
using lathe::test::Scratch;
using lathe::test::test_data;
namespace fs = std::filesystem;

namespace {

std::string model(const std::string& name) { return "'" + (test_data("hf/models") / name / "model").string() + "'"; }

}  // namespace

TEST_CASE("generate accepts one text, several, a file and standard input", "[tools]") {
  const Scratch scratch;
  const std::string command = "generate " + model("qwen3") + " -n 24 --threads 1 ";
  const auto one = run_lathe(scratch, command + "'To be, or not to be'");
  CAPTURE(one.err);
  CHECK(one.status == 0);
  CHECK_THAT(one.out, StartsWith(" he]n") && Contains(" we") && Contains("nhB"));
  CHECK_THAT(one.err, Contains("first token after") && Contains("tokens/s"));
  scratch.write("prompt.txt", "To be, or not to be");
  CHECK(run_lathe(scratch, command + "-q -f prompt.txt").out == one.out);
  const auto input = run_lathe(scratch, command + "-q < '" + scratch.path("prompt.txt") + "'");
  CHECK(input.out == one.out);
  CHECK(input.err.empty());
  const auto two = run_lathe(scratch, command + "Speak 'To be, or not to be'");
  CHECK_THAT(two.out,
             StartsWith("--- 1 of 2: Speak ---\n") && Contains("--- 2 of 2: To be, or not to be ---\n" + one.out));
  const auto stopped = run_lathe(scratch, command + "'To be, or not to be' --stop ' we' -q");
  CHECK(stopped.out == one.out.substr(0, one.out.find(" we")) + "\n");
  const std::string drawn =
      command + "-q Speak --temperature 2 --top-k 50 --top-p 0.95 --min-p 0.001 --repetition-penalty 1.1";
  const auto seeded = run_lathe(scratch, drawn + " --seed 3");
  CHECK(seeded.status == 0);
  CHECK(seeded.out == run_lathe(scratch, drawn + " --seed 3").out);
  CHECK(seeded.out != run_lathe(scratch, drawn + " --seed 4").out);
}

TEST_CASE("generate answers a conversation, turn by turn", "[tools]") {
  const Scratch scratch;
  const std::string command = "generate " + model("qwen3") + " --chat -q -n 6 --threads 1 ";
  const auto asked = run_lathe(scratch, command + "Speak Again");
  CAPTURE(asked.err);
  CHECK(asked.status == 0);
  scratch.write("turns.txt", "Speak\n\nAgain\n");
  CHECK(run_lathe(scratch, command + "< '" + scratch.path("turns.txt") + "'").out == asked.out);
  CHECK(run_lathe(scratch, command + "--system 'Be brief' Speak").status == 0);
}

TEST_CASE("generate: a line of a conversation has a maximum size", "[tools]") {
  const Scratch scratch;
  const std::string command = "generate " + model("qwen3") + " --chat -q -n 1 --threads 1 < ";
  const auto endless = run_lathe(scratch, command + "/dev/zero");
  CHECK(endless.status == 1);
  CHECK_THAT(endless.err, Contains("a line of standard input has more than") && Contains("[file_too_large]"));
  // The last line may lack a newline.
  const auto turns = [&](const std::string& text) {
    scratch.write("turns.txt", text);
    return run_lathe(scratch, command + "turns.txt");
  };
  CHECK(turns("Speak\nAgain").out == turns("Speak\nAgain\n").out);
  CHECK(turns("").status == 0);
}

TEST_CASE("generate runs encoder-decoders, one text, several, and beam search", "[tools]") {
  const Scratch scratch;
  fs::copy(test_data("hf/models/t5/model"), scratch.path("t5"));
  scratch.write("t5/tokenizer.json", lathe::test::word_tokenizer(112));
  const std::string command = "generate t5 -q -n 6 --threads 1 ";
  const auto one = run_lathe(scratch, command + "'t9 t20 t31 t7'");
  CAPTURE(one.err);
  CHECK(one.status == 0);
  CHECK_THAT(one.out, StartsWith("t"));
  const auto two = run_lathe(scratch, command + "'t9 t20 t31 t7' 't5 t6'");
  CHECK_THAT(two.out, StartsWith("--- 1 of 2: t9 t20 t31 t7 ---\n" + one.out + "--- 2 of 2: t5 t6 ---\n"));
  CHECK(run_lathe(scratch, command + "'t9 t20 t31 t7' --beams 1").out == one.out);
  CHECK(run_lathe(scratch, command + "'t9 t20 t31 t7' --beams 4").status == 0);
  CHECK(run_lathe(scratch, command + "t9 --temperature 2 --seed 1").status == 0);
  for (const char* part : {"logits", "loss", "prompt", "ragged", "step"})
    CHECK(run_lathe(scratch, std::string("model t5 --part ") + part + " -o t5.lathe").status == 0);
  CHECK_THAT(scratch.read("t5.lathe"), Contains("source_keys") && Contains("key_cache"));
  CHECK(run_lathe(scratch, "verify t5.lathe --dim B=2,source_length=5,capacity=16,length=7 --input t5").status == 0);
  CHECK(run_lathe(scratch, "run t5 --random --dim B=2,S=5,T=3").status == 0);
  fs::copy(test_data("hf/adapters/t5_lora/adapter"), scratch.path("adapter"));
  REQUIRE(run_lathe(scratch, "merge t5 --adapter adapter -o merged").status == 0);
  const auto adapted = run_lathe(scratch, command + "--adapter adapter 't9 t20 t31 t7'");
  CAPTURE(adapted.err);
  CHECK(adapted.status == 0);
  CHECK(run_lathe(scratch, "generate merged -q -n 6 --threads 1 't9 t20 t31 t7'").out == adapted.out);
  CHECK_THAT(run_lathe(scratch, "model t5 --adapter adapter").out, Contains("lora_A"));
}

TEST_CASE("generate runs beam search with a decoder, and applies token rules of the command line", "[tools]") {
  const Scratch scratch;
  const std::string command = "generate " + model("qwen3") + " -n 8 -q --threads 1 'To be, or not to be' ";
  const auto text = [&](const std::string& options) {
    const auto ran = run_lathe(scratch, command + options);
    CAPTURE(options, ran.err);
    CHECK(ran.status == 0);
    return ran.out;
  };
  const std::string greedy = text("");
  CHECK(text("--beams 1") == greedy);
  const std::string beams = text("--beams 4"), three = text("--beams 4 --results 3");
  CHECK_THAT(three, StartsWith(beams));
  CHECK(text("--beams 4 --length-penalty -2 --early-stopping never") != "");
  CHECK_FALSE(text("--bad-word ' he'") == greedy);
  const std::string longer = "generate " + model("qwen3") + " -n 60 -q --threads 1 'To be, or not to be' ";
  CHECK_FALSE(run_lathe(scratch, longer + "--no-repeat-ngram 1").out == run_lathe(scratch, longer).out);
  CHECK(text("--typical-p 0.9 --seed 5") == text("--typical-p 0.9 --seed 5"));
  CHECK(text("--suppress-tokens 0,1,2,3 --min-new-tokens 3 --suppress-tokens 5") != "");
  CHECK(run_lathe(scratch, command + "--beams 2 --temperature 2").status == 2);
  CHECK(run_lathe(scratch, command + "--greedy --top-k 2").status == 2);
  CHECK(run_lathe(scratch, command + "--beams 2 --early-stopping maybe").status == 2);
  CHECK_THAT(run_lathe(scratch, command + "--length-penalty 2").err,
             Contains("--length-penalty has no effect without beam search  [usage]"));
  CHECK_THAT(run_lathe(scratch, command + "--temperature 0 --top-k 3").err, Contains("have no effect  [usage]"));
  CHECK_THAT(run_lathe(scratch, command + "--results 2").err, Contains("--results 2 is more than --beams 1"));
  CHECK(text("--chat --beams 2") != "");
}

TEST_CASE("generate rejects unsupported input", "[tools]") {
  const Scratch scratch;
  const auto refused = [&](const std::string& arguments, const std::string& says) {
    const auto ran = run_lathe(scratch, "generate " + arguments);
    CAPTURE(arguments, ran.err, ran.out);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, StartsWith("lathe: ") && Contains(says));
  };
  refused("nowhere x", "nowhere");
  refused(model("llama") + " x", "tokenizer.json");
  refused(model("qwen3") + " ''", "[generation_prompt]");
  for (const auto& [option, says] : {std::pair("--top-p 0", "--top-p is 0; it must be a number above 0, at most 1"),
                                     std::pair("--temperature=-1", "--temperature is -1")}) {
    const auto ran = run_lathe(scratch, "generate " + model("qwen3") + " x " + option);
    CHECK(ran.status == 2);
    CHECK_THAT(ran.err, Contains(says));
  }
  refused(model("bert") + " x", "model_type");
  CHECK(run_lathe(scratch, "generate " + model("qwen3") + " x -n 0").status == 2);
}

TEST_CASE("a model directory is accepted as a graph by every command", "[tools]") {
  const Scratch scratch;
  for (const char* part : {"logits", "loss", "prompt", "ragged", "step"}) {
    CAPTURE(part);
    const auto written = run_lathe(scratch, "model " + model("llama") + " --part " + part + " -o " + part + ".lathe");
    CAPTURE(written.err);
    CHECK(written.status == 0);
    CHECK(run_lathe(scratch, std::string("dump ") + part + ".lathe --short").status == 0);
  }
  CHECK_THAT(scratch.read("step.lathe"), Contains("update_rows") && Contains("key_cache"));
  CHECK(run_lathe(scratch, "model " + model("llama") + " --part step --batch 3 --weights q8 -o three.lathe").status ==
        0);
  CHECK_THAT(scratch.read("three.lathe"), Contains("i64[B=3, 1]") && Contains("key_cache: bf16[B=3,"));
  for (const std::string command : {"dump ", "explain ", "dump --html -o page.html ", "verify --dim B=2,T=5 ",
                                    "run --random --dim B=2,T=5 ", "trace --dim B=2,T=5 --steps 1 "}) {
    const auto ran = run_lathe(scratch, command + model("llama"));
    CAPTURE(command, ran.err);
    CHECK(ran.status == 0);
    const bool has_text = !ran.out.empty() || command.find("page") != std::string::npos;
    CHECK(has_text);
  }
  const std::string sizes = "--dim B=2,T=3,capacity=16,length=7 ";
  const auto verified = run_lathe(scratch, "verify prompt.lathe " + sizes + "--input " + model("llama"));
  CAPTURE(verified.err);
  CHECK(verified.status == 0);
  CHECK_THAT(verified.out, Contains("logits") && Contains("key_cache"));
  const auto missing = run_lathe(scratch, "run prompt.lathe --random --dim B=2,T=3,capacity=16");
  CHECK(missing.status == 1);
  CHECK_THAT(missing.err, Contains("[dim_unbound]") && Contains("length"));
  CHECK(run_lathe(scratch, "model nothing").status == 2);
}
