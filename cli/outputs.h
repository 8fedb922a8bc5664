// Checks the files that a command will write before it starts to work.
#pragma once

#include <string>
#include <vector>

#include "parsimony/engines/editable_model.h"

namespace parsimony::cli {

/// A file and the option that names it.
struct NamedFile {
  std::string option;  ///< "--plan"
  std::string path;    ///< empty: not given
};

/// Rejects outputs that would fail, or destroy something, after the work is done.
/// @throws IoError if a folder is missing or not writable
/// @throws ConfigError if two outputs are the same file, or an output is an input. The first output
/// may be the first input: a model may replace its original.
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

/// The same for the files beside a model, which are known after reading it.
void check_outputs_beside(const std::vector<NamedFile>& outputs, const EditableFile& model);

}  // namespace parsimony::cli
