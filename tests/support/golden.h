#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/graph.h"
#include "frontend/train/training.h"
#include "ir/tensor/interpret/interpreter.h"

/// The golden cases: what an independent implementation computed (tests/goldens/make_goldens.py), the graph that the
/// DSL builds for each, and the comparison. The way of running a graph is a parameter, so that the interpreter and
/// every backend are held to the same numbers.
namespace lathe::golden {

/// A graph made ready to run, as often as one likes.
class Program {
 public:
  virtual ~Program() = default;
  /// Outputs by name, and every updated parameter and state by the argument's name.
  virtual Tensors run(const Tensors& arguments) = 0;
};

class GoldenRunner {
 public:
  virtual ~GoldenRunner() = default;
  virtual std::unique_ptr<Program> prepare(const ir::Graph& graph) = 0;
};

/// Runs graphs by the reference interpreter.
std::unique_ptr<GoldenRunner> interpreter_runner();

/// A case as its files give it.
struct Files {
  std::string name;
  Tensors tensors;  ///< "in.*", "param.*", "mid.*", "out.*", "cot.*", "grad.*", "curve.*", "after.*"
  /// A number or text of the case's "config" by its path, such as "training.steps"; nothing where there is none.
  std::optional<double> number(const std::string& path) const;
  std::optional<std::string> text(const std::string& path) const;
  std::shared_ptr<const void> config;  ///< the JSON behind them
};
/// Reads `folder`/`name`.safetensors and the case's entry in `folder`/manifest.json. Throws UserError.
Files load(const std::filesystem::path& folder, const std::string& name);

/// How a case is trained.
struct Training {
  Optimizer optimizer;
  double clip_norm = 0;
  std::int64_t steps = 0;
};

struct Case {
  std::string name;
  /// Declares inputs, parameters, intermediates (by Tensor::named) and outputs under the golden's names. Batch and
  /// sequence are symbolic dims.
  std::function<void(Graph&, const Files&, DType)> build;
  std::function<Training(const Files&)> training;  ///< empty: the case has no curves
  /// The golden values cannot come out of narrower floats: -1e9 plus a score is -1e9 in f32. In those the
  /// interpreter, which rounds each step to the dtype, stands for the golden file.
  bool needs_f64 = false;
};
std::span<const Case> cases();
/// Throws UserError for an unknown name.
const Case& find_case(const std::string& name);

/// How two tensors are compared: by the largest difference over the largest golden element, or by the L2 norm of the
/// difference over that of the golden.
enum class Metric { max_norm, l2 };
struct Tolerance {
  Metric metric = Metric::max_norm;
  double outputs = 1e-9, gradients = 1e-9, curves = 1e-6;
  std::int64_t curve_steps = 0;  ///< compare only so many steps of a curve, and no final parameters; 0: all
  /// A golden gradient smaller than this share of the case's largest is compared with that share: the gradient of a
  /// bias of keys is zero but for rounding.
  double floor = 1e-6;
  DType precision = f32;  ///< bf16 or f16: the case runs in mixed precision
};
inline constexpr Tolerance f64_tolerance{};
inline constexpr Tolerance f32_tolerance{
    .metric = Metric::l2, .outputs = 1e-5, .gradients = 5e-5, .curves = 1e-3, .curve_steps = 10, .floor = 1e-3};

struct Comparison {
  std::string tensor;  ///< "mid.scores"
  double error = 0;    ///< by the tolerance's metric; infinite where shape or NaN pattern differ
  double limit = 0;
  std::string note;  ///< what differs besides numbers
  bool good() const { return error <= limit; }
};

/// Intermediates, outputs and gradients, one for each "mid.*", "out.*" and "grad.*" of the files.
std::vector<Comparison> compare_values(const Case& which, const Files& files, GoldenRunner& runner, DType dtype,
                                       const Tolerance& tolerance);
/// The training run: "curve.*" and "after.*". Empty for a case without.
std::vector<Comparison> compare_training(const Case& which, const Files& files, GoldenRunner& runner, DType dtype,
                                         const Tolerance& tolerance);

/// One line a tensor that is not good, and the worst of the others; empty for none.
std::string report(std::span<const Comparison> comparisons);
bool all_good(std::span<const Comparison> comparisons);

/// Compares one tensor; float and complex tensors by the metric, others exactly.
Comparison compare(const std::string& name, const HostTensor& actual, const HostTensor& golden, Metric metric,
                   double limit, double least_scale = 0);

}  // namespace lathe::golden
