#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "models/text/dataset/chat_spans.h"
#include "models/text/dataset/epoch_order.h"
#include "models/text/dataset/read_examples.h"
#include "models/text/dataset/token_batches.h"
#include "tests/support/texts/test_data.h"
#include "tests/text/template_reference.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;
using jinja::Value;

namespace {

Tokenizer tokenizer_of(const std::string& name) { return Tokenizer::load(test_data("hf/tokenizers/" + name)); }

/// Returns the text of the tokens that are trained on.
std::string learned_text(const Example& example, const Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < example.ids.size(); ++i)
    if (example.learned[i]) ids.push_back(example.ids[i]);
  return tokenizer.decode(ids, false);
}

Example one(const std::string& line, const Tokenizer& tokenizer, const ExampleOptions& options = {}) {
  const std::vector<Example> examples = parse_examples(line, "data.jsonl", tokenizer, options);
  REQUIRE(examples.size() == 1);
  return examples[0];
}

ChatTemplate template_of(const std::string& name) {
  const std::string path = test_data("hf/chat/templates/" + name + ".jinja");
  return ChatTemplate::parse(read_text(path), name,
                             Value::dict({{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"pad_token", "<pad>"}}));
}

Value conversation(const std::vector<std::pair<std::string, std::string>>& turns) {
  std::vector<Value> list;
  for (const auto& [role, content] : turns) list.push_back(Value::dict({{"role", role}, {"content", content}}));
  return Value::list(list);
}

std::vector<std::string> parts(const jinja::Rendered& rendered) {
  std::vector<std::string> found;
  for (const auto& span : rendered.assistant)
    found.push_back(rendered.text.substr(span.begin, span.end - span.begin));
  return found;
}

/// Returns an example of `size` tokens; all except the first `prompt` are trained on.
Example example_of(std::int64_t size, std::int64_t prompt = 1, TokenId start = 10) {
  Example made;
  for (std::int64_t i = 0; i < size; ++i) {
    made.ids.push_back(start + static_cast<TokenId>(i));
    made.learned.push_back(i >= prompt);
  }
  return made;
}

std::string error_of(const std::string& lines, const ExampleOptions& options = {}) {
  try {
    (void)parse_examples(lines, "data.jsonl", tokenizer_of("gpt2"), options);
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

std::vector<std::int64_t> row_of(const HostTensor& tensor, std::int64_t row) {
  std::vector<std::int64_t> values;
  const std::int64_t width = tensor.shape()[1];
  for (std::int64_t i = 0; i < width; ++i) values.push_back(tensor.get_int(row * width + i));
  return values;
}

}  // namespace

TEST_CASE("examples: a text is learned completely, and ends with the end-of-text token") {
  const Tokenizer tokenizer = tokenizer_of("gpt2");
  const TokenId end = *tokenizer.id_of("<|endoftext|>");
  const Example example = one(R"({"text": "The cat sat."})", tokenizer, {.end = end});
  CHECK(tokenizer.decode(example.ids, false) == "The cat sat.<|endoftext|>");
  CHECK(std::count(example.learned.begin(), example.learned.end(), 1) == example.size());
  CHECK(one(R"({"text": "The cat sat.<|endoftext|>", "id": 7})", tokenizer, {.end = end}).ids == example.ids);
  CHECK(one(R"({"text": "The cat sat."})", tokenizer).size() == example.size() - 1);
}

TEST_CASE("examples: only the completion of a prompt is learned") {
  for (const std::string name : {"gpt2", "llama2", "llama3", "qwen2"}) {
    const Tokenizer tokenizer = tokenizer_of(name);
    const auto end = name == "gpt2" ? tokenizer.id_of("<|endoftext|>") : std::optional<TokenId>();
    const Example example =
        one(R"({"prompt": "Größe?\nAntwort:", "completion": " sehr groß ist sie"})", tokenizer, {.end = end});
    INFO(name);
    CHECK(example.ids.size() == example.learned.size());
    const std::string text = learned_text(example, tokenizer);
    CHECK_THAT(text, Catch::Matchers::StartsWith(" sehr") || Catch::Matchers::StartsWith("sehr"));
    CHECK_THAT(text, Contains("groß ist sie") && !Contains("Antwort"));
    if (end) CHECK(text.ends_with("<|endoftext|>"));
  }
}

TEST_CASE("examples: only assistant messages are learned") {
  for (const std::string name : {"llama3", "qwen2", "mistral"}) {
    INFO(name);
    const ChatTemplates chats = ChatTemplates::load(test_data("hf/chat/" + name));
    const Tokenizer tokenizer = tokenizer_of(name);
    const Example example = one(
        R"({"messages": [{"role": "user", "content": "hello cat"}, {"role": "assistant", "content": "the cat sat"}, )"
        R"({"role": "user", "content": "and dog"}, {"role": "assistant", "content": "a dog ran"}]})",
        tokenizer, {.chat = &chats.get()});
    const std::string text = learned_text(example, tokenizer);
    CHECK_THAT(text, Contains("the cat sat") && Contains("a dog ran") && !Contains("hello") && !Contains("and dog"));
    CHECK_THAT(text, !Contains("user") && !Contains("assistant"));
  }
}

TEST_CASE("assistant's turns: from template marks, and by rendering prefixes") {
  const Value messages = conversation({{"system", "Be brief."},
                                       {"user", "Hello"},
                                       {"assistant", "Hi there"},
                                       {"user", "Bye"},
                                       {"assistant", "See you"}});
  const ChatTemplate marked = template_of("chatml_generation"), plain = template_of("chatml");
  REQUIRE(marked.marks_assistant());
  REQUIRE_FALSE(plain.marks_assistant());
  const auto by_marks = render_with_spans(marked, messages), by_prefixes = render_with_spans(plain, messages);
  CHECK(by_marks.assistant.size() == 2);
  CHECK(parts(by_marks) == std::vector<std::string>{"Hi there<|im_end|>", "See you<|im_end|>"});
  CHECK(parts(by_prefixes) == std::vector<std::string>{"Hi there<|im_end|>\n", "See you<|im_end|>\n"});
}

TEST_CASE("assistant's turns are found in every template") {
  int checked = 0;
  for (const auto& file : std::filesystem::directory_iterator(test_data("hf/chat/templates"))) {
    const std::string name = file.path().stem().string();
    INFO(name);
    const ChatTemplate chat = template_of(name);
    const Value messages = conversation(
        {{"user", "Question one"}, {"assistant", "Answer alpha"}, {"user", "Question two"}, {"assistant", "Beta"}});
    jinja::Rendered rendered;
    try {
      rendered = render_with_spans(chat, messages);
    } catch (const jinja::TemplateError&) {
      continue;  // it needs content in another format
    }
    const std::vector<std::string> found = parts(rendered);
    INFO(rendered.text);
    REQUIRE(found.size() == 2);
    CHECK_THAT(found[0], Contains("Answer alpha") && !Contains("Question"));
    CHECK_THAT(found[1], Contains("Beta") && !Contains("Question") && !Contains("Answer"));
    ++checked;
  }
  CHECK(checked >= 20);
}

TEST_CASE("assistant's turns: a template that drops the reasoning of earlier turns") {
  const ChatTemplate qwen3 = template_of("qwen3");
  const auto rendered = render_with_spans(
      qwen3, conversation({{"user", "One"}, {"assistant", "A1"}, {"user", "Two"}, {"assistant", "A2"}}));
  CHECK(parts(rendered)[0] == "A1<|im_end|>\n");
  CHECK_THAT(parts(rendered)[1], Contains("<think>") && Catch::Matchers::EndsWith("A2<|im_end|>\n"));
}

TEST_CASE("examples: errors name the file, the line and the problem") {
  CHECK_THAT(error_of("{\"text\": \"a\"}\n\n{\"txt\": 1}"),
             Contains("the object has txt") && Contains("[dataset_line]") && Contains("in data.jsonl:3"));
  CHECK_THAT(error_of("1"), Contains("no JSON object") && Contains("data.jsonl:1"));
  CHECK_THAT(error_of("{\"text\": 1}"), Contains("\"text\" is no text"));
  CHECK_THAT(error_of("{\"prompt\": \"a\"}"), Contains("\"completion\" is missing"));
  CHECK_THAT(error_of("{\"text\": \"a\"}\n{\"text\": "), Contains("data.jsonl:2") && Contains("[json]"));
  CHECK_THAT(error_of("{\"messages\": []}"), Contains("[chat_template]") && Contains("data.jsonl:1"));
  const ChatTemplate chat = template_of("chatml");
  CHECK_THAT(error_of("{\"messages\": []}", {.chat = &chat}),
             Contains("[chat_messages]") && Contains("data.jsonl:1"));
  CHECK_THAT(error_of("\n \n"), Contains("[dataset_empty]"));
}

TEST_CASE("examples: other JSON layouts get specific errors") {
  const std::string ok = "{\"text\": \"a\"}\n";
  CHECK_THAT(error_of("[{\"text\": \"a\"},\n{\"text\": \"b\"}]\n"),
             Contains("data.jsonl:1: ") && Contains("a JSON array is no JSONL") && Contains("[dataset_line]"));
  CHECK_THAT(error_of(ok + "{\n \"text\": \"hello\"\n}\n"),
             Contains("data.jsonl:2: not JSON: column 2: ") && Contains("each object is one line"));
  CHECK_THAT(error_of(ok + "{\"text\": \"lone \\ud83d x\"}\n"),
             Contains("data.jsonl:2: ") && Contains("surrogate") && Contains("half of a surrogate pair"));
  CHECK_THAT(error_of("{\"text\": \"\u00e9\", \"score\": NaN}\n"),
             Contains("data.jsonl:1: not JSON: column 24: invalid literal") && Contains("JSON has no NaN"));
  CHECK_THAT(error_of("{\"text\": \"caf\xE9\"}\n"), Contains("column 15: ") && Contains("save the file as UTF-8"));
  CHECK_THAT(error_of("{\"text\": \"hello\"},\n"),
             Contains("column 18: ") && Contains("no commas between its lines"));
  for (const char* line : {"{\"text\": NaN}", "{\"text\"", "{", "{\"a\": 1,}"}) {
    const std::string error = error_of(line);
    CHECK_THAT(error, !Contains("json.exception") && !Contains("line 1") && Contains("[json]"));
  }
}

TEST_CASE("examples that are too long: texts are split, others are truncated") {
  FitReport report;
  const std::vector<Example> fitted =
      fit({example_of(10), example_of(3), example_of(9, 6), example_of(9, 8)}, 4, report);
  CHECK(report.split == 1);
  CHECK(report.cut == 2);
  CHECK(report.dropped == 2);
  std::vector<std::int64_t> sizes;
  std::int64_t predictions = 0;
  std::set<TokenId> predicted;
  for (const Example& example : fitted) {
    sizes.push_back(example.size());
    CHECK(example.learned[0] == 0);
    if (sizes.size() > 3) break;
    predictions += example.predictions();
    for (std::size_t i = 0; i < example.ids.size(); ++i)
      if (example.learned[i]) CHECK(predicted.insert(example.ids[i]).second);
  }
  CHECK(sizes == std::vector<std::int64_t>{4, 4, 4, 3});
  CHECK(predictions == 9);  // each of ten tokens except the first, once
}

TEST_CASE("windows of a text predict each token once, with the preceding context") {
  std::vector<TokenId> ids;
  for (TokenId i = 0; i < 23; ++i) ids.push_back(i);
  for (const std::int64_t stride : {1, 3, 7, 8}) {
    std::vector<int> predicted(ids.size());
    for (const Example& window : windows(ids, 8, stride)) {
      CHECK(window.size() <= 8);
      for (std::size_t i = 0; i < window.ids.size(); ++i)
        if (window.learned[i]) {
          ++predicted[static_cast<std::size_t>(window.ids[i])];
          const auto id = static_cast<std::int64_t>(window.ids[i]);
          CHECK(static_cast<std::int64_t>(i) >= std::min(id, 8 - stride));
        }
    }
    INFO(stride);
    CHECK(predicted[0] == 0);
    CHECK(std::count(predicted.begin(), predicted.end(), 1) == 22);
  }
}

TEST_CASE("batches of padded rows") {
  const TokenBatches batches({example_of(5, 3), example_of(2)}, {.context = 32, .batch = 2, .seed = 3});
  const Tensors batch = batches.training(0);
  CHECK(batch.at("input_ids").shape() == std::vector<std::int64_t>{2, 16});
  CHECK_FALSE(batch.contains("segments"));
  const bool first = batch.at("input_ids").get_int(2) != 0;  // which row is longer
  const auto labels = row_of(batch.at("labels"), first ? 0 : 1);
  CHECK(std::vector<std::int64_t>(labels.begin(), labels.begin() + 6) ==
        std::vector<std::int64_t>{-100, -100, -100, 13, 14, -100});
  CHECK(batch.at("weight").get(0) == 1.0 / 3);
  CHECK(batches.predictions() == 3);
  CHECK_FALSE(batch.contains("lengths"));
  const TokenBatches counted({example_of(5, 3), example_of(2), example_of(4)},
                             {.context = 32, .batch = 2, .lengths = true});
  const auto lengths = [&](std::int64_t number) {
    const HostTensor values = counted.evaluation(number, 2).at("lengths");
    return std::vector<std::int64_t>{values.get_int(0), values.get_int(1)};
  };
  CHECK(lengths(0) == std::vector<std::int64_t>{5, 2});
  CHECK(lengths(1) == std::vector<std::int64_t>{4, 1});  // the last row has no text
}

TEST_CASE("batches of packed rows: no row is longer, nothing is lost, positions restart at 0") {
  std::vector<Example> examples;
  for (std::int64_t i = 0; i < 40; ++i)
    examples.push_back(example_of(2 + i * 7 % 15, 1, static_cast<TokenId>(i * 100)));
  const TokenBatches batches(examples, {.context = 16, .batch = 3, .pack = true});
  CHECK(batches.rows() * 16 < batches.tokens() * 5 / 4);
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < batches.evaluation_batches(); ++i) {
    const Tensors batch = batches.evaluation(i, batches.evaluation_batches());
    for (std::int64_t row = 0; row < 3; ++row) {
      const auto ids = row_of(batch.at("input_ids"), row), labels = row_of(batch.at("labels"), row);
      const auto segments = row_of(batch.at("segments"), row), positions = row_of(batch.at("position_ids"), row);
      for (std::size_t k = 0; k < ids.size(); ++k) {
        if (segments[k] == 0) {
          CHECK(labels[k] == -100);
          continue;
        }
        const bool starts = k == 0 || segments[k] != segments[k - 1];
        CHECK(positions[k] == (starts ? 0 : positions[k - 1] + 1));
        CHECK(labels[k] == (starts ? -100 : ids[k]));
        CHECK(ids[k] % 100 == positions[k]);
        CHECK(seen.insert(ids[k]).second);
      }
    }
  }
  CHECK(std::ssize(seen) == batches.tokens());
}

TEST_CASE("each pass over the examples uses every example once, in its own order") {
  const EpochOrder order(50, 7), again(50, 7);
  std::set<std::vector<std::uint32_t>> orders;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::uint32_t> pass;
    for (std::int64_t i = 0; i < 50; ++i) pass.push_back(order.at(epoch * 50 + i));
    orders.insert(pass);
    CHECK(std::set(pass.begin(), pass.end()).size() == 50);
    CHECK(*std::ranges::max_element(pass) == 49);
  }
  CHECK(orders.size() == 4);
  for (const std::int64_t position : {199, 3, 120, 0}) CHECK(again.at(position) == order.at(position));
  CHECK(EpochOrder(1, 3).at(12) == 0);
}

TEST_CASE("batches depend only on seed and step, and visit each row once per epoch") {
  std::vector<Example> examples;
  for (TokenId i = 0; i < 10; ++i) examples.push_back(example_of(3, 1, i * 10));
  const BatchOptions options{.context = 8, .batch = 2, .accumulate = 2, .seed = 5};
  const TokenBatches batches(examples, options), again(examples, options);
  CHECK(batches.updates_per_epoch() == 3);
  std::vector<std::vector<std::int64_t>> epochs(2);
  for (std::int64_t step = 0; step < 10; ++step) {
    const Tensors batch = batches.training(step);
    CHECK(row_of(batch.at("input_ids"), 1) == row_of(again.training(step).at("input_ids"), 1));
    for (std::int64_t row = 0; row < 2; ++row)
      epochs[static_cast<std::size_t>(step / 5)].push_back(batch.at("input_ids").get_int(row * 8));
  }
  CHECK(epochs[0] != epochs[1]);
  for (auto& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    CHECK(std::unique(epoch.begin(), epoch.end()) == epoch.end());
    CHECK(epoch.size() == 10);
  }
}

TEST_CASE("weights of accumulated batches count every label of an update equally") {
  std::vector<Example> examples;
  for (std::int64_t i = 0; i < 8; ++i) examples.push_back(example_of(2 + i));
  const TokenBatches batches(examples, {.context = 16, .batch = 2, .accumulate = 4, .seed = 2});
  std::int64_t labels = 0;
  for (std::int64_t step = 0; step < 4; ++step) labels += batches.predictions_of(step);
  CHECK(labels == batches.predictions());
  for (std::int64_t step = 0; step < 4; ++step)
    CHECK(batches.training(step).at("weight").get(0) == 4.0 / static_cast<double>(labels));
  double sum = 0;
  for (std::int64_t i = 0; i < 3; ++i) sum += batches.evaluation(i, 3).at("weight").get(0) / 3;
  CHECK(sum == Approx(3.0 / static_cast<double>(1 + 2 + 3 + 4 + 5 + 6)));
}

TEST_CASE("a fraction of the examples is held out") {
  std::vector<Example> examples;
  for (TokenId i = 0; i < 20; ++i) examples.push_back(example_of(2, 1, i * 10));
  std::vector<Example> rest = examples;
  const std::vector<Example> apart = split_off(rest, 0.2, 9);
  CHECK(apart.size() == 4);
  CHECK(rest.size() == 16);
  std::set<TokenId> all;
  for (const auto& list : {apart, rest})
    for (const Example& example : list) CHECK(all.insert(example.ids[0]).second);
  std::vector<Example> two(examples.begin(), examples.begin() + 2);
  CHECK(split_off(two, 0.01, 1).size() == 1);
}
