// How far a small network's values are from the dense network's: a loss without labels.
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

/// The sum, over the values that are compared, of weight · distance. No distance has a unit: the
/// value's own spread divides it.
///
/// | the value is of | distance between a (dense) and b (small)                             |
/// |-----------------|----------------------------------------------------------------------|
/// | a Softmax       | Σ a log(a / b) / Σ a: Kullback–Leibler, per distribution              |
/// | a Sigmoid       | the same of each event, divided by that between a and its mean        |
/// | any other       | mean of Huber((b − a) / σ), 1 where b is off by σ, the deviation of a |
///
/// Where a term lies beside likelihoods, in shape but for one axis (the boxes of a detector beside
/// the classes'), each place counts as much as the dense network is confident of something there:
/// the product of the other Sigmoids' largest.
///
/// An output that arranges others (Concat, Reshape, Transpose, …) is taken apart into them, and one
/// that chooses among numbers (ArgMax, NonMaxSuppression, …) is replaced by those: gradients reach
/// these. Kullback and Leibler, On Information and Sufficiency, 1951; Huber, Robust Estimation of a
/// Location Parameter, 1964.
class OutputLoss {
 public:
  /// @param terms  of values other than the outputs, which the small network must have: layers'
  ///               results, or values that the cut leaves whole
  /// Values of the networks belong together by their names. @throws ConfigError for terms that one
  /// of them does not have
  OutputLoss(const Graph& dense, const SmallNetwork& small,
             const std::vector<MatchSettings::Term>& terms);
  /// Of the network's outputs, for drawn().
  explicit OutputLoss(const Graph& graph);

  /// What the networks must compute, in this order: ids of their own graphs.
  const std::vector<ValueId>& values() const { return values_; }
  const std::vector<ValueId>& dense_values() const { return dense_values_; }

  /// From batches of the dense network's values: how much these spread.
  void learn(const std::vector<at::Tensor>& dense);
  /// Takes the means of ranks that have learned from as many batches each.
  void average_over(const RankGroup& ranks);

  /// A scalar. @param dense, small  the values of one batch
  at::Tensor operator()(const std::vector<at::Tensor>& dense, const std::vector<at::Tensor>& small);

  /// A scalar for gradients where the network is compared with itself, and the loss has none: for a
  /// small change of the network, the square of this scalar's change is in the mean the loss.
  /// Undefined without a number among the values. @param values  of one batch
  /// @source Martens, New Insights and Perspectives on the Natural Gradient Method, 2020, section 9
  at::Tensor drawn(const std::vector<at::Tensor>& values, const at::Generator& generator) const;

  /// Values that were not compared in the last batch, and why.
  std::vector<std::string> notes() const;

 private:
  enum class Kind : uint8_t { kOther, kDistribution, kEvents };
  struct Term {
    Kind kind = Kind::kOther;
    double weight = 1;
    int axis = 0;  ///< along which the small network has only `kept`
    std::vector<int64_t> kept = {};
    bool is_output = false;
    double spread = 0;      ///< of the dense network's values, mean over the batches that taught it
    double confidence = 1;  ///< mean weight of a place, likewise
    std::string note = {};  ///< why it is not compared
  };

  Term& add(const Graph& graph, const Node& producer, ValueId value, ValueId dense, double weight);
  /// What the small network should give; undefined if that cannot be compared.
  static at::Tensor expected(Term& term, const at::Tensor& dense, const at::Tensor& small);
  /// Mean over the places. @param weight  of a place; undefined: 1
  static at::Tensor distance(const Term& term, const at::Tensor& dense, const at::Tensor& small,
                             const at::Tensor& weight);
  /// The distance of a from a + d is about Σ d² / scale², for small d.
  static at::Tensor squared_scale(const Term& term, const at::Tensor& a, const at::Tensor& weight);
  /// How confident the network is of something at each place of a term; undefined without others.
  /// @param dense  its values
  at::Tensor confidence(size_t term, const std::vector<at::Tensor>& dense) const;

  std::vector<ValueId> values_;
  std::vector<ValueId> dense_values_;
  std::vector<Term> terms_;         ///< of the values
  std::vector<std::string> names_;  ///< likewise
  int64_t batches_ = 0;             ///< that taught the spreads
};

}  // namespace parsimony::training
