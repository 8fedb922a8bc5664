// The forms in which data are named, for help and messages.
#pragma once

#include <string>
#include <vector>

namespace parsimony {

/// Names with which a spec can begin, in alphabetical order.
/// @param labelled  of data with labels only, to train with
std::vector<std::string> data_names(bool labelled);

/// Their forms: "cifar10:DIR, cifar100:DIR, …".
std::string data_forms(bool labelled);

}  // namespace parsimony
