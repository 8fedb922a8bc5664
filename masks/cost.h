// Parameters and multiply-adds of a network, dense or under masks.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "parsimony/graph/operators/macs.h"
#include "parsimony/masks/axis_mask.h"

namespace parsimony {

struct Cost {
  int64_t params = 0;  ///< elements of floating-point and 8-bit weights
  int64_t macs = 0;    ///< multiply-adds for the probed input shapes
};

/// Is the weight a parameter? Floating-point and 8-bit weights are; index tensors and running
/// statistics of a BatchNormalization are not.
IdVector<WeightId, bool> parameters(const Graph& graph);

/// How many of the `size` values of (index / stride) % size remain among the kept indices of a dim
/// class.
int64_t kept_coordinates(const Coupling& coupling, const AxisMasks& masks, DimClassId dim_class,
                         int64_t stride, int64_t size);

/// Cost as a function of masks; prepared once, evaluated often.
class CostModel {
 public:
  CostModel(const Graph& graph, const Facts& facts, const Coupling& coupling);
  Cost dense() const { return dense_; }
  Cost under(const AxisMasks& masks) const;

 private:
  /// Kept coordinates of one axis: the values of (index / stride) % size over the kept indices of a
  /// dim class.
  struct Factor {
    DimClassId dim_class = kNone;
    int64_t stride = 1;
    int64_t size = 1;
  };
  /// constant times the product of the factors' kept coordinates
  struct Product {
    int64_t constant = 1;
    std::vector<int> factors;
  };

  int factor_id(const Factor& factor);
  void add(std::vector<Product>& products, const std::vector<Factor>& factors);
  int64_t sum(const std::vector<Product>& products, const std::vector<int64_t>& kept) const;

  const Coupling& coupling_;
  std::vector<Factor> factors_;
  std::vector<Product> params_;
  std::vector<Product> macs_;
  std::map<std::tuple<DimClassId, int64_t, int64_t>, int> ids_;
  Cost dense_;
};

}  // namespace parsimony
