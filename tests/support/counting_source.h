// Counts what is released of a graph's weights.
#pragma once

#include <map>
#include <string>

#include "parsimony/graph/graph.h"

namespace parsimony::test {

class CountingSource : public GraphSource {
 public:
  void release(const Weight& weight) const override { ++releases[weight.name]; }
  int count() const {
    int sum = 0;
    for (const auto& [weight, times] : releases) sum += times;
    return sum;
  }

  mutable std::map<std::string, int> releases;  ///< by weight
};

}  // namespace parsimony::test
