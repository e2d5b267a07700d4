#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "ir/tensor/text/parser.h"
#include "tests/gpu/gpu_device.h"

/// f32 functions on a real GPU compared with f64, in ulps: docs/kernel-ir.md states the maximum errors.
using namespace lathe;

namespace {

/// Returns samples of all magnitudes and signs for which the function is tested.
HostTensor samples(std::int64_t count, float lowest) {
  std::mt19937 random(1);
  HostTensor values(f32, {count});
  for (std::int64_t i = 0; i < count;) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isfinite(value) && value >= lowest) values.set(i++, value);
  }
  return values;
}

double ulps(float found, double exact) {
  const auto rounded = static_cast<float>(exact);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (std::isnan(exact)) return std::isnan(found) ? 0 : infinity;
  if (std::isinf(rounded)) return found == rounded ? 0 : infinity;
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(static_cast<double>(found) - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

}  // namespace

TEST_CASE("f32 functions meet their documented accuracy", "[math]") {
  const auto options = test::gpu_options();
  if (!options) return;
  struct Function {
    const char* name;
    double (*exact)(double);
    float lowest;
    double most;
  };
  constexpr float all = -std::numeric_limits<float>::max();
  for (const auto& [name, exact, lowest, most] : {Function{"exp", std::exp, all, 2},
                                                  {"log", std::log, 0, 2},
                                                  {"tanh", std::tanh, all, 2},
                                                  {"erf", std::erf, all, 2}}) {
    Executable executable =
        compile(ir::parse_graph(
                    std::string("graph @f(input %x: f32[n]) {\n  %1 = ") + name + " %x\n  output \"y\" %1\n}", name),
                *options);
    for (const bool common : {false, true}) {
      HostTensor x = samples(1 << 20, lowest);
      int exponent = 0;
      if (common)
        for (std::int64_t i = 0; i < x.numel(); ++i)
          x.set(i, std::ldexp(std::frexp(x.get(i), &exponent), static_cast<int>(i % 12) - 4));
      const HostTensor y = executable.run({{"x", x}}).at("y");
      double worst = 0;
      for (std::int64_t i = 0; i < x.numel(); ++i)
        worst = std::max(worst, ulps(static_cast<float>(y.get(i)), exact(x.get(i))));
      INFO(name << ": " << worst);
      WARN(name << ": " << worst << " units in the last place");
      CHECK(worst <= most);
    }
  }
}
