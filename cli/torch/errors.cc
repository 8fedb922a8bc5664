#include "parsimony/cli/torch/errors.h"

namespace parsimony::component::errors {

ConfigError unknown_model(std::string_view name, std::span<const std::string> known) {
  std::string text = "model \"" + std::string(name) + "\" is neither a file nor built in.";
  text += did_you_mean(name, known) + " Built in are";
  for (const std::string& each : known) text += (&each == known.data() ? " " : ", ") + each;
  return ConfigError(text + ".");
}

ConfigError wrong_inputs(std::string_view model, std::string_view found, std::string_view wanted) {
  return ConfigError("model \"" + std::string(model) + "\" does not take samples of " +
                     std::string(found) + "; wanted " + std::string(wanted));
}

UnsupportedError states_in_ranks() {
  return UnsupportedError(
      "--states: samples of a sequence follow one another, and are not shared out among processes");
}

UnsupportedError ranks_on_cpu() {
  return UnsupportedError("several processes train on the CPU, over Gloo: --device cpu");
}

ConfigError means_of_arrays() {
  return ConfigError(
      "--mean and --std are of images in 0..1; arrays by input name are used as they are");
}

ConfigError loss_needs_arrays(std::string_view loss) {
  return ConfigError(
      "loss \"" + std::string(loss) +
      "\": labelled data take cross_entropy only, with :ignore=LABEL or without; other "
      "losses need arrays: parsimony finetune --calibration npz:FILE --loss");
}

}  // namespace parsimony::component::errors
