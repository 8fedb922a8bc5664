#include "parsimony/speedup/errors.h"

#include <string>

namespace parsimony::errors {
namespace {

std::string axis_of(std::string_view tensor, int axis) {
  return "plan: tensor \"" + std::string(tensor) + "\", axis " + std::to_string(axis) + ": ";
}

}  // namespace

ConfigError plan_sizes_differ(std::string_view tensor, int axis, int64_t first, int64_t second) {
  return ConfigError(axis_of(tensor, axis) + "one slice has size " + std::to_string(first) +
                     ", another " + std::to_string(second));
}

ConfigError plan_keeps_nothing(std::string_view tensor, int axis) {
  return ConfigError(axis_of(tensor, axis) +
                     "its slices keep no index in common; at least one must stay");
}

UnsupportedError plan_updates(std::string_view tensor) {
  return UnsupportedError("plan: folds: tensor \"" + std::string(tensor) +
                          "\": its new values are not there");
}

IoError no_values(std::string_view plan, std::string_view why) {
  return IoError(std::string(plan) +
                 ": its updates have values, which are in a file beside it: " + std::string(why));
}

ConfigError values_lack(std::string_view file, std::string_view tensor) {
  return ConfigError(std::string(file) + ": lacks tensor \"" + std::string(tensor) +
                     "\", which the plan beside it names; is it from another run?");
}

ConfigError values_differ(std::string_view file, std::string_view tensor, std::string_view found,
                          std::string_view wanted) {
  return ConfigError(std::string(file) + ": tensor \"" + std::string(tensor) + "\": found " +
                     std::string(found) + ", the plan beside it wants " + std::string(wanted) +
                     "; is it from another run?");
}

ModelError no_tensor_to_mask(std::string_view tensor, const std::vector<std::string>& known) {
  return ModelError("the masks name tensor \"" + std::string(tensor) +
                    "\", which the model does not have." + did_you_mean(tensor, known));
}

UnsupportedError plan_cannot_say(std::string_view what, std::string_view why) {
  return UnsupportedError("a plan cannot hold \"" + std::string(what) + "\": " + std::string(why));
}

ModelError sums_do_not_fit(int64_t rows, int64_t columns, int64_t cross_columns) {
  return ModelError("least squares: the second moments are [" + std::to_string(rows) + ", " +
                    std::to_string(columns) + "], the cross moments have " +
                    std::to_string(cross_columns) + " columns; wanted [in, in] and in columns");
}

ModelError sums_not_finite() {
  return ModelError(
      "least squares: the sums hold infinities or NaN; look for them in the calibration data and "
      "in the network's weights");
}

ConfigError unknown_recovery(std::string_view text, std::string_view place,
                             std::span<const std::string> known) {
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  return ConfigError(std::string(place) + ": unknown recovery \"" + std::string(text) +
                     "\"; wanted " + list + "." + did_you_mean(text, known));
}

}  // namespace parsimony::errors
