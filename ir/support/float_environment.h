#pragma once

#include <cfenv>

namespace lathe {

/// As long as it lives, floating-point arithmetic of this thread is IEEE 754's default: rounded to nearest,
/// subnormals kept (no FTZ, no DAZ), no exception trapped. Then the environment is the one that it found, flags
/// included. A new thread inherits its creator's environment, so it sets its own. Costs a fraction of a microsecond:
/// for whole runs and passes, not for single operations.
class FloatEnvironment {
 public:
  FloatEnvironment() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&before_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::fenv_t before_;
};

}  // namespace lathe
