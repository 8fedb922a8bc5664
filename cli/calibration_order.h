// Which data runs through a network to judge or mend it: what --calibration and its relatives say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace parsimony::cli {

struct CalibrationOrder {
  std::string data;                    ///< a spec, see docs/guide/data.md; empty: none given
  int64_t samples = 256;               ///< the first so many of the training part
  std::vector<double> mean = {};       ///< per channel, of the scaled values; empty: as they are
  std::vector<double> deviation = {};  ///< per channel, as many as `mean`
};

}  // namespace parsimony::cli
