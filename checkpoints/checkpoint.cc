#include "parsimony/checkpoints/checkpoint.h"

#include <cstring>
#include <filesystem>

#include "parsimony/checkpoints/errors.h"
#include "parsimony/checkpoints/formats_impl.h"
#include "parsimony/checkpoints/zip.h"

namespace parsimony {
namespace {

constexpr size_t kStart = 4096;
constexpr size_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;  // of safetensors

enum class Format : uint8_t { kOther, kTorchZip, kTorchStream, kSafetensors, kShards, kDirectory };

std::string start_of(const std::string& path) {
  const MappedFile file(path);
  std::string start(file.bytes().substr(0, kStart));
  return start;
}

/// An archive of torch.save has no program beside its tensors.
bool is_torch_save(const std::string& path) {
  const MappedFile file(path);
  const ZipReader zip(file.bytes(), path);
  bool has_data = false;
  for (const ZipEntry& entry : zip.entries()) {
    const std::string_view name = std::string_view(entry.name).substr(entry.name.find('/') + 1);
    if (name == "constants.pkl") return false;
    has_data |= name == "data.pkl";
  }
  return has_data;
}

/// The length of a header, which begins behind it. No model has so many zeros among its first
/// bytes.
bool is_safetensors(std::string_view start) {
  if (start.size() <= kLengthBytes || start[kLengthBytes] != '{') return false;
  uint64_t length = 0;
  std::memcpy(&length, start.data(), kLengthBytes);
  return length <= kLongestHeader;
}

Format format_of(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return Format::kDirectory;
  const std::string start = start_of(path);
  const std::string_view text = start;
  if (text.starts_with("PK\3\4")) {
    return is_torch_save(path) ? Format::kTorchZip : Format::kOther;
  }
  // ONNX begins with a field of its message, of which 0x80 can be no tag.
  if (text.starts_with('\x80')) return Format::kTorchStream;
  if (is_safetensors(text)) return Format::kSafetensors;
  if (text.starts_with('{') && text.find("\"weight_map\"") != std::string_view::npos) {
    return Format::kShards;
  }
  if (text.starts_with('{') && path.ends_with(".index.json")) return Format::kShards;
  return Format::kOther;
}

}  // namespace

std::string to_string(const std::vector<std::string>& path) {
  std::string text;
  for (const std::string& key : path) text += (text.empty() ? "" : "/") + key;
  return text;
}

StoredValues values_in(const StoredTensor& tensor, std::string_view bytes, std::string_view file) {
  checkpoints::check_fits(tensor, bytes, file);
  return checkpoints::values_of(tensor, bytes);
}

bool is_checkpoint(const std::string& path) {
  try {
    return format_of(path) != Format::kOther;
  } catch (const Error&) {
    return false;  // shows when the file is opened as what it should be
  }
}

std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path) {
  switch (format_of(path)) {
    case Format::kTorchZip:
      return checkpoints::open_torch_zip(path);
    case Format::kTorchStream:
      return checkpoints::open_torch_stream(path);
    case Format::kSafetensors:
      return checkpoints::open_safetensors(path);
    case Format::kShards:
      return checkpoints::open_shards(path);
    case Format::kDirectory:
      return checkpoints::open_directory(path);
    case Format::kOther:
      break;
  }
  throw errors::not_a_checkpoint(
      path, "wanted a file of torch.save or safetensors, the index of several, or a directory");
}

std::unique_ptr<Checkpoint> open_checkpoint(std::string_view bytes, std::string name) {
  return checkpoints::open_torch_zip(bytes, std::move(name));
}

}  // namespace parsimony
