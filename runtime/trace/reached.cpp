#include <algorithm>

#include "passes/program/program.h"
#include "runtime/trace/trace.h"

namespace lathe {

namespace {

double seconds_for(double giga, double rate) { return rate > 0 ? giga * 1e9 / rate : 0; }

}  // namespace

bool Reached::bound_by_arithmetic(const DeviceRates& machine) const {
  return gflop > 0 && seconds_for(gflop, machine.flops) >= seconds_for(gigabytes, machine.bytes);
}

double Reached::share(const DeviceRates& machine) const {
  if (seconds <= 0) return 0;
  return std::max(seconds_for(gflop, machine.flops), seconds_for(gigabytes, machine.bytes)) / seconds;
}

double gigabytes_of(const Launch& launch, const DimBindings& dims) {
  try {
    return static_cast<double>(launch.bytes.evaluate(dims)) * 1e-9;
  } catch (const UserError&) {
    return 0;
  }
}

}  // namespace lathe
