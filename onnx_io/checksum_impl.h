// The fingerprint by which a plan knows its source file.
#pragma once

#include <string>

#include "parsimony/onnx_io/file_impl.h"

namespace parsimony::onnx_io {

/// SHA-256 of the whole file in lower-case hexadecimal. Reads by position, in small pieces.
/// @throws IoError
std::string sha256_of(const OpenFile& file, const std::string& path);

}  // namespace parsimony::onnx_io
