#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/pretrained/pretrained.h"
#include "runtime/files/safetensors/safetensors.h"

namespace lathe::test {

/// A reference case of tests/hf: a model's directory, its inputs and the expected outputs, computed in f64 by the
/// original libraries.
struct HfCase {
  std::string name, task;
  std::map<std::string, double> grad_norms;   ///< by tensor name in the files
  std::optional<std::int64_t> prefix = {};    ///< number of columns that prefix_logits was computed from
  std::optional<std::int64_t> beam_end = {};  ///< the end token of the beams in beam_eos_ids

  std::filesystem::path folder() const;
  SafetensorsFile inputs() const;
  SafetensorsFile expected() const;
};
std::vector<HfCase> hf_cases(std::string_view task);

/// A case of an adapter on one of the models.
struct HfAdapterCase {
  std::string name;
  HfCase base;

  std::filesystem::path folder() const;
  SafetensorsFile expected() const;
};
std::vector<HfAdapterCase> hf_adapter_cases();

struct HfTraining {
  double lr, beta1, beta2, eps, weight_decay;
  std::int64_t steps;
};
HfTraining hf_training();

/// Returns max |got - want| / max |want|, without the rows that `mask` excludes.
double error_of(const HostTensor& got, const HostTensor& want, const HostTensor* mask = nullptr);

}  // namespace lathe::test
