#include "parsimony/cli/calibration.h"

#include <limits>

#include "parsimony/cli/errors.h"
#include "parsimony/cli/validators.h"

namespace parsimony::cli {

void add_calibration_options(CLI::App& command, CalibrationData& job) {
  const char* group = "Data that runs through the network";
  command
      .add_option("--calibration", job.data, "Labelled data: cifar10:DIR, folder:DIR, npy:X,Y, …")
      ->type_name("DATA")
      ->group(group);
  command
      .add_option("--samples", job.samples,
                  "The first N of its training part (256), or so many random inputs")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, std::numeric_limits<int64_t>::max()))
      ->group(group);
  command
      .add_option("--mean", job.mean, "Taken from the values, in 0..1, of each channel: 0.5,0.5,…")
      ->type_name("M")
      ->delimiter(',')
      ->group(group);
  command.add_option("--std", job.deviation, "What is then divided by, of each channel")
      ->type_name("S")
      ->delimiter(',')
      ->check(above_zero())
      ->group(group);
}

CalibrationData resolved(CalibrationData given, const ConfigList& config) {
  if (given.data.empty() && config.calibration) {
    given.data = config.calibration->data;
    given.samples = config.calibration->samples;
  }
  if (given.mean.size() != given.deviation.size()) {
    throw errors::mean_without_deviation(given.mean.size(), given.deviation.size());
  }
  if (given.data.empty() && !given.mean.empty()) throw errors::no_calibration("--mean");
  return given;
}

}  // namespace parsimony::cli
