#include "parsimony/training/loop/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace parsimony::training {
namespace {

/// From `from` at 0 to `to` at 1, along half a cosine.
double eased(double from, double to, double at) {
  return to + (from - to) * 0.5 * (1 + std::cos(std::numbers::pi * at));
}

double one_cycle(double highest, double at) {
  constexpr double kRise = 0.3;
  const double first = highest / 25;
  const double last = first / 10'000;
  return at < kRise ? eased(first, highest, at / kRise)
                    : eased(highest, last, (at - kRise) / (1 - kRise));
}

}  // namespace

double learning_rate(const TrainSettings& settings, int64_t step, int64_t steps) {
  const double at = static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, steps));
  switch (settings.schedule) {
    case RateSchedule::kConstant:
      return settings.lr;
    case RateSchedule::kCosine:
      return eased(settings.lr, 0, at);
    case RateSchedule::kStep: {
      const int64_t epoch = step * settings.epochs / std::max<int64_t>(1, steps);
      return settings.lr *
             std::pow(settings.step_factor, static_cast<double>(epoch / settings.step_epochs));
    }
    case RateSchedule::kOneCycle:
      return one_cycle(settings.lr, at);
  }
  return settings.lr;
}

}  // namespace parsimony::training
