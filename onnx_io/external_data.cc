#include "parsimony/onnx_io/external_data.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>

#include "parsimony/onnx_io/embedded_impl.h"
#include "parsimony/onnx_io/errors.h"

namespace parsimony::onnx_io {
namespace fs = std::filesystem;

struct ExternalData::Mapping {
  File file;
  MappedFile mapped;

  Mapping(const std::string& location, const std::string& path)
      : file{.location = location, .path = path, .data = nullptr, .bytes = 0}, mapped(path) {}
};

namespace {

ModelError bad_location(std::string_view tensor, std::string_view location, std::string_view why) {
  return ModelError("tensor ", in_quotes(tensor), ": external data location ", in_quotes(location),
                    " ", why);
}

bool lies_in(const fs::path& real, const fs::path& real_folder) {
  const auto [end, ignored] =
      std::mismatch(real_folder.begin(), real_folder.end(), real.begin(), real.end());
  return end == real_folder.end();
}

/// Models are untrusted: they must not make us read arbitrary files. Hubs store model and data as
/// links to files of one folder, which is allowed if the model itself is such a link, since it
/// cannot have created the links. @throws ModelError
fs::path checked_path(std::string_view tensor, const std::string& model_path,
                      const std::string& folder, const std::string& location) {
  const fs::path relative(location);
  if (location.empty()) throw bad_location(tensor, location, "is missing");
  if (location.find('\0') != std::string::npos) {
    throw bad_location(tensor, location, "is not a file name");
  }
  if (relative.is_absolute()) {
    throw bad_location(tensor, location, "is absolute; it must be in the model's folder");
  }
  for (const fs::path& part : relative) {
    if (part == "..") {
      throw bad_location(tensor, location, "leaves the model's folder (\"..\")");
    }
  }
  const fs::path expected = fs::path(folder) / relative;
  std::error_code error;
  fs::path real = fs::canonical(expected, error);
  if (error) throw errors::cannot_read(expected.string(), error.message());
  const fs::path real_folder = fs::canonical(folder, error);
  if (error) throw errors::cannot_read(folder, error.message());
  if (lies_in(real, real_folder)) return real;
  const fs::path real_model = fs::canonical(model_path, error);
  if (error || real.parent_path() != real_model.parent_path()) {
    throw bad_location(tensor, location,
                       "is a link that leaves the model's folder; put the file there");
  }
  return real;
}

}  // namespace

ExternalData::ExternalData(const std::string& model_path)
    : model_path_(model_path), folder_((fs::path(model_path).parent_path() / ".").string()) {}

ExternalData::~ExternalData() = default;
ExternalData::ExternalData(ExternalData&&) noexcept = default;
ExternalData& ExternalData::operator=(ExternalData&&) noexcept = default;

const ExternalData::Mapping& ExternalData::mapping(std::string_view tensor,
                                                   const std::string& location) {
  if (const auto known = by_location_.find(location); known != by_location_.end()) {
    return *known->second;
  }
  return map(checked_path(tensor, model_path_, folder_, location).string(), location);
}

const ExternalData::Mapping& ExternalData::map(const std::string& path,
                                               const std::string& location) {
  std::error_code ignored;  // opening reports errors; opening a pipe would wait for its writer
  const fs::file_status status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw errors::cannot_read(path, "not a regular file");
  }
  auto fresh = std::make_unique<Mapping>(location, path);
  const std::string_view bytes = fresh->mapped.bytes();
  fresh->file.data = reinterpret_cast<const std::byte*>(bytes.data());
  fresh->file.bytes = std::ssize(bytes);
  if (!bytes.empty()) by_address_.emplace(fresh->file.data, fresh.get());
  by_location_.emplace(location, fresh.get());
  return *mappings_.emplace_back(std::move(fresh));
}

const MappedFile& ExternalData::map_own() { return map(model_path_, std::string(kOwnFile)).mapped; }

ExternalData::Range ExternalData::locate(std::string_view tensor, const std::string& location,
                                         int64_t offset, int64_t bytes) {
  const File& file = mapping(tensor, location).file;
  if (bytes < 0) bytes = std::max<int64_t>(file.bytes - offset, 0);
  if (offset < 0 || offset > file.bytes || bytes > file.bytes - offset) {
    throw ModelError("tensor ", in_quotes(tensor), ": external data: expected ", bytes,
                     " bytes from offset ", offset, " of ", in_quotes(location),
                     ", found a file of ", file.bytes, " bytes");
  }
  return {file.data + offset, bytes};
}

const ExternalData::Mapping* ExternalData::mapping_of(const std::byte* data) const {
  const auto after = by_address_.upper_bound(data);
  if (after == by_address_.begin()) return nullptr;
  const Mapping& found = *std::prev(after)->second;
  return std::less<>()(data, found.file.data + found.file.bytes) ? &found : nullptr;
}

void ExternalData::release(const std::byte* data, int64_t bytes) const {
  const Mapping* const found = bytes <= 0 ? nullptr : mapping_of(data);
  if (found == nullptr) return;
  const int64_t left = found->file.data + found->file.bytes - data;
  found->mapped.release(
      {reinterpret_cast<const char*>(data), static_cast<size_t>(std::min(bytes, left))});
}

std::vector<ExternalData::File> ExternalData::files() const {
  std::vector<File> files;
  for (const auto& known : mappings_) {
    if (known->file.location != kOwnFile) files.push_back(known->file);
  }
  return files;
}

}  // namespace parsimony::onnx_io
