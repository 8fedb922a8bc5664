#include "parsimony/pruners/errors.h"

#include "parsimony/pruners/criterion.h"

namespace parsimony::errors {

ConfigError unknown_criterion(std::string_view name) {
  return ConfigError("unknown criterion ", in_quotes(name), "; this version has ",
                     each_of(criterion_names()));
}

ConfigError needs_training(std::string_view criterion) {
  return ConfigError("criterion ", in_quotes(criterion),
                     " is added up while a network trains: use it in a recipe's \"prune\", with "
                     "`parsimony train` or `sweep`");
}

ConfigError needs_data(std::string_view criterion) {
  return ConfigError(
      "criterion ", in_quotes(criterion),
      " needs data that runs through the network, and there is none: give --calibration DATA, for "
      "example --calibration cifar10:DIR; in a program, PruneServices::measure");
}

}  // namespace parsimony::errors
