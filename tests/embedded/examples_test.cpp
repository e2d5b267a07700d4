#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "ir/tensor/text/parser.h"
#include "runtime/compile.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/target.h"
#include "tests/embedded/shell.h"
#include "tests/support/tensors/compare_tensors.h"
#include "tests/support/texts/test_data.h"
#include "tests/support/texts/word_tokenizer.h"

/// The programs of examples/embedded, built by their own Makefiles, next to Lathe itself.
using namespace lathe;
using test::run_shell;
using test::Scratch;
using test::shell;
namespace fs = std::filesystem;

namespace {

/// Builds an example in the folder of its name, next to a library in its subfolder `library`.
void build(const Scratch& scratch, const std::string& name, const std::string& settings = "") {
  for (const char* const file : {"Makefile", "c"}) {
    const std::string of = name + "/" + (std::string(file) == "c" ? name + ".c" : file);
    fs::copy_file(test::source_path("examples/embedded/" + of), scratch.path(of));
  }
  shell(scratch, fmt::format("make -C {} CFLAGS='{}' {}", name, test::strict_c, settings));
}

/// Copies a model of tests/hf, with a tokenizer whose words are the numbers of tokens.
void copy_model(const Scratch& scratch, const std::string& name, int vocabulary) {
  fs::copy(test::test_data("hf/models") / name / "model", scratch.path("model"), fs::copy_options::recursive);
  scratch.write("model/tokenizer.json", test::word_tokenizer(vocabulary));
}

/// Returns the numbers of a text, without the letters before them: "t5 t9" becomes 5, 9.
std::vector<std::int64_t> ids_of(std::string text) {
  std::ranges::replace(text, 't', ' ');
  std::istringstream words(text);
  std::vector<std::int64_t> ids;
  for (std::int64_t id = 0; words >> id;) ids.push_back(id);
  return ids;
}

}  // namespace

TEST_CASE("embedded: a program in C trains GPT-2 like a compiled step, bit for bit", "[embedded]") {
  constexpr std::int64_t steps = 6, B = 4, T = 32;
  const Scratch scratch;
  std::string text;
  for (int i = 0; text.size() < 4000; ++i) text += fmt::format("to be or not to be, {} times; ", i * i);
  scratch.write("text.txt", text);
  test::lathe_output(
      scratch,
      "model gpt --step --clip 1 --d-model 64 --heads 4 --vocab 256 --context 32 --lr 2e-3 -o step.lathe "
      "--values start.safetensors --seed 5");
  test::lathe_output(scratch,
                     "compile step.lathe --prefix gpt --max B=4,T=32 --emit=archive,header,helpers -o train/library");
  build(scratch, "train");
  const std::string command = fmt::format("train/train text.txt {} start.safetensors ", steps);
  const std::string found = shell(scratch, command + "c.safetensors");

  const ir::Graph step = ir::parse_graph(scratch.read("step.lathe"));
  Executable jit = compile(step, {.target = Target::named("x86-64-v3")});
  const SafetensorsFile start = SafetensorsFile::open(scratch.path("start.safetensors"));
  for (const std::string& name : start.names()) jit.parameters().set(name, start.tensor(name));
  std::string expected;
  std::vector<double> losses;
  for (std::int64_t s = 0; s < steps; ++s) {
    HostTensor tokens(i64, {B, T + 1});
    for (std::int64_t b = 0; b < B; ++b)
      for (std::int64_t t = 0; t <= T; ++t)
        tokens.set_int(b * (T + 1) + t, text[static_cast<std::size_t>((s * B + b) * T % (std::ssize(text) - T) + t)]);
    losses.push_back(jit.run({{"tokens", tokens}}).at("loss").item<float>());
    expected += fmt::format("step {}: loss {:.9g}\n", s + 1, losses.back());
  }
  CHECK(found == expected);
  CHECK(losses.front() > 5.55);  // above ln(256), the loss of equal logits
  CHECK(losses.back() < losses.front() - 1);
  const SafetensorsFile checkpoint = SafetensorsFile::open(scratch.path("c.safetensors"));
  CHECK(checkpoint.names().size() == 28 * 3 + 1);
  for (const std::string& name : checkpoint.names()) {
    CAPTURE(name);
    CHECK(test::same_bits(checkpoint.tensor(name), jit.parameters().get(name)));
  }
  // A file that Lathe wrote has the same header, so that it can be mapped as a block of states.
  const std::string written = scratch.read("start.safetensors"), result = scratch.read("c.safetensors");
  std::size_t data = 0;
  for (const std::string& name : checkpoint.names()) data += checkpoint.tensor(name).bytes();
  CHECK(written.size() == result.size());
  CHECK(written.substr(0, written.size() - data) == result.substr(0, result.size() - data));
  CHECK(shell(scratch, command + "again.safetensors && cmp again.safetensors c.safetensors") == expected);
  const auto other = run_shell(scratch, "train/train text.txt 1 text.txt d.safetensors");
  CHECK(other.status == 1);
  CHECK_THAT(other.err, Catch::Contains("the header is longer than the file"));
}

TEST_CASE("embedded: a program in C generates the tokens of lathe generate", "[embedded]") {
  for (const auto& [name, vocabulary] : {std::pair{"llama", 112}, {"qwen3", 363}}) {
    CAPTURE(name);
    const Scratch scratch;
    copy_model(scratch, name, vocabulary);
    test::lathe_output(scratch,
                       "compile model --part prompt,step --prefix lm --dim B=1 --max T=64,capacity=64,length=64 "
                       "--emit=archive,header,helpers -o generate/library");
    build(scratch, "generate");
    const std::string command = "generate/generate 24 '5 9 20' ";
    const auto found = ids_of(shell(scratch, command + "model/*.safetensors"));
    CHECK(found.size() == 24);
    CHECK(found == ids_of(test::lathe_output(scratch, "generate model 't5 t9 t20' -n 24 --greedy --ignore-end -q")));
    const auto wrong = run_shell(scratch, "generate/generate 24 '5 9 2000' model/*.safetensors");
    CHECK(wrong.status == 1);
    CHECK_THAT(wrong.err, Catch::Contains(fmt::format("an index is not in [0, {})", vocabulary)));
    scratch.write("empty.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
    const auto empty = run_shell(scratch, command + "empty.safetensors");
    CHECK(empty.status == 1);
    CHECK_THAT(empty.err, Catch::Contains("the file has no tensor: "));
  }
}

TEST_CASE("embedded: a program in C computes the embeddings of lathe embed", "[embedded]") {
  const Scratch scratch;
  copy_model(scratch, "bert_embed", 112);
  test::lathe_output(scratch,
                     "compile model --part states --prefix encoder --max B=1,T=26 --embed-weights "
                     "--emit=archive,header,helpers -o embed/library");
  build(scratch, "embed", "WIDTH=32");
  std::istringstream found(shell(scratch, "printf '5 6 7\\n9 5\\n5 6 7 8 9 10 11\\n' | embed/embed"));
  std::istringstream expected(test::lathe_output(scratch, "embed model 't5 t6 t7' 't9 t5' 't5 t6 t7 t8 t9 t10 t11'"));
  int vectors = 0;
  for (std::string line; std::getline(expected, line); ++vectors)
    for (const auto& number : nlohmann::json::parse(line).at("vector")) {
      double value = 0;
      REQUIRE(found >> value);
      CHECK(value == Approx(number.get<double>()).margin(2e-6));
    }
  CHECK(vectors == 3);
  CHECK(shell(scratch, "echo | embed/embed | tr -d '0 \\n'").empty());  // a text without tokens: zeros
  CHECK_THAT(run_shell(scratch, "seq 27 | xargs | embed/embed").err,
             Catch::Contains("the dim T must be from 0 to 26"));
  CHECK_THAT(run_shell(scratch, "seq 600 | xargs | embed/embed").err, Catch::Contains("a line has too many tokens"));
  CHECK_THAT(run_shell(scratch, "echo 500 | embed/embed").err, Catch::Contains("an index is not in [0, 112)"));
}
