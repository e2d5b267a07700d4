#include "runtime/train/trainer.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "passes/lowering/program.h"
#include "runtime/files/finite.h"
#include "runtime/machine/seconds.h"

namespace lathe {

namespace {

void check_loss(const ir::Graph& graph, const std::string& loss) {
  const auto is_loss = [&](const ir::Output& output) { return output.name == loss; };
  if (std::none_of(graph.outputs.begin(), graph.outputs.end(), is_loss))
    throw UserError(fmt::format("the graph '{}' has no output '{}'", graph.name, loss), "train_step",
                    "TrainerOptions::loss names the output that is the loss");
}

const ir::Graph& checked_step(const ir::Graph& step, const std::string& loss) {
  if (step.updates.empty())
    throw UserError(fmt::format("the graph '{}' updates no state", step.name), "train_step",
                    "make the step by training_step()");
  check_loss(step, loss);
  return step;
}

CompileOptions evaluation_options(CompileOptions options, const Parameters& parameters) {
  options.mode = Mode::evaluation;
  options.parameters = parameters;
  options.tune.reset();
  options.lower.memory.reset();
  return options;
}

void at_least_one(std::int64_t number, const char* what) {
  if (number < 1)
    throw UserError(fmt::format("{} is {}", what, number), "train_options", "give a number of at least 1");
}

}  // namespace

Trainer::Trainer(const ir::Graph& step, const Tensors& start, TrainerOptions options)
    : options_(std::move(options)),
      train_((check_options(), compile(checked_step(step, options_.loss), options_.compile))) {
  Parameters parameters = train_.parameters();
  if (options_.evaluation)
    evaluate_.emplace(compile(options_.evaluation->graph, evaluation_options(options_.compile, parameters)));
  for (const Program::Slot& slot : train_.program().states)
    if (slot.is_updated || options_.save_constants) state_names_.push_back(slot.name);
  if (options_.folder && options_.folder.checkpoint()) resume(*options_.folder.checkpoint());
  for (const auto& [name, value] : start)
    if (!parameters.contains(name)) parameters.set(name, value);
}

void Trainer::check_options() const {
  at_least_one(options_.save_every, "save_every");
  if (options_.folder && options_.folder.checkpoint())
    check_same_settings(options_.folder.checkpoint()->meta.config, options_.settings.fixed,
                        options_.folder.path().string());
  if (!options_.evaluation) return;
  at_least_one(options_.evaluation->count, "evaluation.count");
  at_least_one(options_.evaluation->every, "evaluation.every");
  check_loss(options_.evaluation->graph, options_.loss);
}

void Trainer::resume(const Checkpoint& checkpoint) {
  const CheckpointMeta& meta = checkpoint.meta;
  changed_settings_ = lathe::changed_settings(meta.values, options_.settings.changeable);
  Parameters parameters = train_.parameters();
  for (const std::string& name : state_names_) parameters.set(name, checkpoint.tensors.tensor(name));
  history_ = LossHistory::of(checkpoint);
  step_ = meta.step;
  last_good_ = step_;
  saved_ = true;
}

bool Trainer::run(const Batches& batches, std::int64_t last) {
  while (step_ < last && !stops()) {
    const Tensors batch = batches(step_);
    const auto start = std::chrono::steady_clock::now();
    const Tensors outputs = train_.run(batch);
    ++step_;
    saved_ = false;
    after_step(outputs, last, seconds_since(start));
    if (evaluate_ && step_ % options_.evaluation->every == 0 && step_ < last)
      if (evaluate() && options_.after_evaluation) options_.after_evaluation(history_.evaluation.back());
    if (step_ % options_.save_every == 0) save();
  }
  save();
  return step_ >= last;
}

void Trainer::after_step(const Tensors& outputs, std::int64_t last, double seconds) {
  const double loss = outputs.at(options_.loss).get(0);
  const auto skipped = outputs.find("skipped");
  const bool skips = skipped != outputs.end() && skipped->second.get(0) != 0;
  history_.training.push_back({step_, loss});
  if (const auto why = divergence_.after_step(step_, loss, skips)) diverged(*why);
  if (options_.after_step)
    options_.after_step(
        {.step = step_, .last = last, .loss = loss, .seconds = seconds, .skipped = skips, .outputs = outputs});
}

std::optional<double> Trainer::evaluate() { return evaluate(options_.evaluation ? options_.evaluation->count : 1); }

std::optional<double> Trainer::evaluate(std::int64_t count) {
  if (!evaluate_)
    throw UserError("there is nothing to evaluate", "train_options", "give TrainerOptions::evaluation a graph");
  at_least_one(count, "the number of batches to evaluate");
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (stops()) return std::nullopt;
    sum += evaluate_->run(options_.evaluation->batches(i)).at(options_.loss).get(0);
  }
  const LossPoint point{step_, sum / static_cast<double>(count)};
  std::vector<LossPoint>& curve = history_.evaluation;
  if (curve.empty() || curve.back() != point) {
    if (!curve.empty() && curve.back().step == step_) curve.pop_back();
    curve.push_back(point);
    saved_ = false;
  }
  return point.loss;
}

void Trainer::save() {
  if (!options_.folder || saved_) return;
  if (const auto found = find_not_finite(states()))
    diverged(fmt::format("the state after step {} is not finite: {}", step_, found->to_string()));
  save_to(options_.folder.checkpoints());
  last_good_ = step_;
  saved_ = true;
}

/// The present values of all that the step works on.
std::vector<TensorView> Trainer::states() const {
  const Parameters parameters = train_.parameters();
  std::vector<TensorView> views;
  for (const std::string& name : state_names_) views.push_back(view_of(name, parameters.get(name)));
  return views;
}

/// Gives the new folder.
std::filesystem::path Trainer::save_to(const CheckpointStore& store) const {
  const RunSettings& settings = options_.settings;
  CheckpointMeta meta{.step = step_, .data_position = step_, .config = settings.fixed, .values = settings.changeable};
  meta.config.insert(settings.kept.begin(), settings.kept.end());
  std::vector<TensorView> records;
  const std::map<std::string, HostTensor> history = history_.tensors();
  for (const auto& [name, value] : history) records.push_back(view_of(name, value));
  const std::filesystem::path saved = store.save(meta, states(), records);
  if (options_.after_save) options_.after_save(saved);
  return saved;
}

/// What is computed from here on is of no use. It is kept apart, where no run goes on from it.
void Trainer::diverged(const std::string& why) const {
  std::string hint = "start again " + options_.advice;
  if (last_good_)
    hint += fmt::format("{}: it goes on after step {}, the last good checkpoint",
                        options_.folder.starts_fresh() ? ", not afresh" : "", *last_good_);
  else if (options_.folder)
    hint += "; there is no checkpoint of this run to go on from";
  if (options_.folder) {
    try {
      hint += fmt::format("\n  the state as it is now: {}", save_to(options_.folder.diverged()).string());
    } catch (const UserError& error) {
      hint += fmt::format("\n  the state as it is now cannot be kept: {}", error.what());
    }
  }
  throw UserError(why, "train_diverged", hint);
}

}  // namespace lathe
