#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/files/safetensors/safetensors.h"
#include "tests/support/texts/test_data.h"
#include "tests/support/texts/word_tokenizer.h"
#include "tests/tools/command.h"

using namespace lathe;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using test::run_lathe;
using test::Scratch;
namespace fs = std::filesystem;

namespace {

void prepare(const Scratch& scratch) {
  fs::copy(test::test_data("hf/models/bert_embed/model"), scratch.path("model"), fs::copy_options::recursive);
  scratch.write("model/tokenizer.json", test::word_tokenizer(112));
  scratch.write("texts.txt", "t5 t6 t7\r\n\nt9 t5\nt5 t6 t7 t8 t9 t10 t11\n");
}

}  // namespace

TEST_CASE("embed writes embeddings of texts, files and standard input", "[tools]") {
  const Scratch scratch;
  prepare(scratch);
  const auto lines = run_lathe(scratch, "embed model 't5 t6 t7' 't9 t5' 't5 t6 t7 t8 t9 t10 t11' --threads 1");
  CAPTURE(lines.err);
  REQUIRE(lines.status == 0);
  // An empty line is a text too, so that row i belongs to line i.
  const auto with_empty =
      run_lathe(scratch, "embed model 't5 t6 t7' '' 't9 t5' 't5 t6 t7 t8 t9 t10 t11' --threads 1");
  CHECK(run_lathe(scratch, "embed model -f texts.txt --threads 1").out == with_empty.out);
  CHECK(run_lathe(scratch, "embed model --threads 1 < texts.txt").out == with_empty.out);
  const auto file =
      run_lathe(scratch, "embed model -f texts.txt --batch 1 --dtype f64 -o v.safetensors --similarities");
  REQUIRE(file.status == 0);
  const HostTensor vectors = SafetensorsFile::open(scratch.path("v.safetensors")).tensor("vectors");
  REQUIRE(vectors.shape() == std::vector<std::int64_t>{4, 32});
  std::istringstream text(with_empty.out);
  std::int64_t i = 0;
  for (std::string line; std::getline(text, line); ++i) {
    const auto json = nlohmann::json::parse(line);
    REQUIRE(json["vector"].size() == 32);
    for (std::int64_t d = 0; d < 32; ++d)
      CHECK(json["vector"][static_cast<std::size_t>(d)].get<double>() ==
            Approx(vectors.get(i * 32 + d)).margin(1e-6));
    if (i == 2) CHECK(json["text"] == "t9 t5");
  }
  CHECK(i == 4);
  CHECK_THAT(file.out, StartsWith(" 1.0000 ") && Contains("  t9 t5\n"));
}

TEST_CASE("embed prepends a prompt to each text: the default of the model, a named one, or any", "[tools]") {
  const Scratch scratch;
  prepare(scratch);
  const auto vectors = [&](const std::string& arguments) {
    const auto ran = run_lathe(scratch, "embed model " + arguments + " --threads 1");
    CAPTURE(arguments, ran.err);
    REQUIRE(ran.status == 0);
    std::string numbers;
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);) numbers += nlohmann::json::parse(line)["vector"].dump();
    return numbers;
  };
  const std::string plain = vectors("'t9 t5'"), query = vectors("'t3 t4 t9 t5'"), other = vectors("'t8 t9 t5'");
  CHECK(vectors("'t9 t5' --prompt 't3 t4 '") == query);
  scratch.write(
      "model/config_sentence_transformers.json",
      R"({"__version__": {}, "prompts": {"query": "t3 t4 ", "passage": "t8 "}, "default_prompt_name": "query"})");
  CHECK(vectors("'t9 t5'") == query);
  CHECK(vectors("'t9 t5' --prompt-name passage") == other);
  CHECK(vectors("'t9 t5' --prompt ''") == plain);
  const auto unknown = run_lathe(scratch, "embed model t9 --prompt-name pasage");
  CHECK(unknown.status == 1);
  CHECK_THAT(unknown.err, Contains("[embed_prompt]") && Contains("passage"));
  CHECK(run_lathe(scratch, "embed model t9 --prompt-name query --prompt x").status == 2);
}

TEST_CASE("embed accepts an adapter, and merge writes the encoder with it", "[tools]") {
  const Scratch scratch;
  prepare(scratch);
  fs::copy(test::test_data("hf/adapters/bert_embed_lora/adapter"), scratch.path("adapter"));
  const auto vectors = [&](const std::string& of) {
    const auto ran = run_lathe(scratch, "embed " + of + " -f texts.txt --dtype f64 -o v.safetensors --threads 1");
    CAPTURE(of, ran.err);
    REQUIRE(ran.status == 0);
    return SafetensorsFile::open(scratch.path("v.safetensors")).tensor("vectors");
  };
  REQUIRE(run_lathe(scratch, "merge model --adapter adapter -o merged").status == 0);
  CHECK(fs::exists(scratch.path("merged/modules.json")));
  const HostTensor with = vectors("model --adapter adapter"), merged = vectors("merged"), without = vectors("model");
  double difference = 0, change = 0;
  for (std::int64_t i = 0; i < with.numel(); ++i) {
    difference = std::max(difference, std::abs(with.get(i) - merged.get(i)));
    change = std::max(change, std::abs(with.get(i) - without.get(i)));
  }
  CHECK(difference < 1e-5);
  CHECK(change > 1e-2);
}

TEST_CASE("embed rejects unsupported input", "[tools]") {
  const Scratch scratch;
  prepare(scratch);
  const auto refused = [&](const std::string& arguments, const std::string& says) {
    const auto ran = run_lathe(scratch, "embed " + arguments);
    CAPTURE(arguments, ran.err, ran.out);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, StartsWith("lathe: ") && Contains(says));
  };
  refused("nowhere x", "nowhere");
  refused("model < /dev/null", "[embed_texts]");
  refused("model t5 -o nowhere/v.safetensors", "[file_write]");
  CHECK(run_lathe(scratch, "embed model x --batch 0").status == 2);
}
