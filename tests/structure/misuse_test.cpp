#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/support/texts/test_data.h"

/// Likely misuses of the headers that must not compile, with part of the expected error. All are compiled at once;
/// "#line" gives each one a file name, by which its errors are found. A template reports an error only once, so each
/// misuse of a template uses its own type.
using namespace lathe::test;

namespace {

struct Misuse {
  std::string_view name, code, error;
};

constexpr Misuse misuses[] = {
    // References into a temporary that has been destroyed.
    {"span_of_a_result", R"(for (float v : exe.run(in).at("y").as<float>()) (void)v;)",
     "keep the tensor in a variable"},
    {"span_of_a_new_tensor", R"((void)HostTensor(f64, {2}).as<double>();)", "keep the tensor in a variable"},
    {"data_of_a_result", R"((void)exe.run(in).at("y").data();)", "deleted"},
    {"reference_to_a_result", R"(HostTensor& y = exe.run(in).at("y"); (void)y;)", "HostTensor"},
    {"reference_to_a_temporary", R"(InputRefs refs{{"x", HostTensor(f32, {2})}};)", "deleted"},
    // An empty tensor under a misspelled name.
    {"bracket_of_a_result", R"((void)exe.run(in)["typo"].get(0);)", "at(name) reads, set(name, tensor) inserts"},
    {"bracket_assigned", R"(Tensors t; t["x"] = HostTensor();)", "at(name) reads, set(name, tensor) inserts"},
    {"tensors_as_a_map", R"(Tensors t; std::map<std::string, HostTensor, std::less<>>& m = t; m["x"];)",
     "inaccessible"},
    // Elements of another type than the tensor's, and types that no dtype has.
    {"tensor_of_unsigned", R"((void)HostTensor::of<std::uint64_t>({1}, {1});)", "of"},
    {"tensor_of_floats_from_doubles", R"((void)HostTensor::of<float>({1}, std::vector<double>{1});)", "of"},
    {"item_as_text", R"((void)exe.run(in).at("y").item<std::string>();)", "item"},
    // A size is a whole number.
    {"dim_by_half", "(void)(Dim(\"d\", 8) / 0.5);", "operator/"},
    // Temporaries as inputs of a run that writes to tensors: they are destroyed before it reads them.
    {"run_on_a_temporary", R"(Tensors y; exe.run({{"x", HostTensor(f32, {2})}}, y);)", "deleted"},
    // A bool is not a dim, and a number is not a flag.
    {"sum_true", "x.sum(true);", "Axes"},
    {"sum_list_true", "x.sum({true});", "sum"},
    {"select_true", "x.select(1, true);", "select"},
    {"sum_two_numbers", "x.sum(0, 1);", "Flag"},
    {"sum_of_half", "x.sum(0.5);", "Axes"},
    {"squeeze_true", "x.squeeze(true);", "DimIndex"},
    {"softmax_one_and_a_half", "x.softmax(1.5);", "DimIndex"},
    {"sort_true", "sort(x, true);", "DimIndex"},
    {"gather_true", "gather(x, x, true);", "bool"},
    // Adjacent numbers must be named.
    {"init_normal", "Init::normal(0.02, 0);", "normal"},
    {"init_uniform", "Init::uniform(0, 1);", "uniform"},
    {"random_normal", "g.random_normal({2}, f32, 0, 1);", "Normal"},
    {"random_uniform", "g.random_uniform({2}, f32, 0, 1);", "Uniform"},
    {"warmup_cosine", "Schedule::warmup_cosine(3e-4, 100, 2000);", "warmup_cosine"},
    {"noam", "Schedule::noam(0.5, 64, 200);", "noam"},
    // Tensors of a graph have no values yet.
    {"if_of_a_tensor", "if (x > 0) return;", "bool"},
    {"and_of_tensors", "(void)(x > 0 && x < 1);", "Tensor"},
    {"copy_of_an_executable", "const Executable copy = exe; (void)copy;", "deleted"},
};

/// The correct form of every misuse above.
constexpr std::string_view correct = R"(
  const HostTensor y = exe.run(in).at("y");
  for (float v : y.as<float>()) (void)v;
  for (std::int64_t size : exe.run(in).at("y").shape()) (void)size;
  (void)exe.run(in).at("y").get(0);
  Tensors t;
  t.set("x", HostTensor(f32, {2})).set(0, 1);
  const InputRefs refs{{"x", t.at("x")}};
  Tensors outputs;
  exe.run(refs, outputs), exe.run(t, outputs), exe.run({{"x", t.at("x")}}, outputs);
  exe.run(t, OutputRefs{{"y", outputs.at("y")}}, {{"n", 2}}), exe.run(t, outputs, {{"n", 2}});
  (void)exe.run({{"x", HostTensor(f32, {2})}}), (void)exe.run({{"x", HostTensor(f32, {2})}}, {{"n", 2}});
  (void)HostTensor::of<float>({1}, {1}), (void)HostTensor::of({1}, std::vector<double>{1});
  (void)y.item<int>(), (void)y.values<std::uint8_t>(), (void)(Dim("d", 8) / Dim("h", 2) / 2);
  (void)x.sum(1), (void)x.sum({0, 1}, true), (void)x.sum(std::size_t{0}), (void)sort(x, -1, true);
  (void)Init::normal({.deviation = 0.02}), (void)g.random_uniform({2}, f32, {.low = -1, .high = 1});
  (void)Schedule::warmup_cosine({.peak = 3e-4, .warmup = 100, .total = 2000});
)";

std::string function(std::string_view name, std::string_view code) {
  std::string text = "#line 1 \"" + std::string(name) + ".cpp\"\n";
  text += "void " + std::string(name) + "(Executable& exe, const Tensors& in, const Tensor& x, const Graph& g) {";
  text += " (void)exe, (void)in, (void)x, (void)g; " + std::string(code) + " }\n";
  return text;
}

/// Returns the compiler's output for the program.
std::string compiler_output(const std::string& program) {
  const std::string root = source_path(".").string();
  std::array<char, 4096> buffer{};
  std::string path = (std::filesystem::temp_directory_path() / "lathe_misuse_XXXXXX").string();
  const int file = mkstemp(path.data());
  REQUIRE(file >= 0);
  std::FILE* source = fdopen(file, "w");
  CHECK(std::fwrite(program.data(), 1, program.size(), source) == program.size());
  std::fclose(source);
  const std::string command = std::string("LC_ALL=C '") + LATHE_CXX_COMPILER + "' -std=c++20 -fsyntax-only -I '" +
                              root + "/include' -I '" + root + "' -x c++ '" + path + "' 2>&1";
  std::FILE* compiler = popen(command.c_str(), "r");
  REQUIRE(compiler != nullptr);
  std::string output;
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), compiler))
    output.append(buffer.data(), count);
  CHECK(pclose(compiler) != 0);
  std::filesystem::remove(path);
  return output;
}

/// Returns the errors by snippet. For errors in templates, GCC names the snippet in an earlier line ("required from
/// here"), Clang in a later note ("requested here").
std::map<std::string, std::string> errors_by_snippet(const std::string& output) {
  std::map<std::string, std::string> errors;
  std::istringstream lines(output);
  std::string snippet, last;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find(".cpp:");
    const std::string file = end == std::string::npos || line.find('/') < end ? "" : line.substr(0, end);
    const bool is_error = line.find(" error: ") != std::string::npos;
    if (is_error) errors[file.empty() ? snippet : file] += line + "\n", last = line;
    if (is_error) snippet.clear();
    if (!is_error && !file.empty() && line.find("required from here") != std::string::npos) snippet = file;
    if (!is_error && !file.empty() && line.find("requested here") != std::string::npos) errors[file] += last + "\n";
  }
  return errors;
}

}  // namespace

TEST_CASE("misuse of the public headers does not compile, and the error suggests a fix") {
  std::string program = "#include <lathe/lathe.h>\nusing namespace lathe;\n" + function("correct", correct);
  for (const Misuse& misuse : misuses) program += function(misuse.name, misuse.code);
  const std::string output = compiler_output(program);
  const std::map<std::string, std::string> errors = errors_by_snippet(output);
  CHECK(errors.count("correct") == 0);
  for (const Misuse& misuse : misuses) {
    const auto found = errors.find(std::string(misuse.name));
    INFO(misuse.code);
    REQUIRE(found != errors.end());
    CHECK_THAT(found->second, Catch::Contains(std::string(misuse.error)));
  }
}
