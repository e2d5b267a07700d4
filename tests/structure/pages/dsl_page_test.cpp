#include "tests/structure/pages/dsl_page.h"

#include <catch2/catch.hpp>

#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/structure/pages/declarations.h"
#include "tests/structure/sources.h"
#include "tests/support/texts/committed_text.h"

using namespace lathe::test;

TEST_CASE("docs/dsl.md matches the headers of the DSL") { check_committed("docs/dsl.md", dsl_page()); }

TEST_CASE("dsl page: every public header of the DSL is on it") {
  const std::string page = dsl_page();
  for (const SourceFile* header : public_headers()) {
    const bool only_includes =
        header->path == "frontend/dsl.h" || header->path == "frontend/train/optimizers/optimizers.h";
    if (!header->is_in("frontend") || only_includes) continue;
    INFO(header->path);
    CHECK(page.find("From `" + header->path + "`") != std::string::npos);
  }
}

TEST_CASE("dsl page: every function with parameters has a description") {
  const std::regex undescribed(R"(\| `[^`(]* \w+\([^)`]+\)`[^|]* \|  \|.*)");
  std::istringstream lines(dsl_page());
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK_FALSE(std::regex_match(line, undescribed));
  }
}

TEST_CASE("dsl page: a summary is the first sentence, and later ones with shapes") {
  CHECK(summary_of("The sine. [dtype_kind]") == "The sine.");
  CHECK(summary_of("By Vaswani et al. 2017: 0, 1, .. n. More text. Returns [B, T].") ==
        "By Vaswani et al. 2017: 0, 1, .. n. Returns [B, T].");
  CHECK(summary_of("f32: a number") == "f32: a number");
}

TEST_CASE("dsl page: declarations are printed without references and lines") {
  CHECK(printed_declaration("inline Tensor exp(const Tensor& a, Where at = Where::current()) {}") ==
        "Tensor exp(Tensor a)");
  CHECK(printed_declaration("explicit Graph(std::string_view name)") == "Graph(std::string_view name)");
  CHECK(printed_declaration("template <class F> requires(n<F>() > 0) CustomOp custom_op(F forward)") ==
        "CustomOp custom_op(F forward)");
  CHECK(printed_declaration("Flag(std::same_as<bool> auto flag) : value(flag) {}") ==
        "Flag(std::same_as<bool> auto flag)");
  CHECK(printed_declaration("bool bias = true") == "bool bias = true");
}

TEST_CASE("declarations: types, members, enumerators, doc comments and access") {
  const SourceFile header{"a.h",
                          {"/// A file.",
                           "namespace lathe::nn {",
                           "struct Later;",
                           "enum class Side { left, right };",
                           "/// A layer. More.",
                           "class Layer : public Module {",
                           " public:",
                           "  /// Calls it:",
                           "  ///   layer(x);",
                           "  Tensor operator()(const Tensor& x,",
                           "                    int n = 1) const;",
                           "  int size() const { return n_; }",
                           "",
                           "  int rank{1};  ///< number of dims,",
                           "                ///< at most 4",
                           "  Layer(const Layer&) = default;",
                           "",
                           " private:",
                           "  int n_ = 0;",
                           "};",
                           "namespace detail {",
                           "void hidden();",
                           "}",
                           "}  // namespace lathe::nn"}};
  const HeaderText text = declarations_of(header);
  CHECK(text.doc == "A file.");
  std::vector<std::string> found;
  for (const Declaration& each : text.declarations)
    found.push_back(each.owner + ": " + each.code + " (" + each.doc + ")" + (each.shares_doc ? "+" : ""));
  CHECK(found == std::vector<std::string>{
                     "nn: enum Side ()", "nn::Side: left ()", "nn::Side: right ()",
                     "nn: class Layer : public Module (A layer. More.)",
                     "nn::Layer: Tensor operator()(const Tensor& x, int n = 1) const (Calls it:)",
                     "nn::Layer: int size() const ()", "nn::Layer: int rank{1} (number of dims, at most 4)"});
}
