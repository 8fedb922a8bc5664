#include "parsimony/base/data_uri.h"

#include <openssl/evp.h>

namespace parsimony {

std::string picture_uri(std::string_view bytes) {
  const bool png = bytes.starts_with("\x89PNG\r\n\x1a\n");
  if (!png && !bytes.starts_with("\xff\xd8\xff")) return "";
  std::string uri = png ? "data:image/png;base64," : "data:image/jpeg;base64,";
  const size_t head = uri.size();
  uri.resize(head + (bytes.size() + 2) / 3 * 4 + 1);  // and the zero that libcrypto ends it with
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(uri.data() + head),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  uri.pop_back();
  return uri;
}

}  // namespace parsimony
