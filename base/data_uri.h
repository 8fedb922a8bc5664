// Pictures inside documents.
#pragma once

#include <string>
#include <string_view>

namespace parsimony {

/// "data:image/png;base64,…" of the bytes of a PNG or JPEG; empty for what is neither.
std::string picture_uri(std::string_view bytes);

}  // namespace parsimony
