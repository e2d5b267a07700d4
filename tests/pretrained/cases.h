#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/pretrained/pretrained.h"
#include "runtime/files/safetensors.h"

namespace lathe::test {

/// A reference case of tests/hf: a model's directory, what to feed and what must come out, computed in f64 by the
/// original libraries.
struct HfCase {
  std::string name, task;
  std::map<std::string, double> grad_norms;   ///< by tensor of the files
  std::optional<std::int64_t> prefix = {};    ///< columns that prefix_logits was computed from
  std::optional<std::int64_t> beam_end = {};  ///< the token that ends a beam of beam_eos_ids

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

/// max |got - want| / max |want|, rows where `skipped` says so left out.
double error_of(const HostTensor& got, const HostTensor& want, const HostTensor* mask = nullptr);

}  // namespace lathe::test
