// What a configuration says to those who train and calibrate; it is read and handed on.
#pragma once

#include <string>
#include <vector>

#include "parsimony/configs/config.h"
#include "parsimony/configs/json_impl.h"

namespace parsimony {

/// {"schedule": "agp", "warmup_epochs": 1, "steps": 5, "epochs_between": 1}, or the word alone.
ScheduleSetting read_schedule(const nlohmann::json& value, const std::string& place);

/// {"data": "cifar10:DIR", "samples": 512}
CalibrationSetting read_calibration(const nlohmann::json& value, const std::string& place);

/// "bn", or ["bias", "least-squares"].
std::vector<std::string> read_recover(const nlohmann::json& value, const std::string& place);

}  // namespace parsimony
