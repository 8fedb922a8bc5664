// Parameters and multiply-adds of a network, dense or under masks: numbers of elements as products
// of the kept coordinates of axes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "parsimony/masks/mask.h"

namespace parsimony {

/// Counts those of the `size` values of (index / stride) % size that remain among the kept indices
/// of a dim class.
int64_t kept_coordinates(const Coupling& coupling, const AxisMasks& masks, DimClassId dim_class,
                         int64_t stride, int64_t size);

/// Products that are prepared once and evaluated often; axes that several have are counted once.
class ElementCounts {
 public:
  /// Kept coordinates of one axis: the values of (index / stride) % size over the kept indices of a
  /// dim class.
  struct Axis {
    DimClassId dim_class = kNone;
    int64_t stride = 1;
    int64_t size = 1;
  };

  explicit ElementCounts(const Coupling& coupling) : coupling_(coupling) {}

  /// constant times the axes' kept coordinates. @param of  the channel with which all of it leaves
  /// @returns the product's number, from 0
  int add(const std::vector<Axis>& axes, int64_t constant = 1, ChannelId of = {});
  /// The elements of a tensor. @param value  whose axes they are
  int add(ValueId value, const Shape& dims, int64_t constant = 1, ChannelId of = {});
  int size() const { return static_cast<int>(products_.size()); }

  /// Evaluates every product under the masks.
  std::vector<int64_t> under(const AxisMasks& masks) const;

 private:
  struct Product {
    int64_t constant = 1;
    std::vector<int> axes;
    ChannelId of;
  };

  int number_of(const Axis& axis);

  const Coupling& coupling_;
  std::vector<Axis> axes_;
  std::vector<Product> products_;
  std::map<std::tuple<DimClassId, int64_t, int64_t>, int> numbers_;
};

/// The elements of weights as a file holds them: once, unless readers of a vector keep different
/// indices of it and it is written once for each of them.
class StoredElements {
 public:
  /// Adds products to `counts`. @param each  what an element of a weight counts
  StoredElements(const Graph& graph, const Coupling& coupling,
                 const IdVector<WeightId, int64_t>& each, ElementCounts& counts);

  /// @param counts  of the products under the masks
  int64_t sum(const std::vector<int64_t>& counts, const AxisMasks& masks) const;

 private:
  /// The part of a weight that some of its readers see.
  struct Reading {
    int product = 0;
    std::vector<DimClassId> dims;
  };

  const Coupling& coupling_;
  std::vector<int> single_;                   ///< products of weights that are read in one way
  std::vector<std::vector<Reading>> shared_;  ///< the others
};

/// Returns the kept indices of each dimension of a value; empty lists where all are kept.
std::vector<std::vector<int64_t>> kept_of(const Coupling& coupling, const AxisMasks& masks,
                                          std::span<const DimClassId> dims);

struct Cost {
  int64_t params = 0;  ///< elements of floating-point and 8-bit weights, as a file holds them
  int64_t macs = 0;    ///< multiply-adds for the probed input shapes
};

/// Is the weight a parameter? Floating-point and 8-bit weights are; index tensors and running
/// statistics of a BatchNormalization are not.
IdVector<WeightId, bool> parameters(const Graph& graph);

/// Cost as a function of masks; prepared once, evaluated often.
class CostModel {
 public:
  CostModel(const Graph& graph, const Facts& facts, const Coupling& coupling);
  Cost dense() const { return dense_; }
  Cost under(const AxisMasks& masks) const;

 private:
  ElementCounts counts_;  ///< of weights, then of multiply-adds
  StoredElements params_;
  int weights_ = 0;
  Cost dense_;
};

}  // namespace parsimony
