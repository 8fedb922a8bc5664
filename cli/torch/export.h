// Runs export jobs.
#pragma once

#include "parsimony/cli/export_job.h"

namespace parsimony::component {

/// @throws IoError, ModelError, ConfigError, UnsupportedError, VerificationError
cli::ExportOutcome export_onnx(const cli::ExportJob& job);

}  // namespace parsimony::component
