#include "parsimony/masks/tensor_file.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "parsimony/base/files.h"
#include "parsimony/base/json_reader.h"
#include "parsimony/base/ranges.h"
#include "parsimony/masks/errors.h"

namespace parsimony {

namespace {

/// The file is not in the safetensors format, or contradicts itself.
ModelError bad_tensor_file(std::string_view file, std::string_view why) {
  return ModelError(file, ": not a safetensors file: ", why);
}

/// Returns the error about a tensor that the format cannot hold.
ModelError unwritable_tensor(std::string_view tensor, std::string_view why) {
  return ModelError("tensor ", in_quotes(tensor), " cannot be written: ", why);
}

constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 8;
constexpr size_t kMaxHeader = 100'000'000;      // as in the reference implementation
constexpr int64_t kMaxSize = int64_t{1} << 62;  // of a dimension, and of an offset
constexpr const char* kMetadata = "__metadata__";

struct Type {
  std::string_view name;
  DType dtype;
};

constexpr std::array<Type, 13> kTypes = {{{"BOOL", DType::kBool},
                                          {"U8", DType::kUInt8},
                                          {"I8", DType::kInt8},
                                          {"U16", DType::kUInt16},
                                          {"I16", DType::kInt16},
                                          {"U32", DType::kUInt32},
                                          {"I32", DType::kInt32},
                                          {"U64", DType::kUInt64},
                                          {"I64", DType::kInt64},
                                          {"F16", DType::kFloat16},
                                          {"BF16", DType::kBFloat16},
                                          {"F32", DType::kFloat32},
                                          {"F64", DType::kFloat64}}};

void sort_by_name(std::vector<FileTensor>& tensors) {
  std::ranges::sort(tensors, {}, &FileTensor::name);
}

std::string_view format_name(const FileTensor& tensor) {
  for (const Type& type : kTypes) {
    if (type.dtype == tensor.dtype) return type.name;
  }
  throw unwritable_tensor(tensor.name, "the format has no such element type");
}

void check(const FileTensor& tensor) {
  if (tensor.name == kMetadata) {
    throw unwritable_tensor(tensor.name, "the format reserves this name");
  }
  const auto bytes = static_cast<int64_t>(tensor.data.size());
  if (bytes != element_count(tensor.dims) * size_of(tensor.dtype)) {
    throw unwritable_tensor(tensor.name, "its elements do not fit its shape");
  }
}

/// The name as the header has it.
std::string quoted_name(const std::string& name) {
  try {
    return json_text(name);
  } catch (const ModelError&) {
    throw unwritable_tensor(name, "its name is not UTF-8");
  }
}

std::string little_endian(uint64_t value) {
  std::string bytes(kLengthBytes, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(value & 0xff);
    value >>= 8;
  }
  return bytes;
}

/// Returns the header that precedes the data of `tensors`, which are sorted.
std::string head_of(const std::vector<FileTensor>& tensors) {
  std::vector<TensorEntry> entries;
  uint64_t offset = 0;
  for (const FileTensor& tensor : tensors) {
    if (&tensor != tensors.data() && (&tensor)[-1].name == tensor.name) {
      throw unwritable_tensor(tensor.name, "there are two");
    }
    check(tensor);
    const uint64_t end = offset + tensor.data.size();
    entries.push_back({tensor.name, std::string(format_name(tensor)), tensor.dims, offset, end});
    offset = end;
  }
  return header_text(entries, R"({"format":"parsimony"})");
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t read_length(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

TensorEntry read_entry(const JsonReader& fields, uint64_t data_begin, uint64_t data_size,
                       std::string_view file) {
  TensorEntry entry{std::string(fields.own_key()), fields.at("dtype").text(), {}};
  for (const JsonReader dim : fields.at("shape").list()) {
    entry.dims.push_back(dim.integer(0, kMaxSize));
  }
  const JsonReader offsets = fields.at("data_offsets");
  if (offsets.size() != 2) offsets.expected("two offsets");
  auto offset = offsets.list().begin();
  const auto begin = static_cast<uint64_t>((*offset).integer(0, kMaxSize));
  const auto end = static_cast<uint64_t>((*++offset).integer(0, kMaxSize));
  if (begin > end || end > data_size) {
    throw errors::bad_tensor(file, entry.name, "its data_offsets lie outside of the file");
  }
  entry.begin = data_begin + begin;
  entry.end = data_begin + end;
  return entry;
}

/// The format wants the data without holes and overlaps.
void check_cover(const TensorHeader& header, uint64_t file_size, std::string_view file) {
  std::vector<const TensorEntry*> entries;
  for (const TensorEntry& entry : header.tensors) entries.push_back(&entry);
  std::ranges::sort(entries, {},
                    [](const TensorEntry* entry) { return std::pair(entry->begin, entry->end); });
  uint64_t end = header.data;
  for (const TensorEntry* entry : entries) {
    if (entry->begin != end) {
      throw errors::bad_tensor(file, entry->name,
                               entry->begin < end ? "its data overlaps that of another tensor"
                                                  : "there is a gap before its data");
    }
    end = entry->end;
  }
  if (end != file_size) {
    throw bad_tensor_file(file, "there are bytes behind the last tensor");
  }
}

/// Bytes that the shape asks for; `limit` + 1 where they are more than the file has.
uint64_t bytes_of(const Shape& shape, uint64_t element, uint64_t limit) {
  if (contains(shape, 0)) return 0;
  uint64_t bytes = element;
  for (const int64_t dim : shape) {
    if (static_cast<uint64_t>(dim) > limit / bytes) return limit + 1;
    bytes *= static_cast<uint64_t>(dim);
  }
  return bytes;
}

/// The tensor of an entry whose type we read.
FileTensor tensor_of(const TensorEntry& entry, std::string_view bytes, std::string_view file) {
  const auto* type = std::ranges::find(kTypes, entry.dtype, &Type::name);
  if (type == kTypes.end()) {
    throw UnsupportedError(file, ": tensor ", in_quotes(entry.name), ": elements of type ",
                           in_quotes(entry.dtype),
                           " are not read; expected BOOL, an integer type, F16, BF16, F32 or F64");
  }
  const uint64_t size = entry.end - entry.begin;
  if (bytes_of(entry.dims, static_cast<uint64_t>(size_of(type->dtype)), size) != size) {
    throw errors::bad_tensor(file, entry.name, "its shape does not fit its data_offsets");
  }
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return {entry.name, type->dtype, entry.dims, {data + entry.begin, data + entry.end}};
}

}  // namespace

std::string tensor_file(std::vector<FileTensor> tensors) {
  sort_by_name(tensors);
  std::string bytes = head_of(tensors);
  for (const FileTensor& tensor : tensors) bytes += text_of(tensor.data);
  return bytes;
}

void write_tensors(const std::string& path, std::vector<FileTensor> tensors) {
  sort_by_name(tensors);
  const std::string head = head_of(tensors);
  NewFile file(path);
  file.write(head);
  for (const FileTensor& tensor : tensors) file.write(text_of(tensor.data));
  file.commit();
}

std::string header_text(const std::vector<TensorEntry>& tensors, const std::string& metadata) {
  std::string text = "{";
  bool has_metadata = metadata.empty();
  const auto add_metadata = [&] {
    if (!std::exchange(has_metadata, true)) {
      text.append(json_text(std::string_view(kMetadata))).append(":").append(metadata).append(",");
    }
  };
  for (const TensorEntry& tensor : tensors) {
    if (tensor.name > kMetadata) add_metadata();
    text += quoted_name(tensor.name) + R"(:{"data_offsets":[)" + std::to_string(tensor.begin) +
            ',' + std::to_string(tensor.end) + R"(],"dtype":)" +
            json_text(std::string_view(tensor.dtype)) + R"(,"shape":[)";
    for (const int64_t dim : tensor.dims) text += std::to_string(dim) + ',';
    if (!tensor.dims.empty()) text.pop_back();
    text += "]},";
  }
  add_metadata();
  if (text.back() == ',') text.pop_back();
  text += '}';
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return little_endian(text.size()) + text;
}

TensorHeader parse_header(std::string_view bytes, std::string_view file_name) {
  if (bytes.size() < kLengthBytes) throw bad_tensor_file(file_name, "it has no header");
  const uint64_t length = read_length(bytes);
  if (length > kMaxHeader || length > bytes.size() - kLengthBytes) {
    throw bad_tensor_file(file_name, "its header is longer than the file or than 100 MB");
  }
  TensorHeader header{{}, {}, kLengthBytes + length};
  const JsonDocument document(bytes.substr(kLengthBytes, length),
                              std::string(file_name) + ": header", throw_as<ModelError>);
  for (const JsonReader fields : document.root().members()) {
    if (fields.own_key() == kMetadata) {
      header.metadata = fields.json();
    } else {
      header.tensors.push_back(
          read_entry(fields, header.data, bytes.size() - header.data, file_name));
    }
  }
  check_cover(header, bytes.size(), file_name);
  return header;
}

std::vector<FileTensor> parse_tensors(std::string_view bytes, std::string_view file_name) {
  std::vector<FileTensor> tensors;
  for (const TensorEntry& entry : parse_header(bytes, file_name).tensors) {
    tensors.push_back(tensor_of(entry, bytes, file_name));
  }
  sort_by_name(tensors);
  return tensors;
}

}  // namespace parsimony
