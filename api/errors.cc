#include "parsimony/api/errors.h"

#include <algorithm>
#include <string>

namespace parsimony::errors {

ConfigError recovery_without_data() {
  return ConfigError(
      "--recover requires calibration data: pass --calibration DATA, for example --calibration "
      "cifar10:DIR");
}

ConfigError comparison_without_data() {
  return ConfigError(
      "several criteria or scopes are compared by the outputs of the pruned networks, which "
      "requires calibration data: pass --calibration DATA (in a program PruneServices::repair), or "
      "name one");
}

ConfigError no_calibration_data(int64_t batch) {
  return ConfigError("calibration: fewer samples than the network's batch size of ", batch,
                     "; pass a larger --samples");
}

ConfigError unknown_engine(std::string_view name, std::span<const std::string> known) {
  std::string names;
  for (size_t i = 0; i < known.size(); ++i) {
    names += (i == 0 ? "" : i + 1 < known.size() ? ", " : " or ") + in_quotes(known[i]);
  }
  return ConfigError("--engine: found ", in_quotes(name), ", expected ", names, ".",
                     did_you_mean(name, known));
}

ModelError command_failed(std::string_view option, std::string_view command, std::string_view why,
                          std::string_view output) {
  constexpr size_t kShown = 500;
  const std::string_view end = output.substr(output.size() - std::min(output.size(), kShown));
  return ModelError(option, ": ", command, ": ", why,
                    end.empty() ? ", without any output" : "; it printed: ", end);
}

}  // namespace parsimony::errors
