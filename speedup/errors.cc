#include "parsimony/speedup/errors.h"

#include <string>

namespace parsimony::errors {
namespace {

std::string axis_of(std::string_view tensor, int axis) {
  return "plan: tensor \"" + std::string(tensor) + "\", axis " + std::to_string(axis) + ": ";
}

}  // namespace

ConfigError bad_plan(std::string_view file, std::string_view place, std::string_view what) {
  std::string text(file);
  text += ": ";
  if (!place.empty()) text.append(place).append(": ");
  return ConfigError(text.append(what));
}

ConfigError plan_sizes_differ(std::string_view tensor, int axis, int64_t first, int64_t second) {
  return ConfigError(axis_of(tensor, axis) + "one slice has size " + std::to_string(first) +
                     ", another " + std::to_string(second));
}

ConfigError plan_keeps_nothing(std::string_view tensor, int axis) {
  return ConfigError(axis_of(tensor, axis) +
                     "its slices keep no index in common; at least one must stay");
}

UnsupportedError plan_folds(std::string_view tensor) {
  return UnsupportedError("plan: folds: tensor \"" + std::string(tensor) +
                          "\": its new values are not there");
}

UnsupportedError plan_cannot_say(std::string_view what, std::string_view why) {
  return UnsupportedError("a plan cannot hold \"" + std::string(what) + "\": " + std::string(why));
}

}  // namespace parsimony::errors
