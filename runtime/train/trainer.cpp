#include "runtime/train/trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>

#include "ir/support/error.h"
#include "passes/program/program.h"
#include "runtime/compile_options.h"
#include "runtime/executable_program.h"
#include "runtime/files/finite.h"
#include "runtime/host/seconds.h"
#include "runtime/train/replay.h"

namespace lathe {

namespace {

/// Initial capacity, in losses, that run() reserves.
constexpr std::int64_t steps_reserved = 65536;

void check_loss(const ir::Graph& graph, const std::string& loss) {
  const auto is_loss = [&](const ir::Output& output) { return output.name == loss; };
  if (std::none_of(graph.outputs.begin(), graph.outputs.end(), is_loss))
    throw UserError(fmt::format("the graph '{}' has no output '{}'", graph.name, loss), "train_step",
                    "TrainerOptions::loss and reported_losses name outputs of the step");
}

void check_step(const ir::Graph& step, const std::string& loss, const std::vector<std::string>& others = {}) {
  if (step.updates.empty())
    throw UserError(fmt::format("the graph '{}' updates no state", step.name), "train_step",
                    "make the step by training_step()");
  check_loss(step, loss);
  for (const std::string& other : others) check_loss(step, other);
}

void at_least_one(std::int64_t number, const char* what) {
  if (number < 1)
    throw UserError(fmt::format("{} is {}", what, number), "train_options", "give a number of at least 1");
}

void check_extra_steps(const std::vector<ExtraStep>& steps) {
  std::set<std::string, std::less<>> names;
  for (const ExtraStep& step : steps) {
    if (step.name.empty() || !names.insert(step.name).second)
      throw UserError(step.name.empty() ? std::string("an extra step has no name")
                                        : fmt::format("two extra steps are named {}", step.name),
                      "train_options", "give each one a name of its own");
    at_least_one(step.every, "every of an extra step");
    check_step(step.graph, step.loss);
  }
}

/// Returns whether loss scaling skipped the step with these outputs.
bool skips(const Tensors& outputs) {
  const auto skipped = outputs.find("skipped");
  return skipped != outputs.end() && skipped->second.get(0) != 0;
}

CompileOptions evaluation_options(CompileOptions options, const Parameters& parameters) {
  options.mode = Mode::evaluation;
  options.parameters = parameters;
  options.tune.reset();
  options.sizes.clear();
  options.lower.memory.reset();
  return options;
}

TrainerOptions with_spelled_out(TrainerOptions options) {
  options.compile = spelled_out(std::move(options.compile));
  return options;
}

}  // namespace

Trainer::Trainer(const ir::Graph& step, Tensors start, TrainerOptions options) : Trainer(step, std::move(options)) {
  Parameters parameters = train_.parameters();
  for (auto& [name, value] : start)
    if (!parameters.contains(name)) parameters.set(name, tensors_.part(owner(name), name, std::move(value)));
}

Trainer::Trainer(const ir::Graph& step, const StartValue& start, TrainerOptions options)
    : Trainer(step, std::move(options)) {
  Parameters parameters = train_.parameters();
  bool is_all = true;  // whether `start` gives all values that steps change
  for (std::size_t i = 0; i <= extras_.size(); ++i)
    for (const Program::Slot& slot : program_of(executable(i)).states) {
      if (!parameters.contains(slot.name))
        parameters.set(slot.name, tensors_.part(executable(i), slot.name, start(slot.name)));
      else if (slot.is_updated)
        is_all = false;
    }
  if (options_.can_restart && is_all && !last_good_) start_ = start;
}

Trainer::Trainer(const ir::Graph& step, TrainerOptions options)
    : options_(with_spelled_out(std::move(options))),
      graph_(step),
      train_((check_options(), check_step(step, options_.loss, options_.reported_losses),
              compile(step, options_.compile))),
      tensors_(options_.compile.ranks) {
  add_extra_steps();
  if (options_.evaluation)
    evaluate_.emplace(compile(options_.evaluation->graph, evaluation_options(options_.compile, train_.parameters())));
  if (evaluate_) check_placements(*evaluate_, "the evaluation", "evaluate by the graph that the step was made of");
  for (const Extra& extra : extras_)
    check_placements(extra.executable, extra.options.name, "name the dims of both graphs alike");
  list_states();
  keeps_ = !tensors_.of_first(options_.folder ? "keeps" : "").empty();
  if (keeps_) resume();
}

void Trainer::add_extra_steps() {
  CompileOptions options = options_.compile;
  options.parameters = train_.parameters();
  losses_.push_back({options_.loss});
  for (const std::string& name : options_.reported_losses) losses_.push_back({name});
  loss_checks_.resize(options_.reported_losses.size());
  for (ExtraStep& step : options_.extra_steps) {
    losses_.push_back({step.name, std::numeric_limits<double>::quiet_NaN()});
    Executable compiled = compile(step.graph, options);
    extras_.push_back({.options = std::move(step), .executable = std::move(compiled)});
  }
}

/// Lists each state with the first executable that updates it, or that has it if constants are saved.
void Trainer::list_states() {
  std::set<std::string, std::less<>> listed;
  for (std::size_t i = 0; i <= extras_.size(); ++i) {
    std::vector<std::string>& names = state_names_.emplace_back();
    for (const Program::Slot& slot : program_of(executable(i)).states)
      if ((slot.is_updated || options_.save_constants) && listed.insert(slot.name).second) names.push_back(slot.name);
  }
}

const Executable& Trainer::owner(std::string_view state) const {
  for (std::size_t i = 0; i <= extras_.size(); ++i)
    for (const Program::Slot& slot : program_of(executable(i)).states)
      if (slot.name == state) return executable(i);
  return train_;
}

/// Returns all saved states on the first process, nothing on the others.
Tensors Trainer::whole_states() const {
  Tensors all;
  for (std::size_t i = 0; i <= extras_.size(); ++i) all.merge(tensors_.wholes(executable(i), state_names_[i]));
  return all;
}

void Trainer::check_options() const {
  at_least_one(options_.save_every, "save_every");
  check_extra_steps(options_.extra_steps);
  if (const auto& ranks = options_.compile.ranks; ranks && ranks->rank() != 0 && options_.folder)
    throw UserError(fmt::format("rank {} has a folder for checkpoints", ranks->rank()), "train_folder",
                    "give it to rank 0 alone, which writes what all have");
  if (options_.folder && options_.folder.checkpoint())
    check_same_settings(options_.folder.checkpoint()->meta.config, options_.settings.fixed,
                        options_.folder.path().string());
  if (!options_.evaluation) return;
  at_least_one(options_.evaluation->count, "evaluation.count");
  at_least_one(options_.evaluation->every, "evaluation.every");
  if (!options_.evaluation->batches)
    throw UserError("evaluation.batches is not given", "train_options", "give a function of the batch's number");
  check_loss(options_.evaluation->graph, options_.loss);
}

/// Checks that another graph shards the parameters and states that it shares with the step equally, because they use
/// one store.
void Trainer::check_placements(const Executable& other, const std::string& what, const std::string& hint) const {
  for (const auto& [name, placement] : other.placements()) {
    const auto found = train_.placements().find(name);
    if (found == train_.placements().end() || found->second == placement || !train_.parameters().contains(name))
      continue;
    const shard::Mesh& mesh = options_.compile.ranks->mesh();
    throw UserError(fmt::format("{} divides {} otherwise than the step: {}, not {}", what, name,
                                shard::to_string(placement, mesh), shard::to_string(found->second, mesh)),
                    "mesh_parameters", hint);
  }
}

/// Resumes from the first process's checkpoint, if it has one.
void Trainer::resume() {
  const Checkpoint* const found =
      options_.folder && options_.folder.checkpoint() ? &*options_.folder.checkpoint() : nullptr;
  const std::string step = tensors_.of_first(found ? fmt::format("{}", found->meta.step) : "");
  if (step.empty()) return;
  for (std::size_t i = 0; i <= extras_.size(); ++i)
    tensors_.set(executable(i), state_names_[i], found ? &found->tensors : nullptr);
  // All ranks need the history, because new entries in it decide whether to save.
  history_ = LossHistory::of(tensors_.of_first((found ? LossHistory::of(*found) : LossHistory()).tensors()));
  if (found) changed_settings_ = lathe::changed_settings(found->meta.values, options_.settings.changeable);
  step_ = std::stoll(step);
  last_good_ = step_;
  saved_ = true;
}

bool Trainer::stops() const { return tensors_.any(options_.stop && options_.stop()); }

bool Trainer::run(const Batches& batches, std::int64_t last) {
  if (step_ < last)
    history_.training.reserve(history_.training.size() +
                              static_cast<std::size_t>(std::min(last - step_, steps_reserved)));
  struct Reset {
    const Batches*& batches;
    ~Reset() { batches = nullptr; }
  } const reset{batches_};
  batches_ = &batches;
  while (step_ < last && !stops()) {
    run_step(batches, last);
    if (evaluate_ && step_ % options_.evaluation->every == 0 && step_ < last)
      if (evaluate() && options_.after_evaluation) options_.after_evaluation(history_.evaluation.back());
    if (step_ % options_.save_every == 0) save();
  }
  save();
  return step_ >= last;
}

/// Runs a step. With CompileOptions::find_nan, one whose results are not finite ends the training, from the states
/// before it.
void Trainer::run_finite(Executable& executable, const InputRefs& batch, Tensors& outputs, const DimsOfStep& dims,
                         std::int64_t number) const {
  try {
    executable.run(batch, outputs, dims ? dims(number) : DimBindings());
  } catch (const UserError& error) {
    if (error.label() != "not_finite") throw;
    const std::string text = fault_of_step(number, error);
    const std::size_t end = std::min(text.find('\n'), text.size());
    diverged(text.substr(0, end), text.substr(end));
  }
}

void Trainer::run_step(const Batches& batches, std::int64_t last) {
  const InputRefs& batch = tensors_.parts(train_, batches(step_), own_inputs_);
  const auto start = std::chrono::steady_clock::now();
  run_finite(train_, batch, outputs_, options_.dims, step_);
  const double seconds = seconds_since(start);
  ++step_;
  saved_ = false;
  after_step(last, seconds + run_extra_steps());
}

/// Runs the extra steps whose turn it is, and returns their duration. Their batches depend on the number of the step
/// alone, so that a resumed run sees the same ones.
double Trainer::run_extra_steps() {
  static const InputRefs no_inputs;
  double seconds = 0;
  for (Extra& extra : extras_) {
    if (step_ % extra.options.every != 0) continue;
    const std::int64_t run = step_ / extra.options.every - 1;
    const InputRefs& batch = extra.options.batches ? extra.options.batches(run) : no_inputs;
    const InputRefs& parts = tensors_.parts(extra.executable, batch, extra.inputs);
    const auto start = std::chrono::steady_clock::now();
    run_finite(extra.executable, parts, extra.outputs, extra.options.dims, run);
    seconds += seconds_since(start);
  }
  return seconds;
}

void Trainer::check_loss_of(DivergenceCheck& check, const std::string& name, double loss,
                            const Tensors& outputs) const {
  if (const auto why = check.after_step(step_, loss, skips(outputs)))
    diverged(name.empty() ? *why : fmt::format("{}: {}", name, *why));
}

void Trainer::after_step(std::int64_t last, double seconds) {
  const double loss = losses_[0].value = outputs_.at(options_.loss).get(0);
  history_.training.push_back({step_, loss});
  check_loss_of(divergence_, "", loss, outputs_);
  std::size_t next = 1;
  for (const std::string& name : options_.reported_losses) {
    losses_[next].value = outputs_.at(name).get(0);
    check_loss_of(loss_checks_[next - 1], name, losses_[next].value, outputs_);
    ++next;
  }
  for (Extra& extra : extras_) {
    if (step_ % extra.options.every == 0) {
      losses_[next].value = extra.outputs.at(extra.options.loss).get(0);
      check_loss_of(extra.divergence, extra.options.name, losses_[next].value, extra.outputs);
    }
    ++next;
  }
  if (options_.after_step)
    options_.after_step({.step = step_,
                         .last = last,
                         .loss = loss,
                         .seconds = seconds,
                         .skipped = skips(outputs_),
                         .outputs = outputs_,
                         .losses = losses_});
}

std::optional<double> Trainer::evaluate() { return evaluate(options_.evaluation ? options_.evaluation->count : 1); }

std::optional<double> Trainer::evaluate(std::int64_t count) {
  if (!evaluate_)
    throw UserError("there is nothing to evaluate", "train_options", "give TrainerOptions::evaluation a graph");
  at_least_one(count, "the number of batches to evaluate");
  double sum = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < count; ++i) {
    if (stops()) return std::nullopt;
    const InputRefs& batch = tensors_.parts(*evaluate_, options_.evaluation->batches(i), own_inputs_);
    const DimsOfStep& dims = options_.evaluation->dims;
    evaluate_->run(batch, evaluation_outputs_, dims ? dims(i) : DimBindings());
    sum += evaluation_outputs_.at(options_.loss).get(0);
    if (options_.after_evaluation_batch)
      options_.after_evaluation_batch({.done = i + 1, .count = count, .seconds = seconds_since(start)});
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
  if (!keeps_ || saved_) return;
  if (const std::string fault = fault_of_states(); !fault.empty())
    diverged(fmt::format("the state after step {} is not finite: {}", step_, fault));
  save_to(&RunFolder::checkpoints);
  last_good_ = step_;
  saved_ = true;
}

/// Checks the states on all processes.
std::string Trainer::fault_of_states() const {
  const Parameters parameters = train_.parameters();
  std::vector<TensorView> views;
  for (const std::vector<std::string>& names : state_names_)
    for (const std::string& name : names) views.push_back(view_of(name, parameters.get(name)));
  const auto found = find_not_finite(views);
  return tensors_.first_said(found ? found->to_string() : "");
}

/// Saves the current values on the process that has the folder.
void Trainer::save_to(const CheckpointStore& (RunFolder::*store)() const) const {
  const Tensors wholes = whole_states();
  if (!options_.folder) return;
  const RunSettings& settings = options_.settings;
  CheckpointMeta meta{.step = step_, .data_position = step_, .config = settings.fixed, .values = settings.changeable};
  meta.config.insert(settings.kept.begin(), settings.kept.end());
  std::vector<TensorView> states, records;
  for (const auto& [name, value] : wholes) states.push_back(view_of(name, value));
  const Tensors history = history_.tensors();
  for (const auto& [name, value] : history) records.push_back(view_of(name, value));
  const std::filesystem::path saved = (options_.folder.*store)().save(meta, states, records);
  if (options_.after_save) options_.after_save(saved);
}

Parameters Trainer::whole_parameters() const {
  if (!options_.compile.ranks) return parameters();
  std::vector<std::string> names;
  for (const Program::Slot& slot : program_of(train_).states)
    if (slot.is_parameter) names.push_back(slot.name);
  return Parameters(wholes(names));
}

Tensors Trainer::wholes(std::span<const std::string> names) const { return tensors_.wholes(train_, names); }

/// Whether the steps since the latest checkpoint, or since the start, can be repeated.
bool Trainer::can_replay() const {
  if (options_.compile.find_nan || options_.compile.ranks || !extras_.empty() || !batches_) return false;
  return last_good_ ? static_cast<bool>(options_.folder) : static_cast<bool>(start_);
}

/// Sets the states to those of the latest checkpoint, or to the start values. Returns false if the checkpoint is
/// damaged or gone.
bool Trainer::restore() const {
  if (last_good_) {
    const std::optional<Checkpoint> found = options_.folder.checkpoints().load_newest();
    if (!found || found->meta.step != *last_good_) return false;
    tensors_.set(train_, state_names_[0], &found->tensors);
    return true;
  }
  Parameters parameters = train_.parameters();
  for (const Program::Slot& slot : program_of(train_).states)
    if (slot.is_updated) parameters.set(slot.name, start_(slot.name));
  return true;
}

/// Repeats the steps of a run that diverged, and returns the first result that is not finite, or "".
std::string Trainer::replayed_fault() const {
  if (!can_replay() || skips(outputs_) || !restore()) return "";
  const std::int64_t first = last_good_.value_or(0);
  if (options_.before_replay) options_.before_replay(first + 1, step_);
  CompileOptions compile = options_.compile;
  compile.parameters = train_.parameters();
  return replay({.graph = graph_,
                 .compile = compile,
                 .batches = *batches_,
                 .dims = options_.dims,
                 .first = first,
                 .last = step_,
                 .stop = options_.stop});
}

/// Saves the state to a separate folder, from which no run resumes, and throws.
void Trainer::diverged(const std::string& why, const std::string& details) const {
  std::string hint = "start again " + options_.advice;
  if (last_good_)
    hint +=
        fmt::format("{}: it resumes after step {}, the last good checkpoint",
                    options_.folder && options_.folder.starts_fresh() ? ", without a fresh start" : "", *last_good_);
  else if (keeps_)
    hint += "; this run has no checkpoint to resume from";
  if (keeps_) {
    try {
      save_to(&RunFolder::diverged);
      if (options_.folder)
        hint += fmt::format(
            "\n"
            "  the current state: {}",
            options_.folder.diverged().list().front().string());
    } catch (const UserError& error) {
      hint += fmt::format(
          "\n"
          "  the current state cannot be saved: {}",
          error.what());
    }
  }
  if (const std::string fault = replayed_fault(); !fault.empty())
    hint += "\n  " + fault;
  else if (!options_.compile.find_nan)
    hint += fmt::format("\n  to see which op makes the first NaN, {} with find_nan (--find-nan)",
                        last_good_ ? "resume" : "run again");
  // The exception ends all ranks, so it must not be thrown before the state is saved.
  throw UserError(why, "train_diverged", tensors_.of_first(hint + details));
}

}  // namespace lathe
