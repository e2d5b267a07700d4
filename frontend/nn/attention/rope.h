#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frontend/nn/attention/positions.h"

/// Rotary embedding with scalings for longer contexts. The formulas are those of the papers named; angles are
/// computed in f64.
namespace lathe::nn {

struct RopeOptions {
  enum class Scaling : std::uint8_t {
    none,      ///< Su et al. 2021
    linear,    ///< positions divided by `factor` (Chen et al. 2023)
    dynamic,   ///< a base that grows with text length beyond `max_length` (NTK-aware)
    yarn,      ///< by frequency, between `beta_fast` and `beta_slow` rotations (Peng et al. 2023)
    llama3,    ///< by wavelength, between `low_frequency` and `high_frequency`
    longrope,  ///< a factor per frequency, with another set for texts beyond `original_length` (Ding et al. 2024)
  };
  Scaling scaling = Scaling::none;
  double theta = 10000;
  double factor = 1;
  std::int64_t max_length = 0;       ///< dynamic: the trained length
  std::int64_t original_length = 0;  ///< yarn, llama3, longrope: the length before scaling
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;  ///< yarn: rounds the bounds of its ramp to integers
  double low_frequency = 1, high_frequency = 4;
  std::vector<double> short_factor = {}, long_factor = {};  ///< longrope, d/2 each
  /// Factor of cos and sin. None: the default of the scaling.
  std::optional<double> attention_factor = {};
  std::optional<double> mscale = {}, mscale_all_dim = {};  ///< yarn
};

/// Whether the angles of all tokens depend on the length of their text: true for dynamic and longrope.
bool depends_on_length(const RopeOptions& options);

/// Whether texts of `a` and `b` tokens are rotated by the same frequencies.
bool has_same_frequencies(const RopeOptions& options, std::int64_t a, std::int64_t b);

/// Returns cos and sin of position * frequency, repeated for both halves of `d`, in `dtype`: positions i64 [T] -> [T,
/// d], positions [B, T] -> [B, 1, T, d].
///
/// `lengths` are the lengths of the texts, by which dynamic and longrope choose the frequencies: i64 [] for all
/// texts, [B] per row, or [B, T] for the text of each token. With [B] and [B, T] the result is [B, 1, T, d]. Without
/// lengths, each row is one text that ends at the row's largest position.
///
/// Throws UserError [positions_even] for a `d` that is odd or unknown, [rope_factors] for longrope with a number of
/// factors other than d/2, [rope_lengths] for lengths of more than 2 dims, [rope_options] for other options out of
/// range.
RotaryTables rope_tables(const Tensor& positions, const Dim& d, const RopeOptions& options, DType dtype,
                         const std::optional<Tensor>& lengths = {}, Where at = Where::current());

/// Rotates the first dims of x [B, h, T, d], as many as the tables have, and leaves the others unchanged.
Tensor rotate(const Tensor& x, const RotaryTables& tables, Where at = Where::current());

}  // namespace lathe::nn
