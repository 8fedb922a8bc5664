// Exports as the command asks for them.
#pragma once

#include "parsimony/cli/export_order.h"

namespace parsimony::component {

/// @throws IoError, ModelError, ConfigError, UnsupportedError, VerificationError
cli::ExportOutcome export_onnx(const cli::ExportOrder& order);

}  // namespace parsimony::component
