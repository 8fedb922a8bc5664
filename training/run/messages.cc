#include "parsimony/training/run/messages.h"

#include <cstdio>

namespace parsimony::training {

std::string percent(const LedgerPoint::Score& score) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f %% (%lld of %lld)", 100 * score.share(),
                static_cast<long long>(score.correct), static_cast<long long>(score.total));
  if (!score.perplexity) return text;
  return text + std::string(", perplexity ") + number(*score.perplexity);
}

std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", value);
  return text;
}

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

std::string taken_apart(const Phases& p) {
  std::string text;
  for (const TrainingPhase& phase : phases_in(p)) {
    text += (text.empty() ? "" : ", ") + std::string(phase.name) + " " + seconds(p.*phase.seconds);
  }
  return text;
}

}  // namespace parsimony::training
