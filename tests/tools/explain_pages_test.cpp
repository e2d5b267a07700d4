#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>

#include "tests/support/texts/test_data.h"
#include "tests/tools/command.h"

/// The pictures of explain and dump: the memory plan as SVG, fused regions on the page, and the page of steps.
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using lathe::test::run_lathe;
using lathe::test::Scratch;

namespace {

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Returns the JSON between `const NAME = ` and the end of its line.
nlohmann::json data_of(const std::string& page, const std::string& name) {
  const std::string start = "const " + name + " = ";
  const std::size_t at = page.find(start);
  REQUIRE(at != page.npos);
  return nlohmann::json::parse(page.substr(at + start.size(), page.find(";\n", at) - at - start.size()));
}

}  // namespace

TEST_CASE("explain --memory: draws each value of the plan once", "[tools][page]") {
  const Scratch scratch;
  REQUIRE(run_lathe(scratch, "model walkthrough -o w.lathe").status == 0);
  const std::string sizes = " --dim nbatches=2,n_seq=16";
  const auto ran = run_lathe(scratch, "explain w.lathe --memory --svg m.svg" + sizes);
  INFO(ran.err);
  REQUIRE(ran.status == 0);
  CHECK_THAT(ran.out, StartsWith("memory: arena ") && Contains("at the peak"));
  const std::string svg = scratch.read("m.svg");
  CHECK_THAT(svg, StartsWith("<svg xmlns=") && EndsWith("</svg>\n") && Contains("peak: "));
  const std::string plan = run_lathe(scratch, "dump w.lathe --after memory-plan" + sizes).out;
  const int blocks = count(plan, "\n") - 2;  // after two lines of headings
  CHECK(blocks > 2);
  CHECK(count(svg, "<g><rect ") == blocks);
  CHECK(count(svg, "<title>launch ") > 2);
  CHECK_THAT(svg, Contains("walkthrough.cpp:"));
  CHECK(run_lathe(scratch, "explain w.lathe --memory --svg -" + sizes).out == svg);
  CHECK(run_lathe(scratch, "explain w.lathe --memory --target cuda:sm_90a" + sizes).status == 0);
  const auto unknown = run_lathe(scratch, "explain w.lathe --memory");
  CHECK(unknown.status == 1);
  CHECK_THAT(unknown.err, Contains("[dim_option]") && Contains("n_seq"));
  CHECK(run_lathe(scratch, "explain w.lathe --svg m.svg").status == 2);
  const auto target = run_lathe(scratch, "explain w.lathe --target cuda");
  CHECK(target.status == 1);
  CHECK_THAT(target.err, Contains("--target has no effect on the shapes of a graph  [usage]"));
}

TEST_CASE("dump --html: fused regions and the memory plan on the page", "[tools][page]") {
  const Scratch scratch;
  REQUIRE(run_lathe(scratch, "model walkthrough -o w.lathe").status == 0);
  const auto ran = run_lathe(scratch, "dump w.lathe --html --after memory-plan --dim nbatches=2,n_seq=16 -o p.html");
  INFO(ran.err);
  REQUIRE(ran.status == 0);
  const std::string page = scratch.read("p.html");
  CHECK_THAT(page, Contains("<div id=\"memory\" hidden><svg ") && !Contains("{{memory}}"));
  const nlohmann::json graph = data_of(page, "graph");
  REQUIRE(graph["regions"].size() > 2);
  std::vector<int> members(graph["regions"].size());
  for (const auto& node : graph["nodes"])
    if (node.contains("region")) ++members.at(node["region"].get<std::size_t>());
  for (const int each : members) CHECK(each > 0);
  REQUIRE(run_lathe(scratch, "dump w.lathe --html --after fuse -o r.html").status == 0);
  CHECK_THAT(scratch.read("r.html"), Contains("<div id=\"memory\" hidden></div>"));
  CHECK(data_of(scratch.read("r.html"), "graph")["regions"].size() == graph["regions"].size());
  REQUIRE(run_lathe(scratch, "dump w.lathe --html -o g.html").status == 0);
  CHECK(!data_of(scratch.read("g.html"), "graph").contains("regions"));
  CHECK(run_lathe(scratch, "dump w.lathe --html --after kernels").status == 1);
}

TEST_CASE("explain --html: steps with the interpreter's numbers", "[tools][page]") {
  const Scratch scratch;
  scratch.write("g.lathe", R"(graph @g(input %x: f32[n, 2], parameter %w: f32[3, 2]) {
  %1 = linear %x, %w
  %2 = constant {dtype=f32, shape=[], values=[2.0]}
  %3 = mul %1, %2
  output "</script>" %3
}
)");
  const auto ran = run_lathe(scratch, "explain g.lathe --html --dim n=4 --seed 3 -o p.html");
  INFO(ran.err);
  REQUIRE(ran.status == 0);
  const std::string page = scratch.read("p.html");
  CHECK(count(page, "</script>") == 1);
  for (const char* mark : {"{{title}}", "{{css}}", "{{script}}", "{{data}}"}) CHECK(page.find(mark) == page.npos);
  CHECK(page.find("http") == page.npos);
  const nlohmann::json data = data_of(page, "data");
  REQUIRE(data["steps"].size() == 4);  // inputs, parameters, linear, mul
  CHECK(data["values"][2]["sizes"] == nlohmann::json({4, 3}));
  const auto &x = data["values"][0]["values"], &w = data["values"][1]["values"], &y = data["values"][2]["values"];
  const double expected = x[0].get<double>() * w[2].get<double>() + x[1].get<double>() * w[3].get<double>();
  CHECK(y[1].get<double>() == Approx(expected).epsilon(1e-3).margin(1e-5));
  CHECK(data["values"][4]["outputs"] == nlohmann::json({"</script>"}));
  // Large values have no numbers.
  REQUIRE(run_lathe(scratch, "explain g.lathe --html --dim n=3000 -o large.html").status == 0);
  CHECK(!data_of(scratch.read("large.html"), "data")["values"][0].contains("values"));
  CHECK(run_lathe(scratch, "explain g.lathe --seed 3").status == 2);
}

TEST_CASE("explain --html: every built-in example is a page, and rows of attention weights add up to 1",
          "[tools][page]") {
  const Scratch scratch;
  for (const char* name :
       {"gpt", "llama", "encoder-decoder", "walkthrough", "llama-attention", "einsum-attention", "attention-forms"}) {
    CAPTURE(name);
    REQUIRE(run_lathe(scratch, std::string("model ") + name + " -o m.lathe").status == 0);
    const auto ran = run_lathe(scratch, "explain m.lathe --html -o p.html");
    INFO(ran.err);
    REQUIRE(ran.status == 0);
    int softmaxes = 0;
    const nlohmann::json data = data_of(scratch.read("p.html"), "data");
    for (const auto& value : data["values"]) {
      if (value["op"] != "softmax" || !value.contains("values")) continue;
      ++softmaxes;
      const auto row = value["sizes"].back().get<std::size_t>();
      const auto weights = value["values"].get<std::vector<double>>();
      for (std::size_t start = 0; start < weights.size(); start += row)
        CHECK(std::accumulate(&weights[start], &weights[start] + row, 0.0) == Approx(1).epsilon(1e-4));
    }
    CHECK(softmaxes > 0);
  }
}

TEST_CASE("the page of steps finds the numbers that a number is made of", "[tools][page]") {
  if (std::system("node --version >/dev/null 2>&1") != 0) {
    WARN("SKIP: no node");
    return;
  }
  const Scratch scratch;
  const std::string source = lathe::test::source_path("tools/page/walkthrough/numbers.js").string();
  scratch.write("check.js", "(0, eval)(require('fs').readFileSync('" + source +
                                "', 'utf8') + ';globalThis.sourcesOf = sourcesOf; globalThis.madeOf = madeOf;');\n" +
                                R"(
const tensor = (sizes, values, more) => ({sizes, values, dtype: 'f32', args: [], attrs: {}, ...more});
const check = (step, values, flat) => console.log(JSON.stringify(sourcesOf(step, values, flat)) + ' ' + madeOf(step, values, flat));
const a = tensor([2, 2], [1, 2, 3, 4]), b = tensor([2, 2], [5, 6, 7, 8]);
check(tensor([2, 2], [19, 22, 43, 50], {op: 'matmul', args: [0, 1]}), [a, b], 2);
check(tensor([2, 2], [17, 23, 39, 53], {op: 'linear', args: [0, 1]}), [a, b], 1);
check(tensor([2, 2], [19, 22, 43, 50], {op: 'contract', args: [0, 1], attrs: {spec: 'ij,jk->ik'}}), [a, b], 2);
check(tensor([2, 2], [1, 3, 2, 4], {op: 'transpose', args: [0], attrs: {dim0: 0, dim1: 1}}), [a], 1);
check(tensor([2], [3, 7], {op: 'sum', args: [0], attrs: {dims: [1], keepdim: false}}), [a], 1);
check(tensor([2, 2], [6, 8, 8, 10], {op: 'add', kind: 'elementwise', args: [0, 1]}), [a, tensor([1, 2], [5, 6])], 3);
check(tensor([3, 2], [3, 4, 1, 2, 1, 2], {op: 'gather', args: [0, 1], attrs: {dim: 0}}), [a, tensor([3], [1, 0, 0])], 1);
)");
  const int status = std::system(("cd '" + scratch.path("") + "' && node check.js >out 2>err").c_str());
  INFO(scratch.read("err"));
  CHECK(status == 0);
  CHECK(scratch.read("out") ==
        "[[2,3],[0,2]] 3.000·5.000 + 4.000·7.000 = 43.00\n"
        "[[0,1],[2,3]] 1.000·7.000 + 2.000·8.000 = 23.00\n"
        "[[2,3],[0,2]] 3.000·5.000 + 4.000·7.000 = 43.00\n"
        "[[2]] the same number, 3.000, from position [1,0]\n"
        "[[2,3]] 3.000 + 4.000 = 7.000\n"
        "[[3],[1]] 4.000 + 6.000 = 10.00\n"
        "[[3],[0]] row 1.000 of the table: 4.000\n");
}
