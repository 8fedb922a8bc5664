// Settings for training and calibration, which are parsed and passed on.
#pragma once

#include <string>
#include <vector>

#include "parsimony/base/json_reader.h"
#include "parsimony/configs/config.h"

namespace parsimony {

/// {"schedule": "agp", "warmup_epochs": 1, "steps": 5, "epochs_between": 1}, or just the name.
ScheduleSetting read_schedule(const JsonReader& value);

/// {"data": "cifar10:DIR", "samples": 512}
CalibrationSetting read_calibration(const JsonReader& value);

/// "bn", or ["bias", "least-squares"].
std::vector<std::string> read_recover(const JsonReader& value);

}  // namespace parsimony
