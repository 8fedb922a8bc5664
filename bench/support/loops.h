// The inner loops that touch every byte of a network, over weights larger than the caches.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/support/yardstick.h"

namespace parsimony::bench {

struct Loop {
  std::string name;
  Bound bound = Bound::kRead;
  double bytes = 0;  ///< that must be read, or copied
  std::function<void()> run;
};

/// Norms by rows and columns, the search for NaNs, selection of the smallest, slices, disjoint
/// sets. They share one buffer, which lives as long as they do.
std::vector<Loop> inner_loops();

}  // namespace parsimony::bench
