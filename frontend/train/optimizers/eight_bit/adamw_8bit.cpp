#include "frontend/train/optimizers/eight_bit/adamw_8bit.h"

#include <string>

#include "frontend/ops/ops.h"
#include "frontend/train/optimizers/adam.h"
#include "frontend/train/optimizers/eight_bit/dynamic_map.h"
#include "frontend/train/optimizers/option_faults.h"

namespace lathe {

namespace {

constexpr std::int64_t block = 256;

/// A parameter's elements as rows of `block`, padded with zeros.
struct Blocks {
  std::int64_t count, blocks;

  explicit Blocks(const ParameterUpdate& update) : count(1), blocks(0) {
    for (const std::int64_t size : update.sizes()) count *= size;
    blocks = (count + block - 1) / block;
  }
  Tensor of(const Tensor& x) const {
    const Tensor flat = x.reshape({count});
    const std::int64_t more = blocks * block - count;
    return (more > 0 ? pad(flat, 0, 0, more) : flat).view({blocks, block});
  }
  Tensor restored(const Tensor& x, const Shape& shape) const {
    const Tensor flat = x.reshape({blocks * block});
    return (blocks * block > count ? flat.slice(0, 0, count) : flat).reshape(shape);
  }
};

/// A moment in 8 bits.
class Moment {
 public:
  Moment(ParameterUpdate& update, const Blocks& blocks, const std::string& kind, bool has_sign)
      : update_(update),
        map_{has_sign},
        codes_(update.state(kind, has_sign ? i8 : u8, {blocks.blocks, block})),
        scale_(update.state(kind + "_scale", f32, {blocks.blocks, 1})) {}

  Tensor value() const { return map_.decode(codes_, update_.dtype()) * scale_.to(update_.dtype()); }

  void set(const Tensor& next) {
    const Tensor largest = abs(next).max(-1, true);
    const Tensor divisor = where(largest > 0.0, largest, 1.0);
    update_.set_state(codes_, map_.encode(next / divisor));
    update_.set_state(scale_, largest.to(f32));
  }

 private:
  ParameterUpdate& update_;
  detail::DynamicMap map_;
  Tensor codes_, scale_;
};

void add_step(const AdamW8bit& adam, ParameterUpdate& update) {
  const Blocks blocks(update);
  Moment m(update, blocks, "m", true), v(update, blocks, "v", false);
  const Tensor g = blocks.of(update.gradient());
  const Tensor m1 = m.value() * adam.beta1 + g * (1 - adam.beta1);
  const Tensor v1 = v.value() * adam.beta2 + g * (1 - adam.beta2) * g;
  m.set(m1);
  v.set(v1);
  const Tensor root_correction = update.rounded(sqrt(detail::bias_correction(update, adam.beta2)));
  const Tensor step_size = update.rounded(update.exact_rate() / detail::bias_correction(update, adam.beta1));
  const Tensor direction = m1 * step_size / (sqrt(v1) / root_correction + adam.eps);
  update.set_parameter(detail::decayed(update, adam.weight_decay) - blocks.restored(direction, update.shape()));
}

}  // namespace

AdamW8bit::operator Optimizer() const {
  const Optimizer exact = AdamW{.lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps, .weight_decay = weight_decay};
  const auto rule = [adam = *this, exact](ParameterUpdate& update) {
    if (Blocks(update).count >= adam.smallest)
      add_step(adam, update);
    else
      exact.add_updates({&update, 1});
  };
  using namespace detail;
  return Optimizer::built_in(
      "AdamW8bit", lr, Optimizer::Rule(rule),
      first_of({adam_fault(*this), unless_at_least("smallest", static_cast<double>(smallest), 1)}));
}

}  // namespace lathe
