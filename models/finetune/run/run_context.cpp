#include "models/finetune/run/run_context.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "ir/support/error.h"
#include "runtime/compile_options.h"
#include "runtime/ranks/agreement.h"
#include "runtime/sharding.h"

namespace lathe {

namespace {

const CompileOptions& checked(const CompileOptions& options) {
  const auto refuse = [](bool given, const char* option) {
    if (given)
      throw UserError(fmt::format("compile.{} is given, which the training run sets", option), "train_options",
                      "leave it out");
  };
  refuse(options.mode != Mode::training, "mode");
  refuse(options.parameters.has_value(), "parameters");
  refuse(options.share_states, "share_states");
  refuse(!options.reserve.empty(), "reserve");
  refuse(!options.sizes.empty(), "sizes");
  return options;
}

}  // namespace

RunContext::RunContext(const CompileOptions& compile, TrainingObserver* observer)
    : compile_(spelled_out(checked(compile))), observer_(is_first() && observer ? observer : &no_observer_) {}

void RunContext::take_folder(const std::filesystem::path& folder, bool fresh) {
  if (!is_first()) return;
  folder_ = RunFolder();  // a run that failed before may hold it
  folder_ = RunFolder(folder, fresh ? RunFolder::Start::fresh : RunFolder::Start::resume);
  if (!checkpoint()) return;
  for (const std::string& warning : checkpoint()->warnings) observer().warning("skipped: " + warning);
}

const Checkpoint* RunContext::checkpoint() const {
  return folder_ && folder_.checkpoint() ? &*folder_.checkpoint() : nullptr;
}

void RunContext::choose_splits(const ir::Graph& loss) {
  if (!ranks() || !compile_.split.empty()) return observer().model_built(loss, nullptr);
  DefaultSplitSummary summary{.splits = {}, .left_out = set_default_splits(compile_, loss)};
  summary.splits = compile_.split;
  observer().model_built(loss, &summary);
}

CompileOptions RunContext::step_options(const DimBindings& sizes) const {
  CompileOptions step = compile_;
  if (auto& memory = step.lower.memory; memory && memory->dims.empty()) memory->dims = sizes;
  if (step.tune && step.tune->dims.empty()) step.tune->dims = sizes;
  if (ranks() && step.threads == 0) step.threads = threads_per_process(*ranks());
  return step;
}

TrainerOptions RunContext::trainer_options(const CompileOptions& step, Settings fixed, Settings changeable) const {
  TrainingObserver* const observer = observer_;
  return {
      .folder = folder_,
      .settings = {.fixed = std::move(fixed), .changeable = std::move(changeable)},
      .compile = step,
      .after_evaluation_batch = [observer](const EvaluationReport& report) { observer->validating(report); },
      .can_restart = true,
      .before_replay = [observer](std::int64_t first, std::int64_t last) { observer->replaying(first, last); },
  };
}

void RunContext::report_start(TrainingStart start, const Trainer& trainer) const {
  start.sharding = sharding("");
  if (checkpoint()) start.checkpoint = checkpoint()->folder;
  start.changed_settings = trainer.changed_settings();
  observer().started(start);
}

DimBindings RunContext::sizes_here(DimBindings sizes) const {
  return ranks() ? sizes_on_process(std::move(sizes), compile_.split, ranks()->mesh()) : sizes;
}

std::string RunContext::sharding(const std::string& alone) const { return ranks() ? sharding_text(compile_) : alone; }

void RunContext::require_same(const Settings& fixed, const Settings& changeable) const {
  if (!ranks()) return;
  std::vector<Claim> claims;
  for (const Settings* settings : {&fixed, &changeable})
    for (const auto& [name, value] : *settings)
      claims.push_back({"the setting " + name, value, "start all processes with the same options"});
  require_agreement(*ranks(), claims);
}

}  // namespace lathe
