#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "passes/memory/memory_plan.h"
#include "runtime/trace/role.h"
#include "runtime/trace/trace.h"

namespace lathe {

namespace {

// Keys of the trace event format. Times are in microseconds.
using Json = nlohmann::ordered_json;

constexpr int process = 1, run_row = 0, kernel_row = 1, first_thread_row = 2;

Json name_event(std::string_view kind, int row, const std::string& name) {
  return {{"name", kind}, {"ph", "M"}, {"pid", process}, {"tid", row}, {"args", {{"name", name}}}};
}

Json span_event(std::string name, std::string_view category, int row, double start, double seconds) {
  return {{"name", std::move(name)}, {"cat", category}, {"ph", "X"},  {"ts", start * 1e6},
          {"dur", seconds * 1e6},    {"pid", process},  {"tid", row}, {"args", Json::object()}};
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

/// Returns the live bytes of the arena during each launch.
std::vector<std::int64_t> live_bytes(const MemoryPlan& plan, std::size_t launches) {
  std::vector<std::int64_t> live(launches + 1, 0);
  for (const MemoryPlan::Block& block : plan.blocks) {
    live[block.first] += block.bytes;
    live[static_cast<std::size_t>(block.last) + 1] -= block.bytes;
  }
  for (std::size_t l = 1; l < live.size(); ++l) live[l] += live[l - 1];
  return live;
}

class Writer {
 public:
  explicit Writer(const Trace& trace) : trace_(trace), live_(live_bytes(trace.plan, trace.program.launches.size())) {}

  std::string run() {
    name_rows();
    for (std::size_t r = 0; r < trace_.runs.size(); ++r) add_run(trace_.runs[r], r + 1);
    const Json text = {{"displayTimeUnit", "ms"},
                       {"otherData",
                        {{"graph", trace_.program.name},
                         {"fma_peak_gflops", rounded(trace_.machine.flops * 1e-9)},
                         {"read_bandwidth_gbs", rounded(trace_.machine.bytes * 1e-9)}}},
                       {"traceEvents", std::move(events_)}};
    // Names come from users: escape all but ASCII, and replace invalid UTF-8 by the replacement character.
    return text.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  }

 private:
  void name_rows() {
    events_.push_back(name_event("process_name", 0, "Lathe @" + trace_.program.name));
    events_.push_back(name_event("thread_name", run_row, "runs"));
    events_.push_back(name_event("thread_name", kernel_row, "kernels"));
    std::set<int> threads;
    for (const TracedRun& run : trace_.runs)
      for (const LaunchTime& time : run.launches)
        for (const TaskRange& range : time.ranges) threads.insert(range.thread);
    for (const int thread : threads)
      events_.push_back(name_event("thread_name", first_thread_row + thread, fmt::format("thread {}", thread)));
  }

  void add_run(const TracedRun& run, std::size_t number) {
    events_.push_back(span_event(fmt::format("run {}", number), "run", run_row, run.start, run.seconds));
    add_launches(run);
    add_counter(run.start + run.seconds, 0);
  }

  /// A launch in a loop is one event with the time of all its runs. These events follow each other, in an event for
  /// the loop.
  void add_launches(const TracedRun& run) {
    std::vector<std::pair<double, double>> loops(trace_.program.loops.size(), {-1, -1});  // start and end
    double end = 0;
    for (const LaunchTime& time : run.launches) {
      bool is_in_loop = false;
      for (const ProgramLoop& loop : trace_.program.loops) is_in_loop = is_in_loop || loop.contains(time.launch);
      const double start = is_in_loop ? std::max(time.start, end) : time.start;
      end = start + time.seconds;
      for (std::size_t l = 0; l < loops.size(); ++l) {
        if (!trace_.program.loops[l].contains(time.launch)) continue;
        if (loops[l].first < 0) loops[l].first = start;
        loops[l].second = end;
      }
      add_launch(run, time, start - time.start);
    }
    for (std::size_t l = 0; l < loops.size(); ++l)
      if (loops[l].first >= 0) add_loop(run, trace_.program.loops[l], loops[l].first, loops[l].second);
  }

  void add_loop(const TracedRun& run, const ProgramLoop& loop, double start, double end) {
    events_.push_back(span_event("loop " + loop.name, "loop", kernel_row, run.start + start, end - start));
    events_.back()["args"] = {{"source", loop.loc.known() ? loop.loc.to_string() : std::string()},
                              {"times", loop.trips.evaluate(trace_.dims)}};
  }

  /// `delay`: the seconds between the start of the launch and that of the event.
  void add_launch(const TracedRun& run, const LaunchTime& time, double delay) {
    const Launch& launch = trace_.program.launches[time.launch];
    const Role role = role_of(trace_.program, launch);
    const double start = run.start + time.start + delay;
    add_counter(start, live_[time.launch]);
    events_.push_back(span_event(role.what + (role.where.empty() ? "" : " " + role.where), role.what, kernel_row,
                                 start, time.seconds));
    events_.back()["args"] = launch_args(launch, time, role);
    std::map<int, double> ends;  // by thread
    for (const TaskRange& range : time.ranges) {
      const double own = time.runs > 1 ? std::max(range.start + delay, ends[range.thread]) : range.start;
      ends[range.thread] = own + range.seconds;
      events_.push_back(span_event(fmt::format("{} [{}, {})", role.what, range.begin, range.end), "tasks",
                                   first_thread_row + range.thread, run.start + own, range.seconds));
      events_.back()["args"] = {{"begin", range.begin}, {"end", range.end}, {"launch", time.launch}};
    }
  }

  /// Returns the faster paths that were not used, with the reasons.
  static std::vector<std::string> missed_of(const Launch& launch) {
    std::vector<std::string> texts;
    for (const MissedPath& missed : launch.info.missed) texts.push_back(missed.to_string());
    return texts;
  }

  Json launch_args(const Launch& launch, const LaunchTime& time, const Role& role) const {
    const Reached reached{time.seconds, time.gflops,
                          static_cast<double>(time.runs) * gigabytes_of(launch, trace_.dims)};
    return {{"ops", launch.names()},
            {"source", role.source},
            {"module", launch.loc.scope()},
            {"region", launch.info.kind ? std::string(name(*launch.info.kind)) : std::string()},
            {"multiplies by", std::string(words(launch.info.multiplier))},
            {"missed", missed_of(launch)},
            {"kernel", trace_.program.kernels[launch.kernel].name},
            {"launch", time.launch},
            {"tasks", time.tasks},
            {"runs", time.runs},
            {"GFLOP", rounded(reached.gflop)},
            {"GFLOP/s", rounded(reached.gflops())},
            {"MB", rounded(reached.gigabytes * 1e3)},
            {"GB/s", rounded(reached.gigabytes_per_second())},
            {"bound by", reached.bound_by_arithmetic(trace_.machine) ? "arithmetic" : "memory"},
            {"percent of bound", rounded(100 * reached.share(trace_.machine))}};
  }

  void add_counter(double start, std::int64_t bytes) {
    events_.push_back({{"name", "arena in use"},
                       {"ph", "C"},
                       {"ts", start * 1e6},
                       {"pid", process},
                       {"args", {{"MiB", rounded(static_cast<double>(bytes) * 0x1p-20)}}}});
  }

  const Trace& trace_;
  std::vector<std::int64_t> live_;
  Json events_ = Json::array();
};

}  // namespace

std::string chrome_trace_json(const Trace& trace) { return Writer(trace).run(); }

}  // namespace lathe
