#include <system_error>

#include "parsimony/onnx_io/data_files_impl.h"

namespace parsimony::onnx_io {
namespace fs = std::filesystem;

bool is_own_file(const ModelFile::Impl& impl, const fs::path& path) {
  std::error_code ignored;
  for (const ExternalData::File& file : impl.external.files()) {
    if (fs::equivalent(file.path, path, ignored)) return true;
  }
  return false;
}

std::string data_path(const ModelFile::Impl& impl, const std::string& path) {
  std::string wanted = path + ".data";
  for (int i = 1; is_own_file(impl, wanted); ++i) {
    wanted = path + "." + std::to_string(i) + ".data";
  }
  return wanted;
}

std::vector<fs::path> data_files_left_by(const ModelFile::Impl& impl, const std::string& path) {
  std::error_code ignored;
  if (!fs::equivalent(path, impl.path, ignored)) return {};
  const std::string model = fs::path(impl.path).filename().string();
  std::vector<fs::path> names;
  for (const ExternalData::File& file : impl.external.files()) {
    const fs::path own = fs::path(impl.path).parent_path() / file.location;
    const std::string name = own.filename().string();
    const bool ours = name.starts_with(model + ".") || name.starts_with(model + "_");
    // A link's target is the hub's, and a path with folders was laid out by hand.
    if (ours && own.filename() == file.location && !fs::is_symlink(own, ignored)) {
      names.push_back(own);
    }
  }
  return names;
}

}  // namespace parsimony::onnx_io
