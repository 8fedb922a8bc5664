// The distance between a small network's values and the dense network's: a loss without labels.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/graph/graph.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/training/ranks/group.h"

namespace parsimony::training {

/// The sum, over the compared values, of weight · distance. Distances have no unit: each is divided
/// by the value's own spread.
///
/// | the value is of | distance between a (dense) and b (small)                             |
/// |-----------------|----------------------------------------------------------------------|
/// | a Softmax       | Σ a log(a / b) / Σ a: Kullback–Leibler, per distribution              |
/// | a Sigmoid       | likewise per event, divided by the distance between a and its mean    |
/// | any other       | mean of Huber((b − a) / σ), 1 where b is off by σ, the deviation of a |
///
/// If a term has the shape of Sigmoid terms but for one axis (a detector's boxes and its classes),
/// each place is weighted by the dense network's confidence there: the product of the other
/// Sigmoids' maxima.
///
/// An output that rearranges values (Concat, Reshape, Transpose, …) is replaced by them, and one
/// that selects among numbers (ArgMax, NonMaxSuppression, …) by those, so that gradients reach
/// them. Kullback and Leibler, On Information and Sufficiency, 1951; Huber, Robust Estimation of a
/// Location Parameter, 1964.
class OutputLoss {
 public:
  /// @param terms  values other than the outputs, which the small network must have: layers'
  /// results, or values that the cut leaves whole
  /// Values of the networks are matched by name. @throws ConfigError for terms that one of them
  /// does not have
  OutputLoss(const Graph& dense, const SmallNetwork& small,
             const std::vector<MatchSettings::Term>& terms);
  /// Compares the network's outputs, for drawn().
  explicit OutputLoss(const Graph& graph);

  /// Returns the values that the networks must compute, in this order, as ids of their own graphs.
  const std::vector<ValueId>& values() const { return values_; }
  const std::vector<ValueId>& dense_values() const { return dense_values_; }

  /// Estimates the spread of the dense network's values from batches.
  void learn(const std::vector<at::Tensor>& dense);
  /// Takes the means over ranks that have learned from the same number of batches.
  void average_over(const RankGroup& ranks);

  /// Returns a scalar. @param dense, small  the values of one batch
  at::Tensor operator()(const std::vector<at::Tensor>& dense, const std::vector<at::Tensor>& small);

  /// Returns a scalar for gradients where the network is compared with itself and the loss has
  /// none: for a small change of the network, the expected square of this scalar's change is the
  /// loss. Undefined if no value is numeric. @param values  of one batch
  /// @source Martens, New Insights and Perspectives on the Natural Gradient Method, 2020, section 9
  at::Tensor drawn(const std::vector<at::Tensor>& values, const at::Generator& generator) const;

  /// Returns values that were not compared in the last batch, and why.
  std::vector<std::string> notes() const;

 private:
  enum class Kind : uint8_t { kOther, kDistribution, kEvents };
  struct Term {
    Kind kind = Kind::kOther;
    double weight = 1;
    int axis = 0;  ///< axis along which the small network has only `kept`
    std::vector<int64_t> kept = {};
    bool is_output = false;
    double spread = 0;      ///< of the dense network's values, mean over the learned batches
    double confidence = 1;  ///< mean weight of a place, likewise
    std::string note = {};  ///< why it is not compared
  };

  Term& add(const Graph& graph, const Node& producer, ValueId value, ValueId dense, double weight);
  /// Returns the target of the small network; undefined if it cannot be compared.
  static at::Tensor expected(Term& term, const at::Tensor& dense, const at::Tensor& small);
  /// Returns the mean over the places. @param weight  of a place; undefined: 1
  static at::Tensor distance(const Term& term, const at::Tensor& dense, const at::Tensor& small,
                             const at::Tensor& weight);
  /// Returns scale²: the distance of a from a + d is about Σ d² / scale², for small d.
  static at::Tensor squared_scale(const Term& term, const at::Tensor& a, const at::Tensor& weight);
  /// Returns the network's confidence at each place of a term; undefined without other Sigmoids.
  /// @param dense  its values
  at::Tensor confidence(size_t term, const std::vector<at::Tensor>& dense) const;

  std::vector<ValueId> values_;
  std::vector<ValueId> dense_values_;
  std::vector<Term> terms_;         ///< of the values
  std::vector<std::string> names_;  ///< likewise
  int64_t batches_ = 0;             ///< number of learned batches
};

}  // namespace parsimony::training
