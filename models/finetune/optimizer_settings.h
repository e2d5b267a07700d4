#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/train/optimizer.h"
#include "runtime/train/run_settings.h"

namespace lathe {

/// The optimizers of training runs: "adamw", "adam", "adamw-8bit", "lion", "adafactor", "muon", "sgd" (with a
/// momentum of 0.9) and "soap" (with bases for dims up to 1024). muon updates the hidden matrices and leaves all
/// other parameters to AdamW.
enum class OptimizerKind : std::uint8_t { adamw, adam, adamw_8bit, lion, adafactor, muon, sgd, soap };
const std::vector<std::string>& optimizer_names();  ///< in the order of OptimizerKind
std::string_view name(OptimizerKind kind);
/// Throws UserError [train_options] for an unknown name.
OptimizerKind optimizer_named(std::string_view name);

/// The learning rate after the warm-up: half a cosine down to a tenth of the peak, a straight line down to it,
/// constant until the last fifth of the steps and then that line, or constant.
enum class RateDecay : std::uint8_t { cosine, linear, stable, constant };
const std::vector<std::string>& rate_decay_names();  ///< in the order of RateDecay
std::string_view name(RateDecay decay);
/// Throws UserError [train_options] for an unknown name.
RateDecay rate_decay_named(std::string_view name);

/// The optimizer of a training run and its learning rate. Each kind of run has its own defaults for the optional
/// fields: see FineTuneOptions and TextTrainingOptions.
struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::adamw;
  RateDecay decay = RateDecay::cosine;
  std::optional<double> lr = {};            ///< peak learning rate
  std::optional<double> weight_decay = {};  ///< of matrices
  double clip = 1;                          ///< maximum gradient norm; 0: no clipping
  std::optional<double> beta2 = {};         ///< of adamw, adam, adamw-8bit, and the AdamW of muon
  std::int64_t warmup = 0;                  ///< steps up to the peak rate; 0: a tenth of all steps, at most 40

  /// Returns these settings, with what is not given from `defaults`.
  OptimizerSettings with_defaults(const OptimizerSettings& defaults) const;
  /// Throws UserError [train_options] for numbers out of range.
  void check() const;
  std::int64_t warmup_steps(std::int64_t steps) const;
  // The following require all values, for a run of this many steps.
  /// Returns the learning rate schedule: a linear warm-up to `lr`, then `decay`. A single step uses `lr`. Throws
  /// UserError [train_warmup] if the warm-up leaves no step.
  Schedule schedule(std::int64_t steps) const;

  struct Built {
    Optimizer optimizer;
    std::vector<ParameterGroup> groups;
  };
  Built build(std::int64_t steps) const;

  /// Returns the settings by name for a checkpoint that may change when a run resumes; it reports changes.
  Settings changeable(std::int64_t steps) const;
};

}  // namespace lathe
