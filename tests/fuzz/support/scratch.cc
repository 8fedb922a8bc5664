#include "tests/fuzz/support/scratch.h"

#include <stdlib.h>  // mkdtemp

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace parsimony::fuzz {
namespace fs = std::filesystem;

Scratch::Scratch() {
  const fs::path memory = "/dev/shm";
  const fs::path parent = fs::is_directory(memory) ? memory : fs::temp_directory_path();
  path_ = (parent / "parsimony_fuzz_XXXXXX").string();
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make " + path_);
}

Scratch::~Scratch() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void Scratch::write(std::string_view name, std::string_view bytes) const {
  std::ofstream out(*this / name, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace parsimony::fuzz
