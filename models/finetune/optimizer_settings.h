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
/// momentum of 0.9), "soap" (with bases for dims up to 1024) and "schedule-free" (AdamW without a decay of the rate;
/// evaluations and written models use the averages of the weights). muon updates the hidden matrices and leaves all
/// other parameters to AdamW.
enum class OptimizerKind : std::uint8_t { adamw, adam, adamw_8bit, lion, adafactor, muon, sgd, soap, schedule_free };
const std::vector<std::string>& optimizer_names();  ///< in the order of OptimizerKind
std::string_view name(OptimizerKind kind);
/// Throws UserError [train_options] for an unknown name.
OptimizerKind optimizer_named(std::string_view name);

/// The learning rate after a linear warm-up to its peak:
///   "cosine"        half a cosine down to a tenth of the peak
///   "linear"        a straight line down to a tenth of the peak
///   "stable"        constant until the last fifth of the steps, then a straight line down to a tenth
///   "constant"      the peak
///   "inverse-sqrt"  the peak times sqrt(warmup / step)
///   "step"          multiplied by `decay_factor` after every `decay_every` steps
///   "one-cycle"     half a cosine down to 4e-6 of the peak; the warm-up is half a cosine too, from a 25th of the
///   peak
enum class RateDecay : std::uint8_t { cosine, linear, stable, constant, inverse_sqrt, step, one_cycle };
const std::vector<std::string>& rate_decay_names();  ///< in the order of RateDecay
std::string_view name(RateDecay decay);
/// Throws UserError [train_options] for an unknown name.
RateDecay rate_decay_named(std::string_view name);

/// The optimizer of a training run and its learning rate. Each kind of run has its own defaults for lr, weight_decay
/// and beta2: see FineTuneOptions and TextTrainingOptions. A setting that the optimizer or the schedule does not have
/// is refused.
struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::adamw;
  std::optional<RateDecay> decay = {};      ///< by default cosine; constant for schedule-free, which allows no other
  std::optional<double> lr = {};            ///< peak learning rate
  std::optional<double> weight_decay = {};  ///< of matrices
  double clip = 1;                          ///< maximum gradient norm; 0: no clipping
  /// Of all optimizers but sgd and adafactor; for muon, those of its AdamW. By default 0.9, of soap 0.95.
  std::optional<double> beta1 = {};
  /// The same. By default that of the run, of lion 0.99 and of soap 0.95.
  std::optional<double> beta2 = {};
  std::optional<double> momentum = {};  ///< of sgd, by default 0.9, and of muon, by default 0.95
  /// Steps up to the peak rate. 0: for one-cycle 0.3 of all steps, otherwise a tenth of them, at most 40.
  std::int64_t warmup = 0;
  std::optional<std::int64_t> decay_every = {};  ///< of the schedule step; by default a third of the steps
  std::optional<double> decay_factor = {};       ///< of the schedule step; by default 0.1

  /// Returns these settings, completed by those of `defaults` that the optimizer has.
  OptimizerSettings with_defaults(const OptimizerSettings& defaults) const;
  /// Throws UserError [train_options] for numbers out of range, and for settings that the optimizer or the schedule
  /// does not have.
  void check() const;
  RateDecay schedule_kind() const;
  std::int64_t warmup_steps(std::int64_t steps) const;
  /// Returns whether evaluations and written models use averages of the weights, and the beta1 of the averages.
  bool averages() const { return kind == OptimizerKind::schedule_free; }
  double average_beta1() const { return beta1.value_or(0.9); }
  // The following require lr, weight_decay and, if the optimizer has it, beta2, for a run of this many steps.
  /// Returns the learning rate schedule. A single step uses `lr`. Throws UserError [train_warmup] if the warm-up
  /// leaves no step.
  Schedule schedule(std::int64_t steps) const;

  struct Built {
    Optimizer optimizer;
    std::vector<ParameterGroup> groups;
  };
  Built build(std::int64_t steps) const;

  /// Returns the settings by name for a checkpoint that define the meaning of the optimizer's states.
  Settings fixed() const;
  /// Returns those that may change when a run resumes; it reports changes.
  Settings changeable(std::int64_t steps) const;
};

}  // namespace lathe
