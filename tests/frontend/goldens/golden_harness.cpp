#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tests/support/goldens/golden.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;

namespace {

const std::filesystem::path folder = test::test_data("goldens");
const double nan_value = std::numeric_limits<double>::quiet_NaN();

golden::Comparison compared(const std::vector<double>& actual, const std::vector<double>& golden,
                            golden::Metric metric = golden::Metric::max_norm) {
  const auto n = [](const std::vector<double>& v) { return static_cast<std::int64_t>(v.size()); };
  return golden::compare("t", HostTensor::from({n(actual)}, actual, f64), HostTensor::from({n(golden)}, golden, f64),
                         metric, 1e-9);
}

}  // namespace

TEST_CASE("the golden comparison uses the largest element or the L2 norm") {
  CHECK(compared({1, 2}, {1, 2}).error == 0);
  CHECK(compared({1, 2.5}, {1, 2}).error == Approx(0.25));
  CHECK(compared({3, 4.5}, {3, 4}, golden::Metric::l2).error == Approx(0.1));
}

TEST_CASE("the golden comparison requires equal NaN, infinities and shapes") {
  CHECK(compared({nan_value, 1}, {nan_value, 1}).good());
  CHECK_FALSE(compared({0, 1}, {nan_value, 1}).good());
  CHECK_FALSE(compared({nan_value, 1}, {0, 1}).good());
  CHECK_FALSE(compared({INFINITY, 1}, {-INFINITY, 1}).good());
  CHECK(compared({INFINITY, 1}, {INFINITY, 1}).good());
  CHECK_FALSE(compared({1, 2, 3}, {1, 2}).good());
}

TEST_CASE("a golden file that differs in one element is reported by tensor name") {
  const auto runner = golden::interpreter_runner();
  auto files = golden::load(folder, "attention_walkthrough");
  for (const std::string name : {"mid.weights", "out.final", "grad.W_k"}) {
    HostTensor& tensor = files.tensors.at(name);
    tensor.set(3, tensor.get(3) + 1e-6);
  }
  const auto found =
      golden::compare_values(golden::find_case("attention_walkthrough"), files, *runner, f64, golden::f64_tolerance);
  std::vector<std::string> wrong;
  for (const auto& each : found)
    if (!each.good()) wrong.push_back(each.tensor);
  CHECK(wrong == std::vector<std::string>{"mid.weights", "out.final", "grad.W_k"});
}

TEST_CASE("every golden file is a case, and all its tensors are compared") {
  std::size_t files_seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    ++files_seen;
    CHECK_NOTHROW(golden::find_case(entry.path().stem().string()));
  }
  CHECK(files_seen == golden::cases().size());
  const auto runner = golden::interpreter_runner();
  const auto files = golden::load(folder, "mask_edges");
  const auto found =
      golden::compare_values(golden::find_case("mask_edges"), files, *runner, f64, golden::f64_tolerance);
  std::size_t wanted = 0;
  for (const auto& [name, tensor] : files.tensors)
    wanted += name.starts_with("mid.") || name.starts_with("out.") || name.starts_with("grad.");
  CHECK(found.size() == wanted);
}
