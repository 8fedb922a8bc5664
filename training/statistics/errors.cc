#include "parsimony/training/statistics/errors.h"

#include <string>

namespace parsimony::training::errors {

UnsupportedError calibration_inputs(size_t inputs) {
  return UnsupportedError("calibration: the network has " + std::to_string(inputs) +
                          " inputs, and labelled samples feed one; use a criterion that needs no "
                          "data");
}

ModelError calibration_dims(const Shape& found, const Shape& wanted) {
  return ModelError("calibration: the samples are of shape " + to_string(found) +
                    ", the network takes " + to_string(wanted));
}

ConfigError no_calibration_data(int64_t batch) {
  return ConfigError(
      "calibration: there are fewer samples than the network takes at once, which "
      "is " +
      std::to_string(batch) + "; give more with --samples");
}

ModelError no_classes(const Shape& found, int64_t samples) {
  return ModelError("calibration: criteria by gradient need answers of shape [" +
                    std::to_string(samples) + ", classes], found " + to_string(found) +
                    "; use a criterion by weights or activations");
}

UnsupportedError needs_single_samples(int64_t batch) {
  return UnsupportedError(
      "calibration: criteria fisher and obd look at one sample at a time, and "
      "the network takes " +
      std::to_string(batch) +
      " at once; use taylor, or export it with an open "
      "batch dimension");
}

ModelError label_beyond(int64_t label, int64_t classes) {
  return ModelError("calibration: the data have label " + std::to_string(label) +
                    ", the network answers with " + std::to_string(classes) + " classes");
}

}  // namespace parsimony::training::errors
