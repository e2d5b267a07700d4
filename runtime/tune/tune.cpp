#include "runtime/tune/tune.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "ir/support/error.h"
#include "ir/tensor/binding.h"
#include "runtime/files/sha256.h"
#include "runtime/host/seconds.h"
#include "runtime/trace/role.h"
#include "runtime/tune/tile_race.h"

namespace lathe {

namespace {

using Clock = std::chrono::steady_clock;

/// One occurrence of a matmul in a program: launches [first, last] of all its candidates.
struct Occurrence {
  std::size_t first, last;
};

/// Occurrences of matmuls with several candidates, by TuningCandidates::problem.
using Occurrences = std::map<std::string, std::vector<Occurrence>>;

/// Finds the occurrences. Adjacent occurrences may be of the same matmul, so compare the region as well.
Occurrences occurrences_of(const Program& program) {
  Occurrences occurrences;
  const std::vector<Launch>& launches = program.launches;
  for (std::size_t l = 0; l < launches.size(); ++l) {
    if (!launches[l].tuning) continue;
    const bool goes_on = l > 0 && launches[l - 1].tuning == launches[l].tuning &&
                         launches[l - 1].info.region == launches[l].info.region;
    std::vector<Occurrence>& found = occurrences[launches[l].tuning->problem];
    if (goes_on)
      found.back().last = l;
    else
      found.push_back({l, l});
  }
  return occurrences;
}

/// Returns synthetic values: floats around 0.1; 0 for integers and booleans, which is always a valid index.
HostTensor made_up(const Program::Slot& slot, const DimBindings& dims) {
  HostTensor value(slot.dtype, slot.shape.evaluate(dims));
  if (is_float(slot.dtype))
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, 0.01 * static_cast<double>(1 + i % 13));
  return value;
}

/// Runs a program with all candidates on synthetic arguments.
class MachineTimer {
 public:
  MachineTimer(const Program& program, const DimBindings& dims, const TuneMachine& machine)
      : dims_(dims), skipped_(program.launches.size()), runner_(machine.make_runner(program, skipped_)) {
    for (const Program::Slot& slot : program.inputs) inputs_.push_back(made_up(slot, dims));
    for (const Program::Slot& slot : program.states) states_.push_back({.host = made_up(slot, dims)});
    for (const Program::Slot& slot : program.outputs) outputs_.emplace_back(slot.dtype, slot.shape.evaluate(dims));
    for (const HostTensor& input : inputs_) where_inputs_.push_back(input.data());
    for (StoredTensor& state : states_) where_states_.push_back(&state);
    for (HostTensor& output : outputs_) where_outputs_.push_back(output.data());
  }

  std::vector<double> operator()(const std::vector<bool>& skipped) {
    skipped_ = skipped;
    std::vector<LaunchTime> times;
    runner_->run({dims_, where_inputs_, where_states_, where_outputs_, &times});
    std::vector<double> seconds(skipped.size());
    for (const LaunchTime& time : times) seconds[time.launch] = time.seconds / static_cast<double>(time.runs);
    return seconds;
  }

 private:
  const DimBindings& dims_;
  std::vector<bool> skipped_;
  std::unique_ptr<ProgramRunner> runner_;
  std::vector<HostTensor> inputs_, outputs_;
  std::vector<StoredTensor> states_;
  std::vector<const std::byte*> where_inputs_;
  std::vector<StoredTensor*> where_states_;
  std::vector<std::byte*> where_outputs_;
};

class Tuner {
 public:
  Tuner(const ir::Graph& graph, const LowerOptions& options, const TuneOptions& tune, const TuneMachine& machine)
      : options_(options), tune_(tune), machine_(machine) {
    options_.memory.reset();  // for the default program only: recomputed nodes keep default tiles
    const std::vector<std::string> missing = ir::unbound_dims(graph, tune.dims);
    if (!missing.empty())
      throw UserError(fmt::format("tiles are measured at one size of each dim of @{}: {} {} none", graph.name,
                                  fmt::join(missing, ", "), missing.size() == 1 ? "has" : "have"),
                      "tune_dims", "give sizes: TuneOptions::dims, or --dim NAME=SIZE");
  }

  TuningResult run() {
    const Program program = lowered(false);
    for (const auto& [problem, occurrences] : occurrences_of(program)) {
      const Launch& launch = program.launches[occurrences.front().last];
      const Entry& entry =
          entries_.emplace(problem, Entry{entry_key(program, occurrences.front()), launch}).first->second;
      if (const auto found = remembered(entry)) {
        result_.choices.chosen[problem] = *found;
      } else {
        races_.emplace(problem, static_cast<int>(launch.tuning->names.size()));
      }
    }
    result_.choices.dims = tune_.dims;
    if (!races_.empty()) measure();
    for (const auto& [problem, entry] : entries_) conclude(program, problem, entry);
    return std::move(result_);
  }

 private:
  struct Entry {
    std::string key;  ///< key in the store
    Launch launch;    ///< the matmul at its first occurrence
  };

  Program lowered(bool all_candidates) const {
    LowerOptions options = options_;
    options.tuning = TuningChoices{.chosen = {}, .dims = tune_.dims, .all = all_candidates};
    return machine_.lower(options);
  }

  std::string entry_key(const Program& program, const Occurrence& occurrence) const {
    std::string text = fmt::format("lathe tile 1\n{}\n", machine_.name);
    for (std::size_t l = occurrence.first; l <= occurrence.last; ++l) {
      const Launch& launch = program.launches[l];
      text += machine_.code_key(program.kernels[launch.kernel]);
      for (const Dim& dim : launch.dims)  // known dims are part of the code; the others are names of random streams
        if (!dim.value()) text += fmt::format(" {}", dim.evaluate(tune_.dims));
      text += '\n';
    }
    return sha256_hex(text);
  }

  std::optional<int> remembered(const Entry& entry) const {
    const auto found = machine_.store ? machine_.store->get(entry.key) : std::nullopt;
    if (!found) return std::nullopt;
    const std::vector<std::string>& candidates = entry.launch.tuning->names;
    const auto at = std::find(candidates.begin(), candidates.end(), *found);
    return at == candidates.end() ? std::nullopt : std::optional(static_cast<int>(at - candidates.begin()));
  }

  bool all_finished() const {
    return std::all_of(races_.begin(), races_.end(), [](const auto& race) { return race.second.finished(); });
  }

  void measure() {
    const Program program = lowered(true);
    std::optional<MachineTimer> machine;
    if (!tune_.timer) machine.emplace(program, tune_.dims, machine_);
    const Occurrences occurrences = occurrences_of(program);
    const auto start = Clock::now();
    double& seconds = result_.report.seconds;
    for (int run = 0; seconds < tune_.seconds && !all_finished(); ++run) {
      const std::vector<bool> skipped = turns(program, occurrences);
      const std::vector<double> times = tune_.timer ? tune_.timer(program, skipped) : (*machine)(skipped);
      if (run > 0) note(program, occurrences, skipped, times);  // the first run is a warm-up
      seconds = seconds_since(start);
    }
  }

  /// Returns the launches to skip in the next run: at each occurrence, all candidates but one.
  std::vector<bool> turns(const Program& program, const Occurrences& occurrences) {
    std::vector<bool> skipped(program.launches.size());
    for (const auto& [problem, found] : occurrences) {
      const auto race = races_.find(problem);
      for (const Occurrence& occurrence : found) {
        const int turn = race == races_.end() ? 0 : race->second.next();
        for (std::size_t l = occurrence.first; l <= occurrence.last; ++l)
          skipped[l] = program.launches[l].candidate != turn;
      }
    }
    return skipped;
  }

  void note(const Program& program, const Occurrences& occurrences, const std::vector<bool>& skipped,
            const std::vector<double>& times) {
    for (auto& [problem, race] : races_)
      for (const Occurrence& occurrence : occurrences.at(problem)) {
        double seconds = 0;
        int candidate = 0;
        for (std::size_t l = occurrence.first; l <= occurrence.last; ++l) {
          if (skipped[l]) continue;
          seconds += times[l];
          candidate = program.launches[l].candidate;
        }
        race.add(candidate, seconds);
      }
  }

  void conclude(const Program& program, const std::string& problem, const Entry& entry) {
    const std::vector<std::string>& candidates = entry.launch.tuning->names;
    const Role role = role_of(program, entry.launch);
    TunedProduct product{.what = fmt::format("{} {} ({}) {}", role.what, role.where, role.ops, role.source),
                         .by_default = candidates[0],
                         .chosen = candidates[0]};
    const auto race = races_.find(problem);
    product.from_cache = race == races_.end();
    product.open = !product.from_cache && !race->second.finished();
    if (!product.from_cache && !product.open) {
      product.time = race->second.ratio();
      result_.choices.chosen[problem] = race->second.winner();
    }
    if (!product.open) product.chosen = candidates[result_.choices.chosen.at(problem)];
    if (!product.from_cache && !product.open && machine_.store) machine_.store->put(entry.key, product.chosen);
    result_.report.products.push_back(std::move(product));
  }

  LowerOptions options_;
  const TuneOptions& tune_;
  const TuneMachine& machine_;
  std::map<std::string, Entry> entries_;        // by problem
  std::map<std::string, CandidateRace> races_;  // of problems that are not in the store
  TuningResult result_;
};

}  // namespace

TuningResult tune_products(const ir::Graph& graph, const LowerOptions& options, const TuneOptions& tune,
                           const TuneMachine& machine) {
  return Tuner(graph, options, tune, machine).run();
}

std::string to_string(const TuneReport& report) {
  const auto count = [&](const auto& which) {
    return std::count_if(report.products.begin(), report.products.end(), which);
  };
  const auto other = [](const TunedProduct& product) { return product.chosen != product.by_default; };
  std::string text = fmt::format(
      "tiles of {} products: {} from the cache, {} measured in {:.1f} s, {} left at their default as time was up; {} "
      "other than by default\n",
      report.products.size(), count([](const TunedProduct& p) { return p.from_cache; }),
      count([](const TunedProduct& p) { return !p.from_cache && !p.open; }), report.seconds,
      count([](const TunedProduct& p) { return p.open; }), count(other));
  for (const TunedProduct& product : report.products)
    if (other(product))
      text += fmt::format("  {}\n    {}{}\n    by default {}\n", product.what, product.chosen,
                          product.from_cache ? "" : fmt::format(": {:.0f}% of the time", 100 * product.time),
                          product.by_default);
  return text;
}

}  // namespace lathe
