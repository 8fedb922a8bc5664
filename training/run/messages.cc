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
  return "wait " + seconds(p.wait) + ", forward " + seconds(p.forward) + ", backward " +
         seconds(p.backward) + ", optimizer " + seconds(p.optimizer) + ", rest " + seconds(p.rest);
}

}  // namespace parsimony::training
