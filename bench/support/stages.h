// The stages of a model's way through the library, each timed for itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace parsimony::bench {

struct StageCost {
  std::string_view stage;  ///< "read", "graph", "weights", "infer", "couple", …
  double cpu = 0;          ///< seconds of this thread
};

/// Prunes half of the channels of the file `in` into `out`, in this process.
std::vector<StageCost> run_stages(const std::string& in, const std::string& out);

}  // namespace parsimony::bench
