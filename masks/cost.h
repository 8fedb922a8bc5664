// Parameters and multiply-adds of a network, whole or under masks.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/graph/rule.h"
#include "parsimony/masks/axis_mask.h"

namespace parsimony {

struct Cost {
  int64_t params = 0;  ///< elements of floating-point and 8-bit weights
  int64_t macs = 0;    ///< multiply-adds for the probed input shapes
};

/// Cost as a function of masks; prepared once, evaluated often.
class CostModel {
 public:
  CostModel(const Graph& graph, const Facts& facts, const Coupling& coupling);
  Cost dense() const { return dense_; }
  Cost under(const AxisMasks& masks) const;

 private:
  struct Product {           // constant * product of kept counts of lines
    int64_t constant = 1;
    std::vector<int> lines;
  };
  Cost evaluate(const std::vector<int64_t>& kept) const;

  const Coupling& coupling_;
  std::vector<Product> params_;
  std::vector<Product> macs_;
  Cost dense_;
};

}  // namespace parsimony
