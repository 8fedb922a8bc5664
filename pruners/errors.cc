#include "parsimony/pruners/errors.h"

#include <cstdio>
#include <string>

#include "parsimony/pruners/criterion.h"

namespace parsimony::errors {

ConfigError unknown_criterion(std::string_view name) {
  std::string text = "unknown criterion \"" + std::string(name) + "\"; this version has ";
  const std::vector<std::string> known = criterion_names();
  for (size_t i = 0; i < known.size(); ++i) {
    if (i > 0) text += i + 1 == known.size() ? " and " : ", ";
    text += '"' + known[i] + '"';
  }
  return ConfigError(text);
}

ConfigError cannot_anneal(double ratio, double possible) {
  char text[96];
  std::snprintf(text, sizeof text, "cannot remove %g%% of the channels: their layers allow %g%%",
                ratio * 100, possible * 100);
  return ConfigError(text);
}

}  // namespace parsimony::errors
