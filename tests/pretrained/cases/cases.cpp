#include "tests/pretrained/cases/cases.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/texts/test_data.h"

namespace lathe::test {

namespace {

const nlohmann::json& all_cases() {
  static const nlohmann::json parsed = nlohmann::json::parse(std::ifstream(test_data("hf/cases.json")));
  return parsed;
}

}  // namespace

std::filesystem::path HfCase::folder() const { return test_data("hf/models") / name / "model"; }
SafetensorsFile HfCase::inputs() const {
  return SafetensorsFile::open(test_data("hf/models") / name / "inputs.safetensors");
}
SafetensorsFile HfCase::expected() const {
  return SafetensorsFile::open(test_data("hf/models") / name / "expected.safetensors");
}

std::vector<HfCase> hf_cases(std::string_view task) {
  std::vector<HfCase> found;
  for (const nlohmann::json& item : all_cases().at("models")) {
    if (item.at("task") != task) continue;
    HfCase made{.name = item.at("name"), .task = item.at("task"), .grad_norms = item.at("grad_norms")};
    if (!item.at("prefix").is_null()) made.prefix = item.at("prefix").get<std::int64_t>();
    if (item.contains("beam_eos_id")) made.beam_end = item.at("beam_eos_id").get<std::int64_t>();
    found.push_back(std::move(made));
  }
  return found;
}

std::filesystem::path HfAdapterCase::folder() const { return test_data("hf/adapters") / name / "adapter"; }
SafetensorsFile HfAdapterCase::expected() const {
  return SafetensorsFile::open(test_data("hf/adapters") / name / "expected.safetensors");
}

std::vector<HfAdapterCase> hf_adapter_cases() {
  std::vector<HfAdapterCase> found;
  for (const nlohmann::json& item : all_cases().at("adapters"))
    found.push_back({item.at("name"), {.name = item.at("base"), .task = item.at("task"), .grad_norms = {}}});
  return found;
}

HfTraining hf_training() {
  const nlohmann::json& t = all_cases().at("training");
  return {t.at("lr"), t.at("betas")[0], t.at("betas")[1], t.at("eps"), t.at("weight_decay"), t.at("steps")};
}

double error_of(const HostTensor& got, const HostTensor& want, const HostTensor* mask) {
  if (got.shape() != want.shape()) return std::numeric_limits<double>::infinity();
  const std::int64_t rows = mask ? mask->numel() : 1, width = got.numel() / std::max<std::int64_t>(1, rows);
  double difference = 0, largest = 0;
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    if (mask && mask->get_int(i / width) == 0) continue;
    const double d = std::abs(got.get(i) - want.get(i));
    if (!(d <= difference)) difference = d;  // NaN too
    largest = std::max(largest, std::abs(want.get(i)));
  }
  return difference / largest;
}

}  // namespace lathe::test
