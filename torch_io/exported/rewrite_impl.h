// Writes the changes of an edited program into the JSON that it was read from.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>

#include "parsimony/torch_io/exported/archive_impl.h"
#include "parsimony/torch_io/exported/program_impl.h"
#include "parsimony/torch_io/script/editor.h"

namespace parsimony::torch_io::exported {

/// Writes the archive with the edited program, and with the tensors of `small`.
/// @throws UnsupportedError if the program has no form for a change; IoError
void write_edited(const Archive& archive, const Program& program, const EditedScript& edited,
                  const torch::jit::Module& small, const std::string& path);

}  // namespace parsimony::torch_io::exported
