#pragma once

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "ir/support/error.h"
#include "runtime/host/host_cpu.h"
#include "runtime/host/seconds.h"

/// Programs that a script starts and asks for one measurement at a time (bench/peers/workers.py).
namespace lathe::bench {

/// Calls `run` as often as the next word says. Returns {"seconds": [...]}, with the time of each call.
template <class Run>
std::string timed_runs(std::istringstream& words, const Run& run) {
  int count = 1;
  words >> count;
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    seconds.push_back(seconds_since(start));
  }
  return fmt::format("{{\"seconds\":[{}]}}", fmt::join(seconds, ","));
}

/// Answers each line of standard input with a line of JSON, and prints one first. "run N" runs the server N times and
/// answers with the seconds of each run. All other lines are answered by Server::answer(verb, words). The server is
/// made with a number of threads: argv[1], or one per CPU. Returns the exit status.
template <class Server>
int serve_commands(int argc, char** argv) try {
  Server server(argc > 1 ? std::max(1, std::atoi(argv[1])) : usable_cpus());
  std::cout << "{}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    const auto run = [&] { server.run(); };
    std::cout << (verb == "run" ? timed_runs(words, run) : server.answer(verb, words)) << std::endl;
  }
  return 0;
} catch (const Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}

}  // namespace lathe::bench
