#include "parsimony/training/recovery/errors.h"

#include <string>

namespace parsimony::training::errors {

UnsupportedError only_trained(std::string_view what) {
  return UnsupportedError("a network under recovery can be trained, not " + std::string(what));
}

UnsupportedError recovery_inputs(size_t inputs) {
  return UnsupportedError("--recover: the network has " + std::to_string(inputs) +
                          " inputs, and labelled samples feed one; prune without --recover");
}

}  // namespace parsimony::training::errors
