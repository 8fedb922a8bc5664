// Changes that were asked for and not yet made.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::torch_io::script {

/// What is to stand at a place.
struct Change {
  c10::IValue value;
  std::string node;  ///< for messages
  std::string what;
  std::set<int> calls;  ///< that ask for it: a place in a loop belongs to several
};

/// A tensor that is to exist twice.
struct Duplicate {
  at::Tensor tensor;
  std::vector<Place> readers;
};

struct Edits {
  using Spot = std::tuple<torch::jit::Node*, int, int>;

  std::unordered_map<std::string, at::Tensor> tensors;  ///< by name: what it is now
  std::map<Spot, Change> changes;
  std::map<std::pair<torch::jit::Node*, int>, std::map<int, int64_t>> lists;  ///< as they stand
  std::map<torch::jit::Node*, std::vector<int64_t>> splits;  ///< calls that get a list of sizes
  std::map<std::string, Duplicate> duplicates;
  std::unordered_set<torch::jit::Node*> drops;
  /// Calls whose result is to be the operand at that place, in order.
  std::vector<std::pair<torch::jit::Node*, int>> bypasses;

  // What has been done. The origins are not changed: others read them.
  std::unordered_map<std::string, at::Tensor> placed;  ///< what attributes hold for `Home::source`
  std::unordered_set<std::string> gone;                ///< constants that only bypassed calls read

  bool any() const {
    return !tensors.empty() || !changes.empty() || !splits.empty() || !duplicates.empty() ||
           !drops.empty() || !bypasses.empty();
  }
};

/// Does the place hold a number of its own, or is it in a list that can be written anew? In a loop,
/// do all rounds ask for the change?
bool can_write(const Edits& edits, const Origins& origins, const Edits::Spot& spot,
               const Change& change);

/// Of the changes, the bypasses: calls go, with whatever nothing reads then, its constants too.
void bypass(Edits& edits, const Origins& origins);

/// A tensor that has yet to take the place of the one which an attribute of the module at `path`
/// holds.
struct Outside {
  std::string path;
  std::string attribute;
  at::Tensor tensor;
};

/// Makes the changes of the program in the private copy, once; duplicates are tensors like others
/// then. @throws UnsupportedError
void apply(Edits& edits, const Origins& origins);

/// Puts the tensors as they are now into the private copy, in which `apply` has been. Those of
/// attributes stay out of it, for it is to be saved and loaded.
std::vector<Outside> place_tensors(Edits& edits, const Origins& origins);

}  // namespace parsimony::torch_io::script
