#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frontend/nn/positions.h"

/// Rotary embedding with the scalings that stretch it to longer contexts. The formulas are those of the papers named;
/// angles are computed in f64.
namespace lathe::nn {

struct RopeOptions {
  enum class Scaling : std::uint8_t {
    none,      ///< Su et al. 2021
    linear,    ///< positions divided by `factor` (Chen et al. 2023)
    dynamic,   ///< a base that grows with the length of the text beyond `max_length` (NTK-aware)
    yarn,      ///< by frequency, between `beta_fast` and `beta_slow` rotations (Peng et al. 2023)
    llama3,    ///< by wavelength, between `low_frequency` and `high_frequency`
    longrope,  ///< a factor for each frequency, others for texts beyond `original_length` (Ding et al. 2024)
  };
  Scaling scaling = Scaling::none;
  double theta = 10000;
  double factor = 1;
  std::int64_t max_length = 0;       ///< dynamic: the length that was trained for
  std::int64_t original_length = 0;  ///< yarn, llama3, longrope: the length before stretching
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;  ///< yarn: whole numbers for the range of its ramp
  double low_frequency = 1, high_frequency = 4;
  std::vector<double> short_factor = {}, long_factor = {};  ///< longrope, d/2 each
  /// What cos and sin are multiplied by; none: as the scaling says.
  std::optional<double> attention_factor = {};
  std::optional<double> mscale = {}, mscale_all_dim = {};  ///< yarn
};

/// Whether the angles of all tokens depend on the length of their text: dynamic and longrope.
bool depends_on_length(const RopeOptions& options);

/// Whether texts of `a` and of `b` tokens are rotated by the same frequencies.
bool has_same_frequencies(const RopeOptions& options, std::int64_t a, std::int64_t b);

/// cos and sin of position * frequency, repeated for both halves of `d`, in `dtype`: positions i64 [T] -> [T, d],
/// positions [B, T] -> [B, 1, T, d].
///
/// `lengths` are the lengths of the texts, by which dynamic and longrope choose the frequencies: i64 [] for all
/// texts, [B] for each row, or [B, T] for the text of each token. With [B] and [B, T] the result is [B, 1, T, d].
/// Without lengths each row is one text that ends at the row's largest position.
///
/// Throws UserError [positions_even] for a `d` that is odd or not known, [rope_factors] for longrope with another
/// number of factors than d/2, [rope_lengths] for lengths of more than 2 dims, [rope_options] for other options
/// out of range.
RotaryTables rope_tables(const Tensor& positions, const Dim& d, const RopeOptions& options, DType dtype,
                         const std::optional<Tensor>& lengths = {}, Where at = Where::current());

/// Rotates the first dims of x [B, h, T, d] that the tables have, and leaves the others.
Tensor rotate(const Tensor& x, const RotaryTables& tables, Where at = Where::current());

}  // namespace lathe::nn
