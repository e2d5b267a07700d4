#include <catch2/catch.hpp>

#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/library/library_runner.h"
#include "tests/support/tensors/compare_tensors.h"

/// The errors and the files of emit_library().
using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

ir::Graph scaled(const std::string& name = "scaled", const std::string& size = "n") {
  return parse("graph @" + name + "(input %x: f32[" + size +
               "], parameter %scale: f32[1]) {\n"
               "  %1 = mul %x, %scale\n  output \"y\" %1\n}");
}

std::string error_of(const std::vector<LibraryGraph>& graphs, const LibraryOptions& options) {
  try {
    emit_library(graphs, options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("library: emit_library refuses what it cannot emit", "[library]") {
  const LibraryOptions good{.prefix = "p", .targets = {"x86-64-v3"}, .most = {{"n", 4}}};
  const auto changed = [&](auto change) {
    LibraryOptions options = good;
    change(options);
    return error_of({{"", scaled()}}, options);
  };
  using O = LibraryOptions;
  CHECK(changed([](O&) {}) == "none");
  CHECK_THAT(changed([](O& o) { o.prefix = "3d"; }), Contains("[library_prefix]") && Contains("'3d'"));
  CHECK_THAT(changed([](O& o) { o.prefix = "int"; }), Contains("[library_prefix]"));
  CHECK_THAT(changed([](O& o) { o.prefix = ""; }), Contains("[library_prefix]"));
  CHECK_THAT(changed([](O& o) { o.prefix = "lathe"; }), Contains("[library_prefix]"));
  CHECK_THAT(changed([](O& o) { o.prefix = "lathe_pool"; }), Contains("[library_prefix]") && Contains("helper"));
  CHECK_THAT(changed([](O& o) { o.prefix = "lathes"; }), Contains("none"));
  CHECK_THAT(changed([](O& o) { o.targets = {}; }), Contains("[library_target]"));
  CHECK_THAT(changed([](O& o) { o.targets = {"x86-64-v4", "x86-64-v3"}; }), Contains("no call would use x86-64-v4"));
  CHECK_THAT(changed([](O& o) { o.targets = {"x86-64-v3,+prefer-128-bit", "x86-64-v3"}; }),
             Contains("no call would use x86-64-v3,+prefer-128-bit"));
  CHECK(changed([](O& o) { o.targets = {"sapphirerapids", "znver4"}; }) == "none");
  CHECK_THAT(changed([](O& o) { o.targets = {"x86-64-v3", "x86-64-v3"}; }), Contains("twice"));
  CHECK_THAT(changed([](O& o) { o.targets = {"cuda"}; }), Contains("[library_target]"));
  CHECK_THAT(changed([](O& o) { o.targets = {"x86-64-v3", "cuda"}; }), Contains("different kinds"));
  CHECK_THAT(changed([](O& o) { o.most = {}; }), Contains("[library_dims]") && Contains("--max n="));
  CHECK_THAT(changed([](O& o) { o.most = {{"n", 0}}; }), Contains("[library_dims]"));
  CHECK_THAT(changed([](O& o) { o.most = {{"n", 4}, {"m", 4}}; }), Contains("[library_dims]") && Contains(" m "));
  CHECK_THAT(changed([](O& o) { o.sizes = {{"k", 4}}; }), Contains("[library_dims]") && Contains(" k "));
  CHECK_THAT(changed([](O& o) { o.most = {{"n", INT64_MAX / 2}}; }), Contains("[dim_overflow]"));
  CHECK_THAT(changed([](O& o) { o.embedded.set("x", HostTensor(f32, {4})); }), Contains("[library_values]"));
  CHECK_THAT(changed([](O& o) { o.embedded.set("scale", HostTensor(f32, {2})); }), Contains("[library_values]"));
  CHECK_THAT(changed([](O& o) { o.packed_bytes = -1; }), Contains("[library_values]") && Contains("-1"));
  CHECK_THAT(error_of({{"", parse("graph @g(input %packed_weights: f32[n]) {\n  %1 = exp %packed_weights\n"
                                  "  output \"y\" %1\n}")}},
                      {.prefix = "p", .most = {{"n", 4}}, .packed_bytes = 1}),
             Contains("an input packed_weights") && Contains("[library_values]"));
  CHECK_THAT(changed([](O& o) { o.initializers = {{"sacle", Init::ones()}}; }), Contains("[library_values]"));
  CHECK_THAT(changed([](O& o) { o.initializers = {{"scale", Init::values({1, 2})}}; }), Contains("[init_values]"));
  CHECK_THAT(error_of({}, good), Contains("[library_prefix]"));
  CHECK_THAT(error_of({{"a", scaled()}, {"a", scaled()}}, good), Contains("[library_prefix]") && Contains("'a'"));
  CHECK_THAT(error_of({{"a", scaled()}, {"", scaled()}}, good), Contains("[library_prefix]"));
  const ir::Graph other = parse("graph @other(parameter %scale: f64[1]) {\n  output \"y\" %scale\n}");
  CHECK_THAT(error_of({{"a", scaled()}, {"b", other}}, good), Contains("[library_states]") && Contains("f64[1]"));
}

TEST_CASE("library: members have other names than keywords and macros of C", "[library]") {
  const ir::Graph graph = parse(R"(graph @g(input %"int": f32[NULL], input %"a.b": f32[NULL], input %"a_b": f32[NULL],
    input %errno: f32[NULL], input %INT64_MAX: f32[NULL], input %EINVAL: f32[NULL], input %E: f32[NULL]) {
  %1 = add %"int", %"a.b"
  %2 = add %1, %"a_b"
  %3 = add %2, %errno
  %4 = add %3, %INT64_MAX
  %5 = add %4, %EINVAL
  %6 = add %5, %E
  output "EOF" %6
})");
  const std::string header =
      emit_library(std::vector<LibraryGraph>{{"", graph}}, {.prefix = "p", .most = {{"NULL", 4}}}).header.bytes;
  for (const std::string member :
       {"int64_t NULL_", "const float *int_", "const float *a_b", "const float *a_b_2", "const float *errno_",
        "const float *INT64_MAX_", "const float *EINVAL_", "const float *E", "float *EOF_"})
    CHECK_THAT(header, Contains("  " + member + ";"));
}

TEST_CASE("library: the same graph gives the same bytes", "[library]") {
  const LibraryOptions options{
      .prefix = "p", .targets = {"x86-64-v2", "x86-64-v4"}, .most = {{"n", 4}}, .threads = 2};
  const EmittedLibrary a = emit_library(std::vector<LibraryGraph>{{"", scaled()}}, options),
                       b = emit_library(std::vector<LibraryGraph>{{"", scaled()}}, options);
  CHECK(a.archive.bytes == b.archive.bytes);
  CHECK(a.header.bytes == b.header.bytes);
  CHECK(a.objects.size() == 3);
  CHECK_THAT(a.sources.bytes, Contains("x86-64-v4") && Contains("mul"));
  CHECK(a.archive.name == "libp.a");
}

TEST_CASE("library: several graphs share states, and embedded values are part of the library", "[library]") {
  const ir::Graph push = parse(R"(graph @push(input %x: f32[n], parameter %scale: f32[1], state %sum: f32[1]) {
  %1 = sum %x {dims=[0], keepdim=true}
  %2 = mul %1, %scale
  %3 = add %sum, %2
  update %sum <- %3
})");
  const ir::Graph read = parse("graph @read(state %sum: f32[1]) {\n  %1 = neg %sum\n  output \"y\" %1\n}");
  LibraryOptions options{.prefix = "sums", .targets = {"x86-64-v3"}, .most = {{"n", 4}}};
  options.embedded.set("scale", HostTensor::from_numbers({1}, NumberList{Number(3.0)}, f32));
  LibraryRunner library({{"push", push}, {"read", read}}, options);
  REQUIRE(library.described_states().size() == 1);
  library.init({{"n", 2}}, 1);
  HostTensor x(f32, {2});
  x.set(0, 1.5);
  x.set(1, 2);
  library.run("sums_push", {{"x", x}}, {{"n", 2}});
  library.run("sums_push", {{"x", x}}, {{"n", 2}}, 2);
  CHECK(library.run("sums_read", {}, {{"n", 2}}).at("y").get(0) == -21);
}
