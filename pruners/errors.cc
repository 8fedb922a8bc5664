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

ConfigError needs_training(std::string_view criterion) {
  return ConfigError("criterion \"" + std::string(criterion) +
                     "\" is added up while a network trains: use it in a recipe's \"prune\", with "
                     "`parsimony train` or `sweep`");
}

ConfigError wrong_counts(size_t found, size_t wanted) {
  return ConfigError("the allocator gave " + std::to_string(found) + " counts for " +
                     std::to_string(wanted) + " candidates; one for each is wanted");
}

ConfigError cannot_anneal(double ratio, double possible) {
  char text[96];
  std::snprintf(text, sizeof text, "cannot remove %g%% of the channels: their layers allow %g%%",
                ratio * 100, possible * 100);
  return ConfigError(text);
}

ConfigError channels_differ(std::string_view first, std::string_view second) {
  return ConfigError("\"" + std::string(first) + "\" and \"" + std::string(second) +
                     "\" are to lose the same channels, but what can be removed of their output "
                     "channels is not alike; give them different groups, or align neither");
}

ConfigError blocks_do_not_divide(std::string_view group, int size, int blocks) {
  return ConfigError("group " + std::string(group) + " has " + std::to_string(size) +
                     " channels, which \"internal_metric_block\": " + std::to_string(blocks) +
                     " does not divide");
}

UnsupportedError no_meter() {
  return UnsupportedError(
      "a budget of milliseconds needs something that runs the network; give PruneOptions::latency "
      "a "
      "meter");
}

ConfigError needs_data(std::string_view criterion) {
  return ConfigError("criterion \"" + std::string(criterion) +
                     "\" judges channels by data that runs through the network, and there is "
                     "none: give --calibration DATA, for example --calibration cifar10:DIR; in a "
                     "program, PruneOptions::measure or TorchPruneOptions::measure");
}

}  // namespace parsimony::errors
