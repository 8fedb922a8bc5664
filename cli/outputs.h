// The files that a command is going to write, looked at before it begins to work.
#pragma once

#include <string>
#include <vector>

#include "parsimony/engines/editable_model.h"

namespace parsimony::cli {

/// A file by the option that names it.
struct NamedFile {
  std::string option;  ///< "--plan"
  std::string path;    ///< empty: not given
};

/// Refuses what would fail, or destroy something, after the work is done.
/// @throws IoError where a folder is missing or takes no file
/// @throws ConfigError if two outputs are the same file, or an output is an input. The first output
/// may be the first input: a model may take its original's place.
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

/// The same for the files beside a model, which are known when it was read.
void check_outputs_beside(const std::vector<NamedFile>& outputs, const EditableFile& model);

}  // namespace parsimony::cli
