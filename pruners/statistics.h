// Statistics of a network measured while data ran through it, for criteria that need data. Only
// sums: memory does not grow with the number of samples.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// One number per channel of a group. "Activation" is what the next layers read: the value after
/// normalisation and activation function.
enum class Measure : uint8_t {
  kZeroShare,       ///< share of activations that are zero, 0..1
  kMeanActivation,  ///< mean of the activations
  kActivationNorm,  ///< √(Σ x² / samples) over all positions
  kRank,            ///< mean rank of the channel's feature map [h, w]
  kTaylor,          ///< mean over batches of |Σ g·w|
  kTaylorSquared,   ///< mean over batches of (Σ g·w)²
  kFisher,   ///< mean over samples of (Σ ∂L/∂m)², m a mask on the channel in every member
  kHessian,  ///< Σ ½·h·w² with h the mean over samples of g²
  kContribution,  ///< Σ over tokens of ‖what the expert adds‖₂, / samples; for experts only
  kRouted,        ///< tokens to which the expert adds anything / samples; with kContribution
  kMovement,      ///< Σ over the steps of a training of -g·w
};

/// Second moments of the inputs of a layer's matrix.
struct InputMoments {
  int64_t rows = 0;  ///< inputs seen: samples times positions
  /// Σ x xᵀ, [in, in]; of grouped convolutions one block per group, side by side [in, groups·in].
  Eigen::MatrixXd second;
  /// Σ x, [groups·in]; empty if the layer has no constant that could make up for a mean.
  Eigen::VectorXd sum = {};
};

struct Statistics {
  int64_t samples = 0;
  PerGroup<std::string> groups;  ///< ids of the coupling's groups, in their order
  /// channels[measure][group][channel]; empty for a group that no data reached.
  std::map<Measure, PerGroup<std::vector<double>>> channels;
  /// By the name of the weight matrix as the model stores it.
  std::map<std::string, InputMoments> inputs;

  /// By the id of a group of experts: why what they contribute cannot be measured.
  std::map<std::string, std::string> unmeasured;

  /// One number per channel; empty if the measure or the group was not reached.
  std::span<const double> of(Measure measure, const Group& group) const;
};

/// The statistics to collect.
struct Needs {
  std::set<Measure> channels = {};
  std::set<std::string> inputs = {};    ///< weight matrices whose InputMoments are requested
  std::set<std::string> criteria = {};  ///< that need them

  bool empty() const { return channels.empty() && inputs.empty(); }
};

/// Returns the statistics that the criteria of the requests in use need, but for the matrices of
/// add_reader_needs().
Needs needs_of(const Settings& settings);

/// Adds the matrices that read the channels of groups whose criterion reads InputMoments.
void add_reader_needs(const Graph& graph, const Coupling& coupling, const Settings& settings,
                      Needs& needs);

/// Runs data through the network that a graph describes. Supplied by callers that have libtorch and
/// data.
using Measurement =
    std::function<Statistics(const Graph&, const Facts&, const Coupling&, const Needs&)>;

}  // namespace parsimony
