// The zip archive of a TorchScript file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace parsimony::torch_io::script {

/// Returns the names of all entries; empty if the bytes are not a complete zip archive.
std::vector<std::string> entries_of(std::string_view zip);

/// Says why the bytes are not TorchScript; empty if they may be.
std::string not_torchscript_because(std::string_view bytes);

/// Returns the names of files that the author added: "NAME" for the entry "ARCHIVE/extra/NAME".
std::vector<std::string> extra_files(std::string_view zip);

}  // namespace parsimony::torch_io::script
