// Pending changes.
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

/// Converts a tensor of the Graph to the module's form: complex, if it was.
at::Tensor as_stored(const TensorOrigin& origin, const at::Tensor& tensor);

/// The new value at a location.
struct Change {
  c10::IValue value;
  std::string node;  ///< for messages
  std::string what;
  std::set<int> calls;  ///< that request it; several in a loop
};

/// A tensor to be duplicated, or to be stored where it was computed.
struct Duplicate {
  at::Tensor tensor;
  std::vector<SourceLocation> readers;
  torch::jit::Value* computed = nullptr;
};

struct Edits {
  using Spot = std::tuple<torch::jit::Node*, int, int>;

  std::unordered_map<std::string, at::Tensor> tensors;  ///< by name: the current tensor
  std::map<Spot, Change> changes;
  std::map<std::pair<torch::jit::Node*, int>, std::map<int, int64_t>> lists;  ///< current elements
  /// Calls with an explicit list of sizes.
  std::map<torch::jit::Node*, std::vector<int64_t>> splits;
  std::map<std::string, Duplicate> duplicates;
  std::unordered_set<torch::jit::Node*> drops;
  /// Calls whose result is replaced by the operand at that input, in order.
  std::vector<std::pair<torch::jit::Node*, int>> bypasses;

  // Changes already made. The origins are shared and not modified.
  std::unordered_map<std::string, at::Tensor>
      placed;                               ///< attributes' values for `TensorOrigin::source`
  std::unordered_set<std::string> removed;  ///< constants read only by bypassed calls

  bool any() const {
    return !tensors.empty() || !changes.empty() || !splits.empty() || !duplicates.empty() ||
           !drops.empty() || !bypasses.empty();
  }
};

/// Whether the location has a literal of its own or is in a list that can be rebuilt and, in a
/// loop, all iterations request the same change.
bool can_write(const Edits& edits, const Origins& origins, const Edits::Spot& spot,
               const Change& change);

/// A tensor that is yet to replace an attribute of the module at `path`.
struct Outside {
  std::string path;
  std::string attribute;
  at::Tensor tensor;
};

/// Applies the changes to the program in the private copy, once; afterwards duplicates are ordinary
/// tensors. @throws UnsupportedError
void apply(Edits& edits, const Origins& origins);

/// Puts the current tensors into the private copy, after `apply`. Tensors of attributes are
/// returned instead, since the copy is saved and loaded.
std::vector<Outside> place_tensors(Edits& edits, const Origins& origins);

}  // namespace parsimony::torch_io::script
