// Which parameter of an optimizer is which tensor.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "parsimony/checkpoints/optimizer_impl.h"

namespace parsimony::checkpoints {

/// The parameter's axes that a state has: all of them, or all but one in Adafactor's moments.
/// Empty if the state has another shape, or none to cut.
std::vector<int> state_axes(const StoredTensor& state, const Shape& parameter);

/// A tensor that may be a parameter.
struct ParameterTensor {
  TensorId tensor;
  std::string name;
};

/// Tensors that an optimizer's parameter may be, none of which is cut like another.
using Possible = std::vector<TensorId>;

/// For every parameter, in the order of `optimizers` and of their groups, the tensors that it may
/// be. Those that are frozen or no parameters have none in the optimizers. If `parameters` are in
/// the module's order, they stand in it within a group, and the groups are
///
/// - successive ranges, in any order, or
/// - classes: matrices and vectors, biases and others, matrices and gains and biases,
///   normalisations and others, low-rank factors and others; in any order
///
/// and the shapes of all states must fit. Otherwise shapes alone tell. Empty if nothing fits.
std::vector<Possible> possible_orders(std::span<const ParameterStates* const> optimizers,
                                      std::span<const ParameterTensor> parameters, bool in_order,
                                      const Checkpoint& checkpoint,
                                      const std::function<bool(TensorId, TensorId)>& are_cut_alike);

}  // namespace parsimony::checkpoints
