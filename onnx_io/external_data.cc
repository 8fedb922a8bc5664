#include "parsimony/onnx_io/external_data.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <system_error>

#include "parsimony/onnx_io/embedded_impl.h"
#include "parsimony/onnx_io/errors.h"
#include "parsimony/onnx_io/file_impl.h"

namespace parsimony::onnx_io {
namespace fs = std::filesystem;

struct ExternalData::Mapping {
  File file;

  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (file.data != nullptr) {
      ::munmap(const_cast<std::byte*>(file.data), file.bytes);
    }
  }
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

ExternalData::Mapping& ExternalData::mapping(std::string_view tensor, const std::string& location) {
  if (const auto known = by_location_.find(location); known != by_location_.end()) {
    return *known->second;
  }
  const std::string path = checked_path(tensor, model_path_, folder_, location).string();
  return map(open_for_reading(path), path, location);
}

ExternalData::Mapping& ExternalData::map(const OpenFile& opened, const std::string& path,
                                         const std::string& location) {
  auto fresh = std::make_unique<Mapping>();
  fresh->file.location = location;
  fresh->file.path = path;
  fresh->file.device = opened.device;
  fresh->file.inode = opened.inode;
  if (opened.size > 0) {
    const size_t size = opened.size;
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened.fd.get(), 0);
    if (data == MAP_FAILED) {
      throw errors::cannot_read(path, std::generic_category().message(errno));
    }
    ::madvise(data, size, MADV_SEQUENTIAL);
    fresh->file.data = static_cast<const std::byte*>(data);
    fresh->file.bytes = opened.size;
    by_address_.emplace(fresh->file.data, fresh.get());
  }
  by_location_.emplace(location, fresh.get());
  return *mappings_.emplace_back(std::move(fresh));
}

std::string_view ExternalData::map_own(const OpenFile& model) {
  const File& own = map(model, model_path_, std::string(kOwnFile)).file;
  return {reinterpret_cast<const char*>(own.data), static_cast<size_t>(own.bytes)};
}

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

const ExternalData::File* ExternalData::file_of(const std::byte* data) const {
  const auto after = by_address_.upper_bound(data);
  if (after == by_address_.begin()) return nullptr;
  const File& file = std::prev(after)->second->file;
  return std::less<>()(data, file.data + file.bytes) ? &file : nullptr;
}

void ExternalData::release(const std::byte* data, int64_t bytes) const {
  static const int64_t page = ::sysconf(_SC_PAGESIZE);
  const File* const found = bytes <= 0 ? nullptr : file_of(data);
  if (found == nullptr) return;
  const File& file = *found;
  const int64_t begin = (data - file.data) / page * page;
  const int64_t end = std::min(data - file.data + bytes, file.bytes);
  ::madvise(const_cast<std::byte*>(file.data + begin), end - begin, MADV_DONTNEED);
}

std::vector<ExternalData::File> ExternalData::files() const {
  std::vector<File> files;
  for (const auto& known : mappings_) {
    if (known->file.location != kOwnFile) files.push_back(known->file);
  }
  return files;
}

}  // namespace parsimony::onnx_io
