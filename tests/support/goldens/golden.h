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

/// The golden cases: results of an independent implementation (tests/goldens/make_goldens.py), the graph that the DSL
/// builds for each case, and the comparison. The way to run a graph is a parameter, so that the interpreter and every
/// backend are compared with the same values.
namespace lathe::golden {

/// A graph that is ready to run any number of times.
class Program {
 public:
  virtual ~Program() = default;
  /// Returns outputs by name, and every updated parameter and state by argument name.
  virtual Tensors run(const Tensors& arguments) = 0;
};

class GoldenRunner {
 public:
  virtual ~GoldenRunner() = default;
  virtual std::unique_ptr<Program> prepare(const ir::Graph& graph) = 0;
};

/// Runs graphs in the reference interpreter.
std::unique_ptr<GoldenRunner> interpreter_runner();

/// A case as stored in its files.
struct Files {
  std::string name;
  Tensors tensors;  ///< "in.*", "param.*", "mid.*", "out.*", "cot.*", "grad.*", "curve.*", "after.*"
  /// Return a number or text of the case's "config" by its path, such as "training.steps"; nothing if there is none.
  std::optional<double> number(const std::string& path) const;
  std::optional<std::string> text(const std::string& path) const;
  std::shared_ptr<const void> config;  ///< the parsed JSON
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
  /// Declares inputs, parameters, intermediates (with Tensor::named) and outputs under their golden names. Batch and
  /// sequence are symbolic dims.
  std::function<void(Graph&, const Files&, DType)> build;
  std::function<Training(const Files&)> training;  ///< empty: the case has no curves
  /// Narrower floats cannot give the golden values: -1e9 plus a score is -1e9 in f32. For those dtypes, the
  /// interpreter, which rounds each op, replaces the golden file.
  bool needs_f64 = false;
};
std::span<const Case> cases();
/// Throws UserError for an unknown name.
const Case& find_case(const std::string& name);

/// How tensors are compared: the largest difference relative to the largest golden element, or the L2 norm of the
/// difference relative to that of the golden.
enum class Metric { max_norm, l2 };
struct Tolerance {
  Metric metric = Metric::max_norm;
  double outputs = 1e-9, gradients = 1e-9, curves = 1e-6;
  std::int64_t curve_steps = 0;  ///< compares only this many steps of a curve, and no final parameters; 0: all
  /// Golden gradients below this share of the case's largest are compared relative to that share: the gradient of a
  /// key bias is zero except for rounding.
  double floor = 1e-6;
  DType precision = f32;  ///< bf16 or f16: the case runs in mixed precision
};
inline constexpr Tolerance f64_tolerance{};
inline constexpr Tolerance f32_tolerance{
    .metric = Metric::l2, .outputs = 1e-5, .gradients = 5e-5, .curves = 1e-3, .curve_steps = 10, .floor = 1e-3};

struct Comparison {
  std::string tensor;  ///< "mid.scores"
  double error = 0;    ///< by the tolerance's metric; infinite if shape or NaN pattern differ
  double limit = 0;
  std::string note;  ///< differences other than values
  bool good() const { return error <= limit; }
};

/// Compares intermediates, outputs and gradients: one result per "mid.*", "out.*" and "grad.*" in the files.
std::vector<Comparison> compare_values(const Case& which, const Files& files, GoldenRunner& runner, DType dtype,
                                       const Tolerance& tolerance);
/// Compares the training run: "curve.*" and "after.*". Empty for a case without one.
std::vector<Comparison> compare_training(const Case& which, const Files& files, GoldenRunner& runner, DType dtype,
                                         const Tolerance& tolerance);

/// Returns a line for each bad tensor, and one for the worst of the good ones; empty for no comparisons.
std::string report(std::span<const Comparison> comparisons);
bool all_good(std::span<const Comparison> comparisons);

/// Compares one tensor: floats and complex numbers by the metric, others exactly.
Comparison compare(const std::string& name, const HostTensor& actual, const HostTensor& golden, Metric metric,
                   double limit, double least_scale = 0);

}  // namespace lathe::golden
