#include "models/import/onnx/ops/sequences/activation_list.h"

#include <fmt/core.h>

#include <optional>

#include "models/import/ops/elementwise_functions.h"

namespace lathe::onnx {

namespace {

/// A function, with the defaults of its numbers if it has them. Without a default the attribute must give the number.
struct ActivationKind {
  std::string_view name;
  Tensor (*function)(const Tensor& x, double alpha, double beta);
  bool has_alpha = false, has_beta = false;
  std::optional<double> alpha = {}, beta = {};
};

constexpr ActivationKind kinds[] = {
    {"Relu", [](const Tensor& x, double, double) { return relu(x); }},
    {"Tanh", [](const Tensor& x, double, double) { return tanh(x); }},
    {"Sigmoid", [](const Tensor& x, double, double) { return sigmoid(x); }},
    {"Softsign", [](const Tensor& x, double, double) { return importing::softsign(x); }},
    {"Softplus", [](const Tensor& x, double, double) { return softplus(x); }},
    {"Affine", [](const Tensor& x, double alpha, double beta) { return x * alpha + beta; }, true, true},
    {"ScaledTanh", [](const Tensor& x, double alpha, double beta) { return tanh(x * beta) * alpha; }, true, true},
    {"LeakyRelu", [](const Tensor& x, double alpha, double) { return importing::leaky_relu(x, alpha); }, true, false,
     0.01},
    {"ThresholdedRelu", [](const Tensor& x, double alpha, double) { return where(x > alpha, x, 0); }, true, false, 1},
    {"HardSigmoid",
     [](const Tensor& x, double alpha, double beta) { return importing::hard_sigmoid(x, alpha, beta); }, true, true,
     0.2, 0.5},
    {"Elu", [](const Tensor& x, double alpha, double) { return importing::elu(x, alpha); }, true, false, 1},
};

const ActivationKind& kind_of(const OpCall& call, std::string_view name) {
  std::string known;
  for (const ActivationKind& kind : kinds) {
    if (kind.name == name) return kind;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", kind.name);
  }
  call.fail(fmt::format("the attribute activations has '{}'", name), "import_attribute",
            fmt::format("these are supported: {}", known));
}

/// The numbers of activation_alpha or activation_beta. Each function that has such a number takes the next one.
class Numbers {
 public:
  Numbers(const OpCall& call, std::string_view attribute) : call_(call), attribute_(attribute) {
    if (const auto* given = call.find<std::vector<double>>(attribute)) numbers_ = *given;
  }

  double next(const ActivationKind& kind, const std::optional<double>& fallback) {
    if (taken_ < numbers_.size()) return numbers_[taken_++];
    if (!fallback)
      call_.fail(fmt::format("the attribute {} has no number for {}", attribute_, kind.name), "import_attribute");
    return *fallback;
  }

  void require_all_taken() const {
    if (taken_ != numbers_.size())
      call_.fail(fmt::format("the attribute {} has {} numbers, and the activations take {}", attribute_,
                             numbers_.size(), taken_),
                 "import_attribute");
  }

 private:
  const OpCall& call_;
  std::string_view attribute_;
  std::vector<double> numbers_;
  std::size_t taken_ = 0;
};

}  // namespace

std::vector<nn::CellFunction> activation_list(const OpCall& call, const std::vector<std::string>& defaults,
                                              std::size_t directions) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  if (const auto* given = call.find<std::vector<std::string>>("activations")) {
    if (given->size() != names.size())
      call.fail(fmt::format("the attribute activations has {} functions, not {}", given->size(), names.size()),
                "import_attribute");
    names = *given;
  }
  Numbers alphas(call, "activation_alpha"), betas(call, "activation_beta");
  std::vector<nn::CellFunction> all;
  for (const std::string& name : names) {
    const ActivationKind& kind = kind_of(call, name);
    const double alpha = kind.has_alpha ? alphas.next(kind, kind.alpha) : 0,
                 beta = kind.has_beta ? betas.next(kind, kind.beta) : 0;
    all.emplace_back([&kind, alpha, beta](const Tensor& x) { return kind.function(x, alpha, beta); });
  }
  alphas.require_all_taken();
  betas.require_all_taken();
  return all;
}

}  // namespace lathe::onnx
