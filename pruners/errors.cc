#include "parsimony/pruners/errors.h"

#include <cstdio>
#include <string>

#include "parsimony/base/words.h"
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

ConfigError too_small_amount(std::string_view key, double amount, double dense,
                             std::string_view unit) {
  constexpr double kMostPercent = 100;
  const std::string budget = std::string(key) + "=" + formatted("%g", amount);
  const std::string slip = amount <= kMostPercent ? " Did you mean " + budget + "%?" : "";
  return ConfigError("budget " + budget + ": less than a thousandth of the " +
                     formatted("%.10g ", dense) + std::string(unit) + " that the network has." +
                     slip + " Such a cut has to be forced: --force, or force=True in Python");
}

ConfigError too_small_share(double share) {
  return ConfigError(formatted("%g%% may remain", 100 * share) +
                     ": less than a thousandth. Such a cut has to be forced: --force, or "
                     "force=True in Python");
}

UnsupportedError exact_values() {
  return UnsupportedError(
      "\"sparsegpt\" changes the elements that stay, but exact constants are those of masked "
      "weights: use constants drop");
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
      "a meter");
}

UnsupportedError no_r_squared() {
  return UnsupportedError(
      "scope \"outputs\" needs something that runs networks and compares their outputs: the "
      "command prune does; in a program, give PruneOptions::r_squared");
}

ConfigError needs_data(std::string_view criterion) {
  return ConfigError(
      "criterion \"" + std::string(criterion) +
      "\" needs data that runs through the network, and there is none: give --calibration DATA, "
      "for example --calibration cifar10:DIR; in a program, PruneOptions::measure");
}

ConfigError bad_pattern_of(std::string_view criterion) {
  return ConfigError("criterion \"" + std::string(criterion) +
                     "\": wanted N:M, N of every M elements stay, 1 <= N < M: \"2:4\", "
                     "\"sparsegpt:2:4\"");
}

ConfigError bad_block(std::string_view criterion) {
  return ConfigError("criterion \"" + std::string(criterion) +
                     "\": wanted the size of a block, output rows x input columns: "
                     "\"block:4x1\"");
}

ModelError moments_do_not_fit(std::string_view tensor, const Shape& found, const Shape& wanted) {
  return ModelError("tensor \"" + std::string(tensor) + "\": its layer's input moments are " +
                    to_string(found) + ", wanted " + to_string(wanted));
}

ModelError moments_not_finite(std::string_view tensor) {
  return ModelError("tensor \"" + std::string(tensor) +
                    "\": what its layer reads is not finite: the calibration data or the network "
                    "makes NaN or infinity");
}

}  // namespace parsimony::errors
