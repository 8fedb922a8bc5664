#include "parsimony/checkpoints/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "parsimony/checkpoints/errors.h"
#include "parsimony/checkpoints/formats_impl.h"
#include "parsimony/checkpoints/zip.h"

namespace parsimony {
namespace {

constexpr auto kTable = std::to_array<ElementType>({
    {"float32", "FloatStorage", "F32", 4, DType::kFloat32},
    {"float64", "DoubleStorage", "F64", 8, DType::kFloat64},
    {"float16", "HalfStorage", "F16", 2, DType::kFloat16},
    {"bfloat16", "BFloat16Storage", "BF16", 2, DType::kBFloat16},
    {"int64", "LongStorage", "I64", 8, DType::kInt64},
    {"int32", "IntStorage", "I32", 4, DType::kInt32},
    {"int16", "ShortStorage", "I16", 2, DType::kInt16},
    {"int8", "CharStorage", "I8", 1, DType::kInt8},
    {"uint8", "ByteStorage", "U8", 1, DType::kUInt8},
    {"bool", "BoolStorage", "BOOL", 1, DType::kBool},
    {"uint16", "", "U16", 2, DType::kUInt16},
    {"uint32", "", "U32", 4, DType::kUInt32},
    {"uint64", "", "U64", 8, DType::kUInt64},
    {"complex32", "", "", 4},
    {"complex64", "ComplexFloatStorage", "C64", 8},
    {"complex128", "ComplexDoubleStorage", "", 16},
    {"quint8", "QUInt8Storage", "", 1},
    {"qint8", "QInt8Storage", "", 1},
    {"qint32", "QInt32Storage", "", 4},
    {"quint4x2", "QUInt4x2Storage", "", 1},
    {"quint2x4", "QUInt2x4Storage", "", 1},
    {"float8_e4m3fn", "", "F8_E4M3", 1},
    {"float8_e5m2", "", "F8_E5M2", 1},
    {"float8_e4m3fnuz", "", "F8_E4M3FNUZ", 1},
    {"float8_e5m2fnuz", "", "F8_E5M2FNUZ", 1},
    {"float8_e8m0fnu", "", "F8_E8M0", 1},
    {"bytes", "UntypedStorage", "", 1},
});

const ElementType* find(std::string_view ElementType::*column, std::string_view word) {
  const auto* found = std::ranges::find(kTable, word, column);
  return word.empty() || found == kTable.end() ? nullptr : found;
}

}  // namespace

const ElementType* element_type_of_name(std::string_view name) {
  return find(&ElementType::name, name);
}

const ElementType* element_type_of_storage(std::string_view storage) {
  return find(&ElementType::storage, storage);
}

const ElementType* element_type_of_safetensors(std::string_view name) {
  return find(&ElementType::safetensors, name);
}

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
  if (is_safetensors(text)) return Format::kSafetensors;  // also if 0x80 is part of its length
  // ONNX begins with a field of its message, of which 0x80 can be no tag.
  if (text.starts_with('\x80')) return Format::kTorchStream;
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

void Checkpoint::rename(TensorId tensor, std::string /*name*/) {
  throw UnsupportedError("the plan removes or renames ",
                         in_quotes(to_string(tensors()[tensor].path)), ", which ", format(),
                         " does not allow: save it as safetensors");
}

void Checkpoint::replace_file(const std::string& name, std::optional<std::string> /*text*/) {
  throw UnsupportedError("the plan changes ", in_quotes(name),
                         ", which lies beside the tensors in a directory: apply it to that");
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
      path, "expected a file of torch.save or safetensors, the index of several, or a directory");
}

std::unique_ptr<Checkpoint> open_checkpoint(std::string_view bytes, std::string name) {
  return checkpoints::open_torch_zip(bytes, std::move(name));
}

}  // namespace parsimony

namespace parsimony::checkpoints {

void CheckpointFile::index_tensors() {
  edits_ = Edits(tensors_.size());
  IdVector<StorageId, int64_t> element(storages_.size());
  IdVector<StorageId, bool> is_mixed(storages_.size());
  for (const StoredTensor& tensor : tensors_) {
    check_fits(tensor, storages_[tensor.storage], path_);
    int64_t& bytes = element[tensor.storage];
    if (bytes != 0 && bytes != tensor.type->bytes) is_mixed[tensor.storage] = true;
    bytes = tensor.type->bytes;
  }
  for (StoredTensor& tensor : tensors_) {
    if (is_mixed[tensor.storage] && tensor.why_fixed.empty()) {
      tensor.why_fixed = "its storage holds elements of several sizes";
    }
  }
}

StoredValues CheckpointFile::values(TensorId tensor) const {
  return values_of(tensors_[tensor], storages_[tensors_[tensor].storage]);
}

std::vector<TensorId> CheckpointFile::tied(TensorId tensor) const {
  const StoredTensor& expected = tensors_[tensor];
  std::vector<TensorId> tied;
  for (const TensorId id : tensors_.ids()) {
    const StoredTensor& other = tensors_[id];
    if (other.storage == expected.storage && other.offset == expected.offset &&
        other.dims == expected.dims && other.strides == expected.strides) {
      tied.push_back(id);
    }
  }
  return tied;
}

void CheckpointFile::check_may_change(TensorId tensor) const {
  const StoredTensor& stored = tensors_[tensor];
  if (stored.why_fixed.empty()) return;
  throw errors::fixed_tensor(to_string(stored.path), stored.why_fixed);
}

void CheckpointFile::cut(TensorId tensor, std::vector<AxisKeep> axes) {
  check_may_change(tensor);
  for (const TensorId id : tied(tensor)) edits_.cuts[id] = axes;
}

void CheckpointFile::assign(TensorId tensor, std::vector<std::byte> values) {
  check_may_change(tensor);
  for (const TensorId id : tied(tensor)) edits_.values[id] = values;
}

void CheckpointFile::set_name(TensorId tensor, std::string name) {
  edits_.names[tensor] = std::move(name);
}

const std::optional<std::string>& CheckpointFile::new_name(TensorId tensor) const {
  return edits_.names[tensor];
}

void CheckpointFile::release(std::span<const std::byte> elements) const {
  if (file_) file_->release({reinterpret_cast<const char*>(elements.data()), elements.size()});
}

void CheckpointFile::write(const std::string& path) const {
  NewFile file(path);
  if (edits_.empty()) {
    file.write(bytes());
  } else {
    write_changed(file, lay_out(tensors_, storages_.size(), edits_));
  }
  file.commit();
}

void CheckpointFile::copy(StorageId storage, const NewLayout& layout, const Sink& sink) const {
  const auto& as = layout.storages[storage];
  if (as) {
    copy_storage(tensors_, storages_[storage], *as, edits_, sink);
  } else {
    sink(storages_[storage]);
  }
  if (file_) file_->release(storages_[storage]);
}

uint64_t CheckpointFile::size_of(StorageId storage, const NewLayout& layout) const {
  const auto& as = layout.storages[storage];
  if (!as) return storages_[storage].size();
  return as->elements * tensors_[as->order.front()].type->bytes;
}

}  // namespace parsimony::checkpoints
