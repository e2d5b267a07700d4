#include "models/finetune/training_observer.h"

#include <algorithm>

namespace lathe {

std::optional<double> TrainingResult::last_loss() const {
  return history.training.empty() ? std::nullopt : std::optional(history.training.back().loss);
}

std::optional<LossPoint> TrainingResult::best_validation() const {
  const auto best = std::ranges::min_element(history.evaluation, {}, &LossPoint::loss);
  return best == history.evaluation.end() ? std::nullopt : std::optional(*best);
}

}  // namespace lathe
